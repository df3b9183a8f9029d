"""What packing has in common: registers, tiles and padding, checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma import elements
from ptxmma.elements import Array

#: A register of metadata or scale factors.
REGISTER = np.dtype(np.uint32)


def words(registers: Any, threads: int) -> Array:
    """One 32-bit register of each thread, checked."""
    held = elements.bits(registers, REGISTER.itemsize, "registers")
    if held.shape[-1:] != (threads,):
        raise ValueError(f"registers have shape {held.shape}; they are (..., {threads}): one of each thread")
    not_empty(held, "registers")
    return np.ascontiguousarray(held)


def not_empty(array: Array, what: str) -> None:
    """Refuse an array without elements."""
    if not array.size:
        raise ValueError(f"{what}: an array of shape {array.shape} has no elements")


def whole(array: Array, tile: tuple[int, int], what: str, pad: bool, fill: int = 0) -> Array:
    """A matrix of whole tiles: as it is, or padded with ``fill``."""
    height, width = (-(-size // step) * step for size, step in zip(array.shape[-2:], tile, strict=True))
    if not pad and array.shape[-2:] != (height, width):
        raise ValueError(
            f"{what} of shape {array.shape}: the last two sizes must be multiples of {tile[0]} and {tile[1]}, as {height} and {width} are;"
            " pad=True pads"
        )
    return elements.extended(array, (*array.shape[:-2], height, width), fill)


def cropped(matrix: Array, shape: Sequence[int] | None, tile: tuple[int, int]) -> Array:
    """The matrix without its padding; ``shape`` is that of the whole, or of the last two axes."""
    if shape is None:
        return matrix
    spans = [range(size - step + 1, size + 1) for size, step in zip(matrix.shape[-2:], tile, strict=True)]
    try:
        wanted = tuple(map(operator.index, shape))
    except TypeError:
        wanted = ()
    fits = len(wanted) >= 2 and all(size in span for size, span in zip(wanted[-2:], spans, strict=True))
    if not fits or wanted[:-2] not in ((), matrix.shape[:-2]):
        allowed = " x ".join(str(span[0]) if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)
        raise ValueError(
            f"shape {wanted or shape} does not fit registers that hold a matrix of shape {matrix.shape}, padding included:"
            f" the last two sizes are integers, {allowed}"
        )
    return np.ascontiguousarray(matrix[..., : wanted[-2], : wanted[-1]])


def batch_of(*sizes: int) -> str:
    """The shape of a batch of what has these sizes, in words."""
    return "(..., " + ", ".join(map(str, sizes)) + ")"
