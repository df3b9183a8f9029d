"""Structured sparsity: prune a matrix, check it, compress it to values and metadata, and back (PTX ISA 9.7.14.6.1).

A pattern is named as in the spec: of each chunk of 4 elements of a row ``"2:4"`` keeps 2, of each 2 ``"1:2"`` keeps 1, and of each
8, taken in pairs, ``"4:8"`` keeps 2 pairs.  A sparse matrix (..., R, C) is compressed to

- values (..., R, C * kept / chunk), of the matrix's own dtype, and
- row-major metadata, ``uint8`` (..., R, C / chunk / 2): a 4-bit field for each chunk, two in a byte, the earlier chunk in the low four
  bits.  Its bytes as little-endian 16-bit words are PyTorch's metadata before the reordering that :func:`to_torch` does.

Matrices are arrays of the dtype of an element type, or of unsigned integers that hold its bits, with ``element`` to say which type that
is; torch tensors on the CPU serve as well, and give torch tensors.  Negative zero counts as zero.  ``uint8`` is the dtype of u8 and
holds the bits of every narrower type, and of those of 8 bits: it always needs ``element``.

cuSPARSELt's compressed buffers are not converted: the values come first in them, but NVIDIA does not document the metadata that
follows and reserves to change it.  Go through the sparse matrix: for cuSPARSELt give :func:`decompress`'s result to its own compression.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import FIELD_BITS, FIELDS, row_major
from ptxmma.arrays.metadata_bytes import fields as fields
from ptxmma.arrays.metadata_bytes import from_fields as from_fields
from ptxmma.arrays.shapes import cropped_shape, whole_shape
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.model import ElementType, Spec, matches

_Bytes = npt.NDArray[np.uint8]
_Bools = npt.NDArray[np.bool_]

#: Elements that are worked on at a time, so that what is worked out about them stays in the cache.
_BLOCK = 1 << 16


class NotSparseError(ValueError):
    """A chunk has more units that are not zero than its pattern keeps.

    Attributes:
        row: of the first such chunk; column: its first column; chunk: its number in the row.
        count: how many chunks there are like that in all.
    """

    def __init__(self, message: str, row: int, column: int, chunk: int, count: int) -> None:
        super().__init__(message)
        self.row, self.column, self.chunk, self.count = row, column, chunk, count

    def __reduce__(self) -> tuple[type[NotSparseError], tuple[str, int, int, int, int]]:
        return type(self), (str(self), self.row, self.column, self.chunk, self.count)


class Compressed(NamedTuple):
    """A compressed matrix: values (..., R, C * kept / chunk) and row-major metadata, uint8 (..., R, C / chunk / 2)."""

    values: Any
    metadata: Any


class Pattern:
    """A pattern of structured sparsity with the tables that compression and its inverse look up.

    Attributes:
        name: ``"2:4"``.
        chunk: elements that one field describes; kept: those of them that are stored; unit: elements kept or dropped together.
        units: units of a chunk; stored_units: how many of them are stored.
    """

    def __init__(self, spec: Spec, name: str) -> None:
        entries = [entry for entry in spec.granularities if entry.name == name]
        first = entries[0]
        if first.index_bits * first.indices != FIELD_BITS:
            raise ValueError(
                f"{name} has fields of {first.index_bits * first.indices} bits; row-major metadata holds fields of {FIELD_BITS}"
            )
        self.spec = spec
        self.name, self.chunk, self.kept, self.unit = name, first.chunk, first.kept, first.unit
        self.units, self.stored_units = first.units, first.kept // first.unit
        self.fields = {int(occupied, 2): int(field, 2) for occupied, field in spec.choice(first).fields.items()}
        legal = list(dict.fromkeys(field for entry in entries for field in entry.legal))
        self.faults = first.faults(legal)

        # By field; what an illegal one places is never looked at.
        self.legal = ~np.isin(np.arange(1 << FIELD_BITS), list(self.faults))
        places = np.zeros((1 << FIELD_BITS, self.stored_units), np.intp)
        for field in legal:
            places[int(field, 2)] = first.kept_units(field)
        # By byte of metadata: whether both fields are legal, and the units of two chunks that its values are.
        low, high = np.arange(256) & 15, np.arange(256) >> 4
        self.legal_bytes = self.legal[low] & self.legal[high]
        self.places = np.concatenate([places[low], self.units + places[high]], axis=1)
        # By byte whose bits say which of eight units are not zero: how many chunks have too many, and the metadata.
        chunks = [[byte >> start & (1 << self.units) - 1 for start in range(0, 8, self.units)] for byte in range(256)]
        self.crowded = np.array([sum(chunk not in self.fields for chunk in row) for row in chunks], np.uint8)
        self.metadata = from_fields(np.array([[self.fields.get(chunk, 0) for chunk in row] for row in chunks], np.uint8))
        for table in (self.legal, self.legal_bytes, self.places, self.crowded, self.metadata):
            table.flags.writeable = False

    def __repr__(self) -> str:
        return f"<Pattern {self.name}>"


def pattern(name: str, *, database: DatabaseLike = None) -> Pattern:
    """The pattern of that name in a database, which the functions of this module take in the place of its name.

    Raises:
        ValueError: the database has no such pattern.
    """
    held = catalog(database).database
    known = dict.fromkeys(entry.name for entry in held.spec.granularities)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown pattern {name!r}; known: {', '.join(known)}")
    key = ("sparse", name)
    if key not in held.memo:
        held.memo[key] = Pattern(held.spec, name)
    found: Pattern = held.memo[key]
    return found


# --- matrices -------------------------------------------------------------------------------------------------------------------


def prune(matrix: Any, pattern: str | Pattern, mask: Any = None, *, element: str | ElementType | None = None, pad: bool = False) -> Any:
    """A copy of a matrix (..., R, C) with zeros where the pattern drops elements.

    Without ``mask``, each chunk keeps its units of the largest magnitude, of equal ones the earlier; the magnitude of a pair is the sum
    of its elements' magnitudes, in double precision.  With ``mask``, a boolean array of the same shape, exactly the elements stay where
    it is true.  The zeros of the result are positive.

    Args:
        matrix: C must be a multiple of the chunk.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``.
        mask: what to keep.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: let the last chunk of a row be shorter, as if zeros followed.

    Raises:
        NotSparseError: the mask keeps too many units of a chunk.
        ValueError: a wrong shape or dtype; without a mask, NaN or infinity.
    """
    coding = _pattern(pattern)
    held, bits, shape = _matrix(matrix, coding, element, coding.chunk, pad)
    masks = [] if mask is None else [_mask(mask, bits.shape, shape, coding)]
    sign = ~_magnitude_bits(held)
    pruned = np.empty(bits.shape, bits.dtype)
    for start, whole, (part, kept, *mask_part) in _parts(shape, coding.chunk, *((array, coding.chunk) for array in (bits, pruned, *masks))):
        block = _flat(part, whole)
        keep = _flat(mask_part[0], whole) if mask_part else _largest(block, start, shape, coding, held)
        keep = keep & (block != sign)
        np.multiply(part, _cut(keep.reshape(whole), part.shape), out=kept)
    return elements.like(pruned.view(elements.as_array(matrix).dtype), matrix)


def check(matrix: Any, pattern: str | Pattern, *, element: str | ElementType | None = None, pad: bool = False) -> None:
    """Check that no chunk of a matrix (..., R, C) has more units that are not zero than the pattern keeps; NaN is not zero.

    Args:
        matrix: C must be a multiple of the chunk.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: let the last chunk of a row be shorter, as if zeros followed.

    Raises:
        NotSparseError: with the first such chunk and how many there are.
        ValueError: a wrong shape or dtype.
    """
    coding = _pattern(pattern)
    held, bits, shape = _matrix(matrix, coding, element, coding.chunk, pad)
    _refuse_crowded("the matrix", bits, shape, held, coding)


def compress(matrix: Any, pattern: str | Pattern, *, element: str | ElementType | None = None, pad: bool = False) -> Compressed:
    """The values and the metadata of a sparse matrix (..., R, C), as the spec's ``choices`` say; NaN is not zero.

    Args:
        matrix: C must be a multiple of two chunks, whose fields share a byte.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``.
        element: the element type, where ``matrix`` holds unsigned integers.
        pad: fill the rows with zeros up to such a multiple.

    Returns:
        Values (..., R, C * kept / chunk) of the matrix's dtype, and metadata, uint8 (..., R, C / chunk / 2).

    Raises:
        NotSparseError: a chunk has too many units that are not zero; it names the first.
        ValueError: a wrong shape or dtype.
    """
    coding = _pattern(pattern)
    group = FIELDS * coding.chunk
    held, bits, shape = _matrix(matrix, coding, element, group, pad)
    magnitude, word = _magnitude_bits(held), _word(bits, coding)
    rows, groups = shape[:-1], shape[-1] // group
    values = np.empty((*rows, groups * FIELDS * coding.kept), bits.dtype)
    metadata = np.empty((*rows, groups), np.uint8)
    value_words, marks = values.reshape(-1).view(word), metadata.reshape(-1)
    stored, bases = FIELDS * coding.stored_units, _bases(coding)
    for start, whole, (part,) in _parts(shape, group, (bits, group)):
        block = _flat(part, whole)
        first, count = start // group, block.size // group
        occupied = _occupied((block & magnitude) != 0, coding)
        if coding.crowded.take(occupied).any():
            _refuse_crowded("the matrix", bits, shape, held, coding)
        found = coding.metadata.take(occupied, axis=0).reshape(-1)[:count]
        marks[first : first + count] = found
        places = coding.places.take(found, axis=0)
        places += bases[:count]
        # All places are inside; "clip" saves the check of each.
        block.view(word).take(places.reshape(-1), mode="clip", out=value_words[first * stored : (first + count) * stored])
    typed = values.view(elements.as_array(matrix).dtype)
    return Compressed(elements.like(typed, matrix), elements.like(metadata, matrix))


def decompress(values: Any, metadata: Any, pattern: str | Pattern, shape: Sequence[int] | None = None) -> Any:
    """The sparse matrix (..., R, C) of values (..., R, C * kept / chunk) and row-major metadata, uint8 (..., R, C / chunk / 2).

    The first index of a field places the first value of its chunk, the second the second: indices out of order do no harm.

    Args:
        values: of any element type's dtype, or bits.
        metadata: row-major metadata.
        pattern: ``"2:4"``, ``"1:2"``, ``"4:8"``.
        shape: the matrix's own, where it was padded: all of it, or (R, C).

    Raises:
        ValueError: shapes that do not belong together, a wrong dtype, or an illegal field; it names the first.
    """
    coding = _pattern(pattern)
    given = elements.as_array(values, "values")
    marks = row_major(metadata)
    bits = _bits(given, coding.spec, "values")
    _refuse_unfitting(bits.shape, marks, coding)
    group, word, bases = FIELDS * coding.chunk, _word(bits, coding), _bases(coding)
    padded = (*marks.shape[:-1], marks.shape[-1] * group)
    matrix = np.zeros(cropped_shape(padded, shape, (1, group), "values"), bits.dtype)
    for _, whole, (part, found, placed) in _parts(padded, group, (bits, FIELDS * coding.kept), (marks, 1), (matrix, group)):
        if not coding.legal_bytes.take(found).all():
            _refuse_illegal(marks, coding)
        places = coding.places.take(found.reshape(-1), axis=0)
        places += bases[: len(places)]
        # What is not cropped lies in one piece, to be written at once.
        target = placed.reshape(-1) if placed.shape == whole else np.zeros(math.prod(whole), bits.dtype)
        target.view(word)[places.reshape(-1)] = np.ascontiguousarray(part).reshape(-1).view(word)
        if placed.shape != whole:
            placed[...] = _cut(target.reshape(whole), placed.shape)
    return elements.like(matrix.view(given.dtype), values)


# --- PyTorch --------------------------------------------------------------------------------------------------------------------


def to_torch(values: Any, metadata: Any) -> Compressed:
    """What ``torch.sparse.SparseSemiStructuredTensorCUTLASS`` holds as ``packed`` and ``meta``: the values and reordered metadata.

    The metadata becomes (R, words) of ``int16``, or ``int32`` for ``int8``, in the order in which CUTLASS's kernels read it: for
    each pair of columns of words, groups of 8 rows interleaved such that the words that a thread needs follow one another.

    The pattern is that which the instructions have for the type of the values.

    Args:
        values: (R, C * kept / chunk), as :func:`compress` gives them, of a dtype that PyTorch's class holds: ``int8``, ``float16``,
            ``bfloat16`` or ``float32``; R must be a multiple of 32, or of 16 for ``int8``.
        metadata: uint8 (R, C / chunk / 2); a row must have whole pairs of words.

    Returns:
        Two torch tensors: ``SparseSemiStructuredTensorCUTLASS(shape, packed, meta, None, None, None)`` takes them.  The values share
        their memory with what was given, where that is contiguous and may be written.

    Raises:
        ValueError: other shapes, another dtype, values and metadata that do not belong together, or an illegal field.
    """
    import torch

    packed = elements.as_array(values, "values")
    marks = np.ascontiguousarray(row_major(metadata))
    word, group = _torch_word(packed), _torch_rows(packed)
    coding = _torch_pattern(packed, "values")
    _refuse_unfitting(packed.shape, marks, coding)
    _refuse_illegal(marks, coding)
    if marks.ndim != 2:
        raise ValueError(f"values {packed.shape} and metadata {marks.shape} must be matrices")
    if marks.shape[0] % group or marks.shape[1] % (2 * word.itemsize):
        raise ValueError(
            f"metadata has shape {marks.shape}; with values of {packed.dtype} it needs a multiple of {group} rows"
            f" and of {2 * word.itemsize} bytes in a row: pad the matrix with zeros"
        )
    words = marks.view(word)
    axes = words.reshape(_torch_axes(words.shape, group))
    meta = np.ascontiguousarray(axes.transpose(_TORCH_ORDER)).reshape(words.shape)
    tensor = torch.empty(0)  # the kind of result that is wanted
    return Compressed(elements.like(np.require(packed, requirements=["C", "W"]), tensor), elements.like(meta, tensor))


def from_torch(packed: Any, meta: Any) -> Compressed:
    """Values and row-major metadata of what a ``SparseSemiStructuredTensorCUTLASS`` holds as ``packed`` and ``meta``.

    Args:
        packed: the values (R, C * kept / chunk).
        meta: the reordered metadata (R, words) of ``int16``, or ``int32`` for ``int8``.

    Returns:
        ``packed`` itself, and row-major metadata.

    Raises:
        ValueError: as :func:`to_torch`, or another dtype of ``meta``.
    """
    values = elements.as_array(packed, "packed")
    words = elements.as_array(meta, "meta")
    coding = _torch_pattern(values, "packed")
    word, group = _torch_word(values), _torch_rows(values)
    if words.dtype != word:
        raise ValueError(f"meta has dtype {words.dtype}; with packed of {values.dtype} it is {word.name}")
    if words.ndim != 2 or values.ndim != 2 or len(words) != len(values):
        raise ValueError(f"packed {values.shape} and meta {words.shape} must be matrices with the same number of rows")
    if not words.size or words.shape[0] % group or words.shape[1] % 2:
        raise ValueError(f"meta has shape {words.shape}; it needs a multiple of {group} rows and of 2 columns, at least one of each")
    axes = _torch_axes(words.shape, group)
    reordered = np.ascontiguousarray(words).reshape([axes[axis] for axis in _TORCH_ORDER])
    marks = np.ascontiguousarray(reordered.transpose(np.argsort(_TORCH_ORDER))).reshape(words.shape).view(np.uint8)
    _refuse_unfitting(values.shape, marks, coding)
    _refuse_illegal(marks, coding)
    return Compressed(packed, elements.like(marks, meta))


#: CUTLASS holds metadata by columns (ColumnMajorInterleaved<2>), two of them side by side, after moving rows such that the 8-row parts
#: of a group interleave, and then turning each block of 2 x 2 words.  All of that moves whole axes: rows are
#: (group, half of the parts, part, row of 8), columns (pair, column); these are the axes in the order in which memory has them.
_TORCH_ORDER = (4, 0, 3, 1, 5, 2)
_TORCH_PART = 8


def _torch_axes(shape: tuple[int, ...], group: int) -> tuple[int, ...]:
    return shape[0] // group, group // _TORCH_PART // 2, 2, _TORCH_PART, shape[1] // 2, 2


def _torch_rows(values: Array) -> int:
    """Rows of a group: as many 8-row parts as there are words in 8 bytes."""
    return _TORCH_PART * 8 // _torch_word(values).itemsize


def _torch_word(values: Array) -> np.dtype[Any]:
    """The integer that holds the metadata of values of this dtype."""
    return np.dtype("<i4" if values.dtype.itemsize == 1 else "<i2")


def _torch_pattern(values: Array, what: str) -> Pattern:
    """The pattern of values of this dtype, or of bits."""
    known = _torch_patterns()
    if values.dtype not in known:
        allowed = ", ".join(dtype.name for dtype in known)
        raise ValueError(f"{what} have dtype {values.dtype}; PyTorch's SparseSemiStructuredTensorCUTLASS holds {allowed}")
    return pattern(known[values.dtype])


#: What ``SparseSemiStructuredTensorCUTLASS`` holds (its ``_DTYPE_SHAPE_CONSTRAINTS``).
_TORCH_DTYPES = ("int8", "float16", "bfloat16", "float32")


@functools.cache
def _torch_patterns() -> dict[np.dtype[Any], str]:
    """The pattern of each of these dtypes, as the instructions have it for its type."""
    spec = catalog().database.spec
    return {
        elements.dtype(entry): found.name
        for name in _TORCH_DTYPES
        for entry in spec.types.elements
        for found in spec.granularities
        if entry.numpy == name and matches(found.of, {"atype": entry.name})
    }


# --- what callers give ----------------------------------------------------------------------------------------------------------


def _pattern(given: str | Pattern) -> Pattern:
    return given if isinstance(given, Pattern) else pattern(given)


def _matrix(
    matrix: Any, coding: Pattern, element: str | ElementType | None, multiple: int, pad: bool
) -> tuple[ElementType, Array, tuple[int, ...]]:
    """The type of a matrix's elements, their bits, and the shape with as many columns as must be."""
    array = elements.as_array(matrix)
    if array.ndim < 2 or not array.size:
        raise ValueError(f"the matrix has shape {array.shape}; it needs rows and columns, at least one of each")
    held = _element(array, element, coding.spec)
    return held, elements.codes(array, held), whole_shape(array.shape, (multiple,), f"the matrix for {coding.name}", pad)


