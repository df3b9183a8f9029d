"""Prunes, checks, compresses and decompresses sparse matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import FIELDS, fields, row_major
from ptxmma.arrays.shapes import cropped_shape, whole_shape
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.sparse.blocks import (
    Bools,
    Bytes,
    at,
    bases,
    cut,
    flat,
    largest,
    magnitude_bits,
    occupied_units,
    parts,
    refuse_crowded,
    word_of,
)
from ptxmma.matrices.sparse.patterns import Pattern, narrowed, pattern_of
from ptxmma.model import ElementType, Spec


class Compressed(NamedTuple):
    """A compressed matrix: values (..., R, C * kept / chunk) and row-major metadata, uint8 (..., R, C / chunk / 2)."""

    values: Any
    metadata: Any


def prune(
    matrix: Any, pattern: str | Pattern | Instruction, mask: Any = None, *, element: str | ElementType | None = None, pad: bool = False
) -> Any:
    """A copy of a matrix (..., R, C) with zeros where the pattern drops elements.

    Without ``mask``, each chunk keeps its units of the largest magnitude, of equal ones the earlier; the magnitude of a pair is the sum
    of its elements' magnitudes, in double precision.  With ``mask``, a boolean array of the same shape, exactly the elements stay where
    it is true.  The zeros of the result are positive.

    Args:
        matrix: C must be a multiple of the chunk.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``, or the sparse instruction that has it.
        mask: the elements to keep.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: let the last chunk of a row be shorter, as if zeros followed.

    Raises:
        NotSparseError: the mask keeps too many units of a chunk.
        ValueError: a wrong shape or dtype; without a mask, NaN or infinity.
    """
    coding = pattern_of(pattern)
    kind, bits, shape = _checked_matrix(matrix, coding, element, coding.chunk, pad)
    masks = [] if mask is None else [_checked_mask(mask, bits.shape, shape, coding)]
    sign = ~magnitude_bits(kind)
    pruned = np.empty(bits.shape, bits.dtype)
    for start, whole, (part, kept, *mask_part) in parts(shape, coding.chunk, *((array, coding.chunk) for array in (bits, pruned, *masks))):
        block = flat(part, whole)
        keep = flat(mask_part[0], whole) if mask_part else largest(block, start, shape, coding, kind)
        keep = keep & (block != sign)
        np.multiply(part, cut(keep.reshape(whole), part.shape), out=kept)
    return elements.like(pruned.view(elements.as_array(matrix).dtype), matrix)


def check(matrix: Any, pattern: str | Pattern | Instruction, *, element: str | ElementType | None = None, pad: bool = False) -> None:
    """Check that no chunk of a matrix (..., R, C) has more units that are not zero than the pattern keeps; NaN is not zero.

    Args:
        matrix: C must be a multiple of the chunk.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``, or the sparse instruction that has it.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: let the last chunk of a row be shorter, as if zeros followed.

    Raises:
        NotSparseError: with the first such chunk and how many there are.
        ValueError: a wrong shape or dtype.
    """
    coding = pattern_of(pattern)
    kind, bits, shape = _checked_matrix(matrix, coding, element, coding.chunk, pad)
    refuse_crowded("the matrix", bits, shape, kind, coding)


def compress(
    matrix: Any, pattern: str | Pattern | Instruction, *, element: str | ElementType | None = None, pad: bool = False
) -> Compressed:
    """The values and the metadata of a sparse matrix (..., R, C), as the spec's ``choices`` say; NaN is not zero.

    Args:
        matrix: C must be a multiple of two chunks, whose fields share a byte.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``, or the sparse instruction that has it.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: fill the rows with zeros up to such a multiple.

    Returns:
        Values (..., R, C * kept / chunk) of the matrix's dtype, and metadata, uint8 (..., R, C / chunk / 2).

    Raises:
        NotSparseError: a chunk has too many units that are not zero; it names the first.
        ValueError: a wrong shape or dtype.
    """
    coding = pattern_of(pattern)
    group = FIELDS * coding.chunk
    kind, bits, shape = _checked_matrix(matrix, coding, element, group, pad)
    magnitude, word = magnitude_bits(kind), word_of(bits, coding)
    rows, groups = shape[:-1], shape[-1] // group
    values = np.empty((*rows, groups * FIELDS * coding.kept), bits.dtype)
    metadata = np.empty((*rows, groups), np.uint8)
    value_words, marks = values.reshape(-1).view(word), metadata.reshape(-1)
    stored, firsts = FIELDS * coding.stored_units, bases(coding)
    for start, whole, (part,) in parts(shape, group, (bits, group)):
        block = flat(part, whole)
        first, count = start // group, block.size // group
        occupied = occupied_units((block & magnitude) != 0, coding)
        if coding.crowded.take(occupied).any():
            refuse_crowded("the matrix", bits, shape, kind, coding)
        marks[first : first + count] = coding.metadata.take(occupied, axis=0).reshape(-1)[:count]
        places = coding.places.take(marks[first : first + count], axis=0)
        places += firsts[:count]
        # All places are inside; "clip" saves the check of each.
        block.view(word).take(places.reshape(-1), mode="clip", out=value_words[first * stored : (first + count) * stored])
    typed = values.view(elements.as_array(matrix).dtype)
    return Compressed(elements.like(typed, matrix), elements.like(metadata, matrix))


def decompress(
    values: Any,
    metadata: Any,
    pattern: str | Pattern | Instruction,
    shape: Sequence[int] | None = None,
    *,
    element: str | ElementType | None = None,
) -> Any:
    """The sparse matrix (..., R, C) of values (..., R, C * kept / chunk) and row-major metadata, uint8 (..., R, C / chunk / 2).

    The first index of a field places the first value of its chunk, the second the second.  Which fields are legal follows from the
    instruction, or from the instructions of ``mma.sp`` and ``wgmma.sp`` for the type: those for 16-bit types take indices out of order,
    those for FP6 and FP4 do not.

    Args:
        values: the stored elements in any element type's dtype, or as bits.
        metadata: row-major metadata.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``, or the sparse instruction that has it.
        shape: the matrix's own, where it was padded: all of it, or (R, C).
        element: the element type, where ``values`` holds unsigned integers; without it every field of the pattern is legal for them.

    Raises:
        ValueError: shapes that do not belong together, a wrong dtype, or an illegal field; it names the first.
    """
    given = elements.as_array(values, "values")
    coding = narrowed(pattern, _type_of(given, element, pattern_of(pattern).spec))
    marks = row_major(metadata)
    bits = _bits_of(given, coding.spec, "values")
    refuse_unfitting(bits.shape, marks, coding)
    group, word, firsts = FIELDS * coding.chunk, word_of(bits, coding), bases(coding)
    padded = (*marks.shape[:-1], marks.shape[-1] * group)
    matrix = np.zeros(cropped_shape(padded, shape, (1, group), "values"), bits.dtype)
    for _, whole, (part, marked, placed) in parts(padded, group, (bits, FIELDS * coding.kept), (marks, 1), (matrix, group)):
        if not coding.legal_bytes.take(marked).all():
            refuse_illegal(marks, coding)
        places = coding.places.take(marked.reshape(-1), axis=0)
        places += firsts[: len(places)]
        # A part that is not cropped is contiguous and is written at once.
        target = placed.reshape(-1) if placed.shape == whole else np.zeros(math.prod(whole), bits.dtype)
        target.view(word)[places.reshape(-1)] = np.ascontiguousarray(part).reshape(-1).view(word)
        if placed.shape != whole:
            placed[...] = cut(target.reshape(whole), placed.shape)
    return elements.like(matrix.view(given.dtype), values)


# --- arguments ---------------------------------------------------------------------------------------------------------------


def _checked_matrix(
    matrix: Any, coding: Pattern, element: str | ElementType | None, multiple: int, pad: bool
) -> tuple[ElementType, Array, tuple[int, ...]]:
    """The type of a matrix's elements, their bits, and the shape with as many columns as must be."""
    array = elements.as_array(matrix)
    if array.ndim < 2 or not array.size:
        raise ValueError(f"the matrix has shape {array.shape}; it needs rows and columns, at least one of each")
    kind = _element(array, element, coding.spec)
    return kind, elements.codes(array, kind), whole_shape(array.shape, (multiple,), f"the matrix for {coding.name}", pad)


