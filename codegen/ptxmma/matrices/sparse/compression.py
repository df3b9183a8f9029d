"""Prunes, checks, compresses and decompresses sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.metadata_bytes import FIELDS, row_major
from ptxmma.arrays.shapes import cropped_shape
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.sparse.arguments import bits_of, checked_mask, checked_matrix, refuse_illegal, refuse_unfitting, type_of
from ptxmma.matrices.sparse.blocks import bases, cut, flat, largest, magnitude_bits, occupied_units, parts, refuse_crowded, word_of
from ptxmma.matrices.sparse.patterns import Pattern, narrowed, pattern_of
from ptxmma.matrices.sparse.torch_format import Compressed
from ptxmma.model import ElementType


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
    kind, bits, shape = checked_matrix(matrix, coding, element, coding.chunk, pad)
    masks = [] if mask is None else [checked_mask(mask, bits.shape, shape, coding)]
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
    kind, bits, shape = checked_matrix(matrix, coding, element, coding.chunk, pad)
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
    kind, bits, shape = checked_matrix(matrix, coding, element, group, pad)
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
    coding = narrowed(pattern, type_of(given, element, pattern_of(pattern).spec))
    marks = row_major(metadata)
    bits = bits_of(given, coding.spec, "values")
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