def _element(array: Array, element: str | ElementType | None, spec: Spec) -> ElementType:
    """The type that is asked for, or the first that has the array's dtype if it holds no other's bits; it must have a zero."""
    known = {entry.name: entry for entry in spec.types.elements if not _zero(entry)}
    if isinstance(element, ElementType):
        element = element.name
    if element is not None:
        if not isinstance(element, str) or element not in known:
            raise ValueError(f"unknown element type {element!r}; types with a zero: {', '.join(known)}")
        return known[element]
    holds = [entry.name for entry in known.values() if elements.bits_dtype(entry) == array.dtype]
    if holds:
        raise ValueError(f"the matrix has dtype {array.dtype}, which may hold the bits of {', '.join(holds)}: say which with element=")
    for entry in known.values():
        if elements.dtype(entry) == array.dtype:
            return entry
    allowed = ", ".join(dict.fromkeys(elements.dtype(entry).name for entry in known.values()))
    raise ValueError(f"the matrix has dtype {array.dtype}, which no element type has; allowed: {allowed}")


@functools.cache
def _zero(element: ElementType) -> float:
    """The number of which all bits are zero."""
    return float(elements.numbers(np.zeros(1, elements.bits_dtype(element)), element)[0])


def _bits(array: Array, spec: Spec, what: str) -> Array:
    """The bits of an array of any type's dtype, or of bits already."""
    types = {dtype: None for entry in spec.types.elements for dtype in (elements.dtype(entry), elements.bits_dtype(entry))}
    if array.dtype not in types:
        raise ValueError(f"{what} have dtype {array.dtype}, which no element type has; allowed: {', '.join(dtype.name for dtype in types)}")
    return array.view(f"u{array.dtype.itemsize}")


