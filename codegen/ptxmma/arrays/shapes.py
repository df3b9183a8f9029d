"""Checks shapes: words of registers, not empty, whole tiles or padded to them, and cropped again."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array


def not_empty(array: Array, what: str) -> None:
    """Refuse an array without elements."""
    if not array.size:
        raise ValueError(f"{what}: an array of shape {array.shape} has no elements")


def whole_shape(shape: tuple[int, ...], tile: Sequence[int], what: str, pad: bool) -> tuple[int, ...]:
    """The shape with its last sizes rounded up to multiples of ``tile``; without ``pad`` they must be such multiples already."""
    ahead, sizes = shape[: -len(tile)], shape[-len(tile) :]
    rounded = tuple(-(-size // step) * step for size, step in zip(sizes, tile, strict=True))
    if not pad and sizes != rounded:
        raise ValueError(
            f"{what} of shape {shape}: {_last(len(tile))} must be {'a multiple' if len(tile) == 1 else 'multiples'} of {_listed(tile)},"
            f" not {_listed(sizes)}; pad=True pads to {_listed(rounded)}"
        )
    return ahead + rounded


def whole(array: Array, tile: Sequence[int], what: str, pad: bool, fill: int = 0) -> Array:
    """An array of whole tiles: as it is, or padded with ``fill``."""
    return elements.extended(array, whole_shape(array.shape, tile, what, pad), fill)


def cropped_shape(shape: tuple[int, ...], wanted: Sequence[int] | None, tile: Sequence[int], what: str) -> tuple[int, ...]:
    """A shape of whole tiles without its padding; ``wanted`` is the whole result, or its last sizes.

    ``what`` holds the array, in words: ``"registers"``.
    """
    if wanted is None:
        return shape
    spans = [range(size - step + 1, size + 1) for size, step in zip(shape[-len(tile) :], tile, strict=True)]
    try:
        sizes = tuple(map(operator.index, wanted))
    except TypeError:
        sizes = ()
    fits = len(sizes) >= len(tile) and all(size in span for size, span in zip(sizes[-len(tile) :], spans, strict=True))
    if not fits or sizes[: -len(tile)] not in ((), shape[: -len(tile)]):
        allowed = " x ".join(str(span[0]) if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)
        raise ValueError(
            f"shape {sizes or wanted} does not fit {what} that hold a matrix of shape {shape}, padding included:"
            f" {_last(len(tile))} {'is an integer' if len(tile) == 1 else 'are integers'}, {allowed}"
        )
    return shape[: -len(tile)] + sizes[-len(tile) :]


def cropped(array: Array, wanted: Sequence[int] | None, tile: Sequence[int], what: str) -> Array:
    """The array without its padding, see :func:`cropped_shape`."""
    return np.ascontiguousarray(array[tuple(map(slice, cropped_shape(array.shape, wanted, tile, what)))])


def batch_of(*sizes: int) -> str:
    """The shape of a batch of items of these sizes, in words."""
    return "(..., " + ", ".join(map(str, sizes)) + ")"


def _last(count: int) -> str:
    """The last sizes of a shape, in words."""
    return {1: "the last size", 2: "the last two sizes"}.get(count, f"the last {count} sizes")


def _listed(sizes: Sequence[int]) -> str:
    *first, last = map(str, sizes)
    return f"{', '.join(first)} and {last}" if first else last


#: A register of metadata or scale factors.
REGISTER = np.dtype(np.uint32)


def words(registers: Any, threads: int) -> Array:
    """One 32-bit register of each thread, checked."""
    words = elements.bits(registers, REGISTER.itemsize, "registers")
    if words.shape[-1:] != (threads,):
        raise ValueError(f"registers have shape {words.shape}; they are (..., {threads}): one of each thread")
    not_empty(words, "registers")
    return np.ascontiguousarray(words)
