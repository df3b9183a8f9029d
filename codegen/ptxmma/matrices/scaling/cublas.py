"""Scale factors in the order in which cuBLAS reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty

#: Rows of a tile of scale factors, and blocks along K.
_ROWS, _BLOCKS = 128, 4
#: Rows of a tile that lie one after another; those between them lie side by side.
_STEP = 32


def to_cublas(scales: Any, axis: int = -1) -> Any:
    """Scale factors in the order in which cuBLAS reads them: tiles of 128 rows and 4 blocks.

    A tile has 512 bytes: the factor of row ``r`` and block ``b`` of it is at ``r % 32 * 16 + r / 32 * 4 + b``.  Tiles follow each other
    along K first.  Rows and blocks are filled up with zeros to whole tiles (cuBLAS, "1D Block Scaling Factors Layout").

    Args:
        scales: (..., rows, blocks) of any type of 8 bits, as :func:`quantise` gives them.
        axis: along which the blocks lie: -1 for A, -2 for B, whose columns are the rows of the tiles.

    Returns:
        (..., rows / 128 * blocks / 4 * 512), rounded up, of the same dtype.

    Raises:
        ValueError: no matrix, a type that is not of 8 bits, or another axis.
    """
    codes = _turned(_checked(scales, "scales"), axis)
    *batch, rows, blocks = codes.shape
    down, across = -(-rows // _ROWS), -(-blocks // _BLOCKS)
    whole = elements.extended(codes, (*batch, down * _ROWS, across * _BLOCKS))
    tiles = whole.reshape(*batch, down, _ROWS // _STEP, _STEP, across, _BLOCKS)
    order = [*range(len(batch)), *(len(batch) + place for place in (0, 3, 2, 1, 4))]
    return elements.like(np.ascontiguousarray(tiles.transpose(order)).reshape(*batch, -1), scales)


def from_cublas(packed: Any, shape: Sequence[int], axis: int = -1) -> Any:
    """The scale factors (..., rows, blocks) of what :func:`to_cublas` gives: its inverse.

    Args:
        packed: (..., bytes), of any type of 8 bits.
        shape: of the scale factors, or its last two sizes.
        axis: as for :func:`to_cublas`.

    Raises:
        ValueError: another size than these scale factors have, a type that is not of 8 bits, or another axis.
    """
    codes = _checked(packed, "packed", least=1)
    *batch, size = codes.shape
    sizes = tuple(integer("shape", extent) for extent in shape)
    turned = sizes[-2:] if _along(axis) == -1 else sizes[:-3:-1]
    if len(sizes) < 2 or min(sizes) < 1 or sizes[:-2] not in ((), tuple(batch)):
        raise ValueError(f"shape {sizes} is not that of scale factors, (..., rows, blocks) or the last two of these sizes")
    down, across = -(-turned[0] // _ROWS), -(-turned[1] // _BLOCKS)
    if size != down * across * _ROWS * _BLOCKS:
        raise ValueError(f"packed has shape {codes.shape}; scale factors of shape {sizes} take {down * across * _ROWS * _BLOCKS} bytes")
    tiles = codes.reshape(*batch, down, across, _STEP, _ROWS // _STEP, _BLOCKS)
    order = [*range(len(batch)), *(len(batch) + place for place in (0, 3, 2, 1, 4))]
    whole = tiles.transpose(order).reshape(*batch, down * _ROWS, across * _BLOCKS)[..., : turned[0], : turned[1]]
    return elements.like(np.ascontiguousarray(_turned(whole, axis)), packed)


def _checked(given: Any, what: str, least: int = 2) -> Array:
    array = elements.as_array(given, what)
    if array.dtype.itemsize != 1 or array.ndim < least:
        raise ValueError(f"{what} has dtype {array.dtype} and shape {array.shape}; it has {least} dimensions or more, of a type of 8 bits")
    not_empty(array, what)
    return array


def _along(axis: int) -> int:
    if axis not in (-1, -2):
        raise ValueError(f"axis = {axis}: the blocks of scale factors lie along axis -1, as for A, or -2, as for B")
    return axis


def _turned(array: Array, axis: int) -> Array:
    """The matrix with its blocks along the last axis, and back."""
    return array if _along(axis) == -1 else array.swapaxes(-1, -2)