def _refuse_unfitting(shape: tuple[int, ...], marks: _Bytes, coding: Pattern) -> None:
    """Refuse values of a shape that metadata does not describe."""
    expected = (*marks.shape[:-1], marks.shape[-1] * FIELDS * coding.kept)
    if shape != expected:
        raise ValueError(f"metadata of shape {marks.shape} describes values of shape {expected} in {coding.name}, not {shape}")


def _refuse_illegal(marks: _Bytes, coding: Pattern) -> None:
    """Refuse metadata with a field that is illegal."""
    if not coding.legal_bytes.take(marks).all():
        found = fields(marks)
        place = np.unravel_index(int(coding.legal.take(found).argmin()), found.shape)
        *batch, row, chunk = map(int, place)
        field = int(found[place])
        fault = coding.faults[field]
        legal = ", ".join(f"{value:#06b}" for value in np.flatnonzero(coding.legal))
        rule = "the indices of a field must differ" if fault == "equal indices" else f"legal: {legal}"
        raise ValueError(f"the metadata of {_at(batch, f'row {row}, chunk {chunk}')} is {field:#06b}, {fault} in {coding.name}; {rule}")


def _mask(mask: Any, shape: tuple[int, ...], padded: tuple[int, ...], coding: Pattern) -> _Bools:
    """The mask, checked."""
    chosen = elements.as_array(mask, "the mask")
    if chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(f"the mask must be bool of the matrix's shape {shape}, not {chosen.dtype} of shape {chosen.shape}")
    _refuse_crowded("the mask", chosen, padded, None, coding)
    return chosen


