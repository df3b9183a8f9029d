"""Scale factors in the order in which cuBLAS reads them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty
from ptxmma.arrays.tiling import Tiling
from ptxmma.catalog.lookup import instruction
from ptxmma.matrices.scaling.tensor_memory import blocks_of_cell, check_axis, of_lines, turned
from ptxmma.model.bitmap import BitMap

_BYTE = 8


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
    check_axis(axis)
    codes = turned(_checked(scales, "scales"), axis)
    *batch, rows, blocks = codes.shape
    tile, height, width = _tile()
    whole = elements.extended(codes, (*batch, -(-rows // height) * height, -(-blocks // width) * width))
    packed = tile.pack(whole[..., np.newaxis, :, :]).reshape(*batch, -1)
    return elements.like(packed.view(codes.dtype), scales)


def from_cublas(packed: Any, shape: Sequence[int], axis: int = -1) -> Any:
    """The scale factors (..., rows, blocks) of what :func:`to_cublas` gives: its inverse.

    Args:
        packed: (..., bytes), of any type of 8 bits.
        shape: the shape of the scale factors, or its last two sizes.
        axis: as for :func:`to_cublas`.

    Raises:
        ValueError: another size than these scale factors have, a type that is not of 8 bits, or another axis.
    """
    check_axis(axis)
    codes = _checked(packed, "packed", least=1)
    *batch, size = codes.shape
    sizes = tuple(integer("shape", extent) for extent in shape)
    if len(sizes) < 2 or min(sizes) < 1 or sizes[:-2] not in ((), tuple(batch)):
        raise ValueError(f"shape {sizes} is not that of scale factors, (..., rows, blocks) or the last two of these sizes")
    lines, blocks = sizes[-2:] if axis == -1 else sizes[:-3:-1]
    tile, height, width = _tile()
    down, across = -(-lines // height), -(-blocks // width)
    if size != (bytes_ := down * across * height * width):
        raise ValueError(f"packed has shape {codes.shape}; scale factors of shape {sizes} take {bytes_} bytes")
    grid = codes.reshape(*batch, down, across, 1, height * width)
    whole = tile.unpack(grid, codes.dtype)[..., 0, :lines, :blocks]
    return elements.like(np.ascontiguousarray(turned(whole, axis)), packed)


@functools.cache
def _tile() -> tuple[Tiling, int, int]:
    """The order of a tile, its rows and its blocks.

    It is the layout of scale factors in tensor memory, composed with the layout of the bytes that ``tcgen05.cp`` brings there.
    """
    copied = instruction("tcgen05.cp.cta_group::1.32x128b.warpx4").operand("taddr")
    blocks = blocks_of_cell()
    lines = math.prod(copied.sizes[axis] for axis in copied.axes) // blocks
    scales = of_lines(lines, blocks).digits({"scale_id": 0}).restrict(copy=1, peer=1)
    byte = scales.compose(copied.placed().digits({}).inverse()).drop("copy").linear("byte", "row")
    order = BitMap.of(byte.inverse().drop("copy", "peer").rename(index="i", col="row", block="col"))
    order = BitMap(order.inputs | {"lane": 0}, order.outputs, order.bits | {"lane": ()})
    return Tiling(order, (1, lines, blocks), threads=1, bits=_BYTE), lines, blocks


def _checked(given: Any, what: str, least: int = 2) -> Array:
    array = elements.as_array(given, what)
    if array.dtype.itemsize != 1 or array.ndim < least:
        raise ValueError(f"{what} has dtype {array.dtype} and shape {array.shape}; it has {least} dimensions or more, of a type of 8 bits")
    not_empty(array, what)
    return array
