"""What packing has in common: registers, tiles and padding, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma import elements
from ptxmma.elements import Array

#: A register of metadata or scale factors.
REGISTER = np.dtype(np.uint32)


def words(registers: Any, threads: int) -> Array:
    """One 32-bit register of each thread, checked."""
    held = elements.as_array(registers, "registers")
    if held.dtype.itemsize != REGISTER.itemsize:
        raise ValueError(
            f"registers have dtype {held.dtype}; they are {REGISTER}, or any type of {REGISTER.itemsize} bytes that holds its bits"
        )
    if held.shape[-1:] != (threads,):
        raise ValueError(f"registers have shape {held.shape}; they are (..., {threads}): one of each thread")
    not_empty(held, "registers")
    return np.ascontiguousarray(held).view(REGISTER)


def not_empty(array: Array, what: str) -> None:
    """Refuse an array without elements."""
    if not array.size:
        raise ValueError(f"{what}: an array of shape {array.shape} has no elements")


def whole(array: Array, tile: tuple[int, int], what: str, pad: bool, *, paddable: bool = True) -> Array:
    """A matrix of whole tiles: as it is, or padded with zeros."""
    height, width = (-(-size // step) * step for size, step in zip(array.shape[-2:], tile, strict=True))
    if (height, width) == array.shape[-2:]:
        return array
    if not pad:
        hint = "; pad=True fills up with zeros" if paddable else ""
        raise ValueError(f"{what} of shape {array.shape}: the last two sizes must be multiples of {tile[0]} and {tile[1]}{hint}")
    return padded(array, height, width)


def padded(array: Array, height: int, width: int) -> Array:
    """The matrix with zeros below and to the right."""
    if array.shape[-2:] == (height, width):
        return array
    padded = np.zeros((*array.shape[:-2], height, width), array.dtype)
    padded[..., : array.shape[-2], : array.shape[-1]] = array
    return padded


def cropped(matrix: Array, shape: Sequence[int] | None, tile: tuple[int, int]) -> Array:
    """The matrix without its padding; ``shape`` is that of the whole, or of the last two axes."""
    if shape is None:
        return matrix
    *batch, height, width = matrix.shape
    rows = [range(size - step + 1, size + 1) for size, step in zip((height, width), tile, strict=True)]
    fits = len(shape) >= 2 and all(size in span for size, span in zip(shape[-2:], rows, strict=True))
    if not fits or tuple(shape[:-2]) not in ((), tuple(batch)):
        spans = " x ".join(between(span[0], span[-1]) for span in rows)
        raise ValueError(
            f"shape {tuple(shape)} does not fit registers that hold tiles of shape {matrix.shape}: the last two sizes are {spans}"
        )
    return np.ascontiguousarray(matrix[..., : shape[-2], : shape[-1]])


def between(least: int, most: int) -> str:
    """A range in words."""
    return str(least) if least == most else f"{least}..{most}"


def batch_of(*sizes: int) -> str:
    """The shape of a batch of what has these sizes, in words."""
    return "(..., " + ", ".join(map(str, sizes)) + ")"