def _element(array: Array, element: str | ElementType | None, spec: Spec) -> ElementType:
    """The type of that name, or the first that has the array's dtype if no other type uses it for its bits; it must have a zero."""
    known = {entry.name: entry for entry in spec.types.elements if not _zero(entry)}
    if isinstance(element, ElementType):
        element = element.name
    if element is not None:
        if not isinstance(element, str) or element not in known:
            raise ValueError(f"unknown element type {element!r}; types with a zero: {', '.join(known)}")
        return known[element]
    ambiguous = [entry.name for entry in known.values() if elements.bits_dtype(entry) == array.dtype]
    if ambiguous:
        raise ValueError(f"the matrix has dtype {array.dtype}, which may hold the bits of {', '.join(ambiguous)}: say which with element=")
    for entry in known.values():
        if elements.dtype(entry) == array.dtype:
            return entry
    allowed = ", ".join(dict.fromkeys(elements.dtype(entry).name for entry in known.values()))
    raise ValueError(f"the matrix has dtype {array.dtype}, which no element type has; allowed: {allowed}")


def _type_of(array: Array, element: str | ElementType | None, spec: Spec) -> str:
    """The name of the element type of compressed values; ``""`` where neither ``element`` nor the dtype says it."""
    known = {entry.name: entry for entry in spec.types.elements}
    if element is None:
        bits = {elements.bits_dtype(entry) for entry in known.values()}
        return next((name for name, entry in known.items() if elements.dtype(entry) == array.dtype and array.dtype not in bits), "")
    name = element.name if isinstance(element, ElementType) else element
    if name not in known or array.dtype not in (elements.dtype(known[name]), elements.bits_dtype(known[name])):
        fitting = [name for name, entry in known.items() if array.dtype in (elements.dtype(entry), elements.bits_dtype(entry))]
        raise ValueError(f"element = {name!r} does not fit values of dtype {array.dtype}; that dtype holds {', '.join(fitting)}")
    return name


