"""The order of a tile's elements in the registers of all threads, and whole matrices moved in that order.

A layout permutes elements within a tile.  Elements that are neighbours both in a register and in memory stay together, so a matrix
is moved as words, as wide as the layout allows, in an order that is worked out once; elements narrower than a byte are first folded
into bytes along the axis on which a register holds neighbours.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arrays.elements import Array
from ptxmma.model.bitmap import BitMap

#: Words that one step moves: their order, and what they are moved from and to, should stay in the cache.
_PANEL = 1 << 18


class Tiling:
    """The places of one tile's elements in the registers of all threads.

    Args:
        places: maps ``(i, lane)`` to ``(row, col)``, perhaps to the number of a matrix too.
        shape: matrices, rows and columns of a tile.
        threads: threads that hold it together; each has the same number of elements.
        bits: width of an element in a register.
        lead: the name that ``places`` has for the number of a matrix, where there are several.

    Attributes:
        folds: the steps that join elements narrower than a byte, ``(axis, below, width)`` for each: it doubles their width, and along
            ``axis`` an element moves above the one that is ``below`` earlier.
        word: the dtype of the words, which move in one piece.
        shape: matrices, rows and columns of a tile in words.
        order: the flat position in the tile of each word, in the order of threads and registers.
    """

    def __init__(self, places: BitMap, shape: tuple[int, int, int], threads: int, bits: int, lead: str = "") -> None:
        self._given = (places, shape, threads, bits, lead)
        axes = (lead, "row", "col")
        self.folds: list[tuple[int, int, int]] = []
        joined: list[tuple[str, int]] = []  # bits of the matrix that lie within a word
        extent = list(shape)
        for name, bit in places.bits["i"]:
            if name not in axes:
                break  # a copy
            axis = axes.index(name)
            position = bit - sum(other == name and below < bit for other, below in joined)
            if bits < 8:
                self.folds.append((axis - len(axes), 1 << position, bits))
            elif bits == 64 or name != "col" or position or extent[axis] % 2:
                break
            joined.append((name, bit))
            extent[axis] //= 2
            bits *= 2
        self.word = np.dtype(f"u{bits // 8}")
        self.threads = threads
        self.shape = tuple(extent)

        copies = 1 << sum(width for name, width in places.outputs.items() if name not in axes)
        count = math.prod(self.shape) * copies // threads  # the map has more where it serves wider matrices too
        points = {"lane": np.arange(threads)[:, None], "i": np.arange(count) << len(joined)}
        numbers = places.apply(points)
        place = [_without(numbers.get(name, 0), [bit for other, bit in joined if other == name]) for name in axes]
        self._places = [np.broadcast_to(value, (threads, count)).reshape(-1) for value in place]
        self.order = np.ravel_multi_index(self._places, self.shape)
        for shared in (*self._places, self.order):
            shared.flags.writeable = False

    @functools.cached_property
    def transposed(self) -> Tiling:
        """The same for a matrix whose columns lie in memory one after another."""
        places, (computations, rows, cols), threads, bits, lead = self._given
        swap = {"row": "col", "col": "row"}
        moved = {name: tuple((swap.get(output, output), bit) for output, bit in targets) for name, targets in places.bits.items()}
        outputs = {swap.get(name, name): width for name, width in places.outputs.items()}
        return Tiling(BitMap(places.inputs, outputs, moved), (computations, cols, rows), threads, bits, lead)

    def fold(self, codes: Array) -> Array:
        """Elements narrower than a byte, one in each byte of (..., computations, R, C), to full bytes."""
        for axis, below, width in self.folds:
            codes = _fold(codes, axis, below, width)
        return codes

    def unfold(self, codes: Array) -> Array:
        """The inverse of :meth:`fold`."""
        for axis, below, width in reversed(self.folds):
            codes = _unfold(codes, axis, below, width)
        return codes

    def pack(self, matrix: Array) -> Array:
        """(..., computations, R, C), folded, of whole tiles, to (..., R/rows, C/cols, threads, words)."""
        words = np.ascontiguousarray(matrix).view(self.word)
        computations, rows, cols = self.shape
        *batch, _, height, width = words.shape
        down, across = height // rows, width // cols
        words = words.reshape(*batch, computations, down, rows, width).swapaxes(-4, -3)  # a row of tiles after another
        packed = np.empty((math.prod(batch) * down, across, self.order.size), self.word)
        for tiles in self._panels(across):
            count = tiles.stop - tiles.start
            part = words[..., tiles.start * cols : tiles.stop * cols]
            which, row, col = self._places
            order = ((which * rows + row) * count + np.arange(count)[:, None]) * cols + col
            np.take(part.reshape(len(packed), -1), order, axis=1, out=packed[:, tiles], mode="clip")
        return packed.reshape(*batch, down, across, self.threads, -1)

    def unpack(self, registers: Array, dtype: np.dtype[Any]) -> Array:
        """(..., R/rows, C/cols, threads, registers) to (..., computations, R, C) of ``dtype``, still folded."""
        words = np.ascontiguousarray(registers).view(self.word)
        computations, rows, cols = self.shape
        *batch, down, across, _, _ = words.shape
        size = self.order.size
        words = words.reshape(math.prod(batch) * down, across, size)
        inverse = self._first.reshape(computations, rows, 1, cols)
        matrix = np.empty((len(words), computations, rows, across, cols), self.word)
        for tiles in self._panels(across):
            count = tiles.stop - tiles.start
            order = inverse + np.arange(0, count * size, size)[:, None]
            np.take(words[:, tiles].reshape(len(words), -1), order, axis=1, out=matrix[:, :, :, tiles], mode="clip")
        matrix = matrix.reshape(*batch, down, computations, rows, across * cols).swapaxes(-4, -3)
        whole: Array = matrix.reshape(*batch, computations, down * rows, across * cols)
        return whole.view(dtype)

    @functools.cached_property
    def _first(self) -> Array:
        """The first word that holds each place of the tile: of copies, the word of the lowest thread."""
        return np.unique(self.order, return_index=True)[1]

    def _panels(self, across: int) -> list[slice]:
        """A row of tiles in pieces of at most ``_PANEL`` words, or of one tile."""
        step = max(1, _PANEL // self.order.size)
        return [slice(first, min(first + step, across)) for first in range(0, across, step)]


def _without(value: Any, bits: Sequence[int]) -> Any:
    """``value`` without ``bits``: the bits above them move down."""
    for bit in sorted(bits, reverse=True):
        value = value >> bit + 1 << bit | value & (1 << bit) - 1
    return value


def _fold(codes: Array, axis: int, below: int, width: int) -> Array:
    """Elements of ``width`` bits, one in each byte, to half as many of twice the width, joined along ``axis``."""
    if axis == -1 and below == 1:  # neighbours in memory: both at once
        pairs = np.ascontiguousarray(codes).view(np.uint16)
        both: Array = (pairs | pairs >> 8 - width).astype(np.uint8)
        return both
    low, high = _halves(codes, axis, below)
    joined: Array = low | high << width
    return joined.reshape(_resized(codes.shape, axis, codes.shape[axis] // 2))


def _unfold(codes: Array, axis: int, below: int, width: int) -> Array:
    """The inverse of :func:`_fold`."""
    shape = _resized(codes.shape, axis, codes.shape[axis] * 2)
    mask = (1 << width) - 1
    if axis == -1 and below == 1:
        pairs = codes.astype(np.uint16)
        pairs |= pairs << 8 - width
        pairs &= mask << 8 | mask
        return pairs.view(np.uint8)
    result = np.empty(shape, np.uint8)
    low, high = _halves(result, axis, below)
    np.bitwise_and(codes.reshape(low.shape), mask, out=low)
    np.right_shift(codes.reshape(low.shape), width, out=high)
    return result


def _halves(codes: Array, axis: int, below: int) -> tuple[Array, Array]:
    """Views of the elements along ``axis`` whose partner is ``below`` later, and of the partners."""
    before, after = codes.shape[:axis], codes.shape[axis:][1:]
    split = codes.reshape(*before, codes.shape[axis] // (2 * below), 2, below, *after)
    low, high = np.moveaxis(split, len(before) + 1, 0)
    return low, high


def _resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis:][1:])
