"""The elements of a sparse matrix in blocks: which units are not zero, which are the largest, and chunks with too many of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import FIELDS
from ptxmma.matrices.sparse.patterns import Pattern
from ptxmma.model import ElementType

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

#: Elements that are processed at once, so that intermediate results stay in the cache.
BLOCK = 1 << 16


class NotSparseError(ValueError):
    """A chunk has more units that are not zero than its pattern keeps.

    Attributes:
        row: the row of the first such chunk.
        column: its first column.
        chunk: its number in the row.
        count: the number of chunks like that.
    """

    def __init__(self, message: str, row: int, column: int, chunk: int, count: int) -> None:
        super().__init__(message)
        self.row, self.column, self.chunk, self.count = row, column, chunk, count

    def __reduce__(self) -> tuple[type[NotSparseError], tuple[str, int, int, int, int]]:
        return type(self), (str(self), self.row, self.column, self.chunk, self.count)


def parts(shape: tuple[int, ...], group: int, *arrays: tuple[Array, int]) -> Iterator[tuple[int, tuple[int, ...], list[Array]]]:
    """Arrays side by side, in parts of at most ``BLOCK`` elements of a matrix or of one group of neighbours.

    Parts are views, whatever the strides, so that no more is copied than what is worked on.

    Args:
        shape: the matrix's, padding included.
        group: elements of a row that stay together.
        arrays: the arrays to cut, of the same shape but for the last size, each with the number of its elements in a group.  The last
            groups may lack elements, where the matrix is padded.

    Yields:
        The number of a part's first element, the part's shape, padding included, and that part of each array.
    """
    counts = (*shape[:-1], shape[-1] // group)
    if all(array.flags.c_contiguous and array.shape[-1] == counts[-1] * size for array, size in arrays):
        counts, arrays = (math.prod(counts),), tuple((array.reshape(-1), size) for array, size in arrays)
    most = max(1, BLOCK // group)
    axis = next(axis for axis in range(len(counts)) if math.prod(counts[axis + 1 :]) <= most)
    inner = counts[axis + 1 :]
    step, start = most // math.prod(inner), 0
    cut = [(array, 1 if inner else size) for array, size in arrays]
    for ahead in itertools.product(*map(range, counts[:axis])):
        for first in range(0, counts[axis], step):
            *above, groups = min(step, counts[axis] - first), *inner
            whole = (*above, groups * group)
            yield start, whole, [array[ahead][first * width : (first + step) * width] for array, width in cut]
            start += math.prod(whole)


def flat(part: Array, whole: tuple[int, ...]) -> Array:
    """A part, padded with zeros and contiguous, of one dimension."""
    return np.ascontiguousarray(elements.extended(part, whole)).reshape(-1)


def cut(array: Array, shape: tuple[int, ...]) -> Array:
    """An array without its padding."""
    return array[tuple(map(slice, shape))]


@functools.cache
def magnitude_bits(element: ElementType) -> Any:
    """A mask of all bits but the sign beside a magnitude, with which both zeros are 0; of all bits of other types."""
    kind = elements.bits_dtype(element).type
    return ~kind(1 << element.bits - 1 if element.sign and element.form in ("float", "sign-magnitude") else 0)


@functools.cache
def _largest_bits(element: ElementType) -> Any:
    """The bits of the largest finite number of a floating-point type."""
    if elements.lacks_dtype(element):
        return elements.bits_dtype(element).type(element.largest_code)
    largest = ml_dtypes.finfo(elements.dtype(element)).max  # type: ignore[no-untyped-call]  # it has no annotations
    return np.array([largest]).astype(elements.dtype(element)).view(elements.bits_dtype(element))[0]


def word_of(bits: Array, coding: Pattern) -> np.dtype[Any]:
    """A dtype that holds a unit, to move it as a whole."""
    size = bits.dtype.itemsize * coding.unit
    return np.dtype(f"u{size}" if size <= 8 else f"V{size}")


def bases(coding: Pattern) -> npt.NDArray[np.intp]:
    """The first unit of each pair of chunks that a part may have, as a column."""
    pairs = max(1, BLOCK // (FIELDS * coding.chunk))
    return np.arange(0, pairs * FIELDS * coding.units, FIELDS * coding.units, dtype=np.intp)[:, None]


def occupied_units(nonzero: Bools, coding: Pattern) -> Bytes:
    """A bit for each unit of a block: whether any of its elements is not zero."""
    return np.packbits(nonzero.view(f"u{coding.unit}"), bitorder="little")


def largest(block: Array, start: int, shape: tuple[int, ...], coding: Pattern, element: ElementType) -> Bools:
    """Return which elements of a block are in the units of the largest magnitude of their chunk."""
    magnitudes = block & magnitude_bits(element)
    if element.form == "float":
        _refuse_infinite(block, magnitudes, start, shape, element)
    if element.form != "float" or coding.unit > 1:  # the bits of floating-point numbers are in the order of their magnitudes
        magnitudes = np.abs(elements.numbers(block, element))
    units = functools.reduce(np.add, [magnitudes[place :: coding.unit] for place in range(coding.unit)])
    columns = np.ascontiguousarray(units.reshape(-1, coding.units).T)
    larger = np.zeros(columns.shape, np.uint8)  # how many of its chunk go before each
    for earlier, later in itertools.combinations(range(coding.units), 2):
        first = columns[earlier] >= columns[later]
        larger[later] += first
        larger[earlier] += ~first
    keep = np.empty((columns.shape[1], coding.units, coding.unit), np.bool_)
    for place, before in enumerate(larger):
        keep[:, place] = (before < coding.stored_units)[:, None]
    return keep.reshape(-1)


def _refuse_infinite(block: Array, magnitudes: Array, start: int, shape: tuple[int, ...], element: ElementType) -> None:
    beyond = magnitudes > _largest_bits(element)
    if beyond.any():
        place = int(beyond.argmax())
        *batch, row, column = map(int, np.unravel_index(start + place, shape))
        number = float(elements.numbers(block[place : place + 1], element)[0])
        raise ValueError(f"{at(batch, f'row {row}, column {column}')} is {number}, which has no magnitude to compare; give a mask")


def refuse_crowded(what: str, array: Array, shape: tuple[int, ...], element: ElementType | None, coding: Pattern) -> None:
    """Raise :class:`NotSparseError` if bits of a type, or a mask, have too many units in a chunk that are not zero.

    ``shape`` is the array's with its padding.
    """
    magnitude = magnitude_bits(element) if element else True
    count, place, many = 0, 0, 0
    for start, whole, (part,) in parts(shape, coding.chunk, (array, coding.chunk)):
        occupied = occupied_units((flat(part, whole) & magnitude) != 0, coding)
        crowded = coding.crowded.take(occupied)
        if crowded.any():
            if not count:
                byte = int((crowded != 0).argmax())  # crowded counts: its largest need not be the first
                sets = [int(occupied[byte]) >> low & (1 << coding.units) - 1 for low in range(0, 8, coding.units)]
                inside = next(index for index, units in enumerate(sets) if units not in coding.fields)
                place, many = start // coding.chunk + byte * len(sets) + inside, sets[inside].bit_count()
            count += int(crowded.sum())
    if count:
        *batch, row, chunk = map(int, np.unravel_index(place, (*shape[:-1], shape[-1] // coding.chunk)))
        where = at(batch, f"row {row}, column {chunk * coding.chunk} (chunk {chunk} of the row)")
        units = "elements" if coding.unit == 1 else f"groups of {coding.unit} elements"
        fault = f"keeps {many} of {coding.units} {units}" if element is None else f"has {many} of {coding.units} {units} that are not zero"
        others = "1 chunk is" if count == 1 else f"{count} chunks are"
        advice = "" if element is None else "; prune() makes a matrix sparse"
        message = f"{what} {fault} in {where}; {coding.name} allows {coding.stored_units}, and {others} like that{advice}"
        raise NotSparseError(message, row, chunk * coding.chunk, chunk, count)


def at(batch: Iterable[int], where: str) -> str:
    """A place in words, with the number of the matrix in a batch."""
    numbers = tuple(batch)
    return f"{where} of matrix {numbers}" if numbers else where