# --- blocks of elements ---------------------------------------------------------------------------------------------------------


def _parts(shape: tuple[int, ...], group: int, *arrays: tuple[Array, int]) -> Iterator[tuple[int, tuple[int, ...], list[Array]]]:
    """Arrays side by side, in parts of at most ``_BLOCK`` elements of a matrix or of one group of neighbours.

    Parts are views, whatever the strides, so that no more is copied than what is worked on.

    Args:
        shape: of the matrix, padding included.
        group: elements of a row that stay together.
        arrays: what is cut, of the same shape but for the last size: how many elements stand for a group, comes with each.  The last
            groups may lack elements, where the matrix is padded.

    Yields:
        The number of a part's first element, the part's shape, padding included, and that part of each array.
    """
    counts = (*shape[:-1], shape[-1] // group)
    if all(array.flags.c_contiguous and array.shape[-1] == counts[-1] * size for array, size in arrays):
        counts, arrays = (math.prod(counts),), tuple((array.reshape(-1), size) for array, size in arrays)
    most = max(1, _BLOCK // group)
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


def _flat(part: Array, whole: tuple[int, ...]) -> Array:
    """A part, padded with zeros and contiguous, of one dimension."""
    return np.ascontiguousarray(elements.extended(part, whole)).reshape(-1)


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """An array without its padding."""
    return array[tuple(map(slice, shape))]


@functools.cache
def _magnitude_bits(element: ElementType) -> Any:
    """All bits but the sign of a floating-point number, so that what they select is 0 for both zeros; all bits of other types."""
    kind = elements.bits_dtype(element).type
    return ~np.array([-0.0]).astype(elements.dtype(element)).view(kind)[0] if element.form == "float" else ~kind(0)


@functools.cache
def _largest_bits(element: ElementType) -> Any:
    """The bits of the largest finite number of a floating-point type."""
    largest = ml_dtypes.finfo(elements.dtype(element)).max  # type: ignore[no-untyped-call]  # it has no annotations
    return np.array([largest]).astype(elements.dtype(element)).view(elements.bits_dtype(element))[0]


def _word(bits: Array, coding: Pattern) -> np.dtype[Any]:
    """What holds a unit, to be moved as a whole."""
    size = bits.dtype.itemsize * coding.unit
    return np.dtype(f"u{size}" if size <= 8 else f"V{size}")


def _bases(coding: Pattern) -> npt.NDArray[np.intp]:
    """The first unit of each pair of chunks that a part may have, as a column."""
    pairs = max(1, _BLOCK // (FIELDS * coding.chunk))
    return np.arange(0, pairs * FIELDS * coding.units, FIELDS * coding.units, dtype=np.intp)[:, None]


def _occupied(nonzero: _Bools, coding: Pattern) -> _Bytes:
    """A bit for each unit of a block: whether any of its elements is not zero."""
    return np.packbits(nonzero.view(f"u{coding.unit}"), bitorder="little")


def _largest(block: Array, start: int, shape: tuple[int, ...], coding: Pattern, held: ElementType) -> _Bools:
    """Which elements of a block are in the units of the largest magnitude of their chunk."""
    magnitudes = block & _magnitude_bits(held)
    if held.form == "float":
        _refuse_infinite(block, magnitudes, start, shape, held)
    if held.form != "float" or coding.unit > 1:  # the bits of floating-point numbers are in the order of their magnitudes
        magnitudes = np.abs(elements.numbers(block, held))
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


def _refuse_infinite(block: Array, magnitudes: Array, start: int, shape: tuple[int, ...], held: ElementType) -> None:
    beyond = magnitudes > _largest_bits(held)
    if beyond.any():
        place = int(beyond.argmax())
        *batch, row, column = map(int, np.unravel_index(start + place, shape))
        number = float(elements.typed(block[place : place + 1], held)[0])
        raise ValueError(f"{_at(batch, f'row {row}, column {column}')} is {number}, which has no magnitude to compare; give a mask")


def _refuse_crowded(what: str, array: Array, shape: tuple[int, ...], held: ElementType | None, coding: Pattern) -> None:
    """Raise :class:`NotSparseError` where bits of a type, or a mask, have too many units in a chunk that are not zero.

    ``shape`` is that of the array with its padding.
    """
    magnitude = _magnitude_bits(held) if held else True
    count, place, many = 0, 0, 0
    for start, whole, (part,) in _parts(shape, coding.chunk, (array, coding.chunk)):
        occupied = _occupied((_flat(part, whole) & magnitude) != 0, coding)
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
        where = _at(batch, f"row {row}, column {chunk * coding.chunk} (chunk {chunk} of the row)")
        units = "elements" if coding.unit == 1 else f"groups of {coding.unit} elements"
        fault = f"keeps {many} of {coding.units} {units}" if held is None else f"has {many} of {coding.units} {units} that are not zero"
        others = "1 chunk is" if count == 1 else f"{count} chunks are"
        advice = "" if held is None else "; prune() makes a matrix sparse"
        message = f"{what} {fault} in {where}; {coding.name} allows {coding.stored_units}, and {others} like that{advice}"
        raise NotSparseError(message, row, chunk * coding.chunk, chunk, count)


def _at(batch: Iterable[int], where: str) -> str:
    numbers = tuple(batch)
    return f"{where} of matrix {numbers}" if numbers else where
