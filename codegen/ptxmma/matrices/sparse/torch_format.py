"""Compressed matrices in the format of PyTorch's CUTLASS back end."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import row_major
from ptxmma.catalog.instructions import catalog
from ptxmma.matrices.product_operands import product_operands
from ptxmma.matrices.sparse.compression import Compressed, refuse_illegal, refuse_unfitting
from ptxmma.matrices.sparse.patterns import Pattern, pattern


def to_torch(values: Any, metadata: Any) -> Compressed:
    """The ``packed`` and ``meta`` of a ``torch.sparse.SparseSemiStructuredTensorCUTLASS``: the values and reordered metadata.

    The metadata becomes (R, words) of ``int16``, or ``int32`` for ``int8``, in the order in which CUTLASS's kernels read it: for
    each pair of columns of words, groups of 8 rows interleaved such that the words that a thread needs follow one another.

    The pattern is the one of the instructions for the type of the values.

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
    refuse_unfitting(packed.shape, marks, coding)
    refuse_illegal(marks, coding)
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
    refuse_unfitting(values.shape, marks, coding)
    refuse_illegal(marks, coding)
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


#: The dtypes that ``SparseSemiStructuredTensorCUTLASS`` holds (its ``_DTYPE_SHAPE_CONSTRAINTS``).
_TORCH_DTYPES = ("int8", "float16", "bfloat16", "float32")


@functools.cache
def _torch_patterns() -> dict[np.dtype[Any], str]:
    """The pattern of each of these dtypes, as the instructions have it for its type."""
    patterns: dict[str, tuple[np.dtype[Any], str]] = {}
    for instruction in catalog().all(lambda entry: entry.sparse and entry.operation == "multiply"):
        element = product_operands(instruction).a.element
        patterns.setdefault(element.numpy, (elements.dtype(element), instruction.metadata.granularity.name))
    return dict(patterns[name] for name in _TORCH_DTYPES)