@functools.cache
def _zero(element: ElementType) -> float:
    """The number whose bits are all zero."""
    return float(elements.numbers(np.zeros(1, elements.bits_dtype(element)), element)[0])


def _bits_of(array: Array, spec: Spec, what: str) -> Array:
    """The bits of an array of any type's dtype, or of bits already."""
    types = {dtype: None for entry in spec.types.elements for dtype in (elements.dtype(entry), elements.bits_dtype(entry))}
    if array.dtype not in types:
        raise ValueError(f"{what} have dtype {array.dtype}, which no element type has; allowed: {', '.join(dtype.name for dtype in types)}")
    return array.view(f"u{array.dtype.itemsize}")


def refuse_unfitting(shape: tuple[int, ...], marks: Bytes, coding: Pattern) -> None:
    """Refuse values of a shape that metadata does not describe."""
    expected = (*marks.shape[:-1], marks.shape[-1] * FIELDS * coding.kept)
    if shape != expected:
        raise ValueError(f"metadata of shape {marks.shape} describes values of shape {expected} in {coding.name}, not {shape}")


def refuse_illegal(marks: Bytes, coding: Pattern) -> None:
    """Refuse metadata with a field that is illegal."""
    if not coding.legal_bytes.take(marks).all():
        every = fields(marks)
        place = np.unravel_index(int(coding.legal.take(every).argmin()), every.shape)
        *batch, row, chunk = map(int, place)
        field = int(every[place])
        fault = coding.faults[field]
        legal = ", ".join(f"{value:#06b}" for value in np.flatnonzero(coding.legal))
        rule = "the indices of a field must differ" if fault == "equal indices" else f"legal: {legal}"
        raise ValueError(f"the metadata of {at(batch, f'row {row}, chunk {chunk}')} is {field:#06b}, {fault} in {coding.name}; {rule}")


def _checked_mask(mask: Any, shape: tuple[int, ...], padded: tuple[int, ...], coding: Pattern) -> Bools:
    """The mask, checked."""
    chosen = elements.as_array(mask, "the mask")
    if chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(f"the mask must be bool of the matrix's shape {shape}, not {chosen.dtype} of shape {chosen.shape}")
    refuse_crowded("the mask", chosen, padded, None, coding)
    return chosen
