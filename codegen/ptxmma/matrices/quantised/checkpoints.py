"""Weights as GPTQ and AWQ store them: codes in words of 32 bits, with zero points and scale factors for each group of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptxmma.arguments import AnyArray
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty
from ptxmma.matrices.quantised.steps import WORD

#: The column, of eight, whose code each nibble of AWQ's words is, the lowest first.
_AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)


class Stored(NamedTuple):
    """Quantised weights W of a product X W: ``W[k, n] = scales[group, n] * (codes[k, n] - zeros[group, n])``, group = k // group_size.

    Attributes:
        codes: ``uint8`` (K, N), one code in each byte: B of a product; ``codes.T`` is A.
        zeros: ``uint8`` (groups, N); ``permute_groups`` makes them ``uint16``.
        scales: (groups, N), in the dtype that they were given in.
        group_size: rows of a group.
        rows: the row of W that each row of ``codes`` is, ``int64`` (K,), where rows were reordered by group: X needs its columns in this
            order.  None where they were not.
    """

    codes: Any
    zeros: Any
    scales: Any
    group_size: int
    rows: Any = None


def from_gptq(
    qweight: AnyArray, qzeros: AnyArray, scales: AnyArray, g_idx: AnyArray | None = None, *, bits: int = 4, zero_offset: int = 1
) -> Stored:
    """Weights as GPTQ stores them: words of consecutive rows.

    Args:
        qweight: ``int32`` (K * bits / 32, N); the lowest code of a word is its first row.
        qzeros: ``int32`` (groups, N * bits / 32); the lowest is its first column.  Symmetric checkpoints, too, have zero points.
        scales: (groups, N).
        g_idx: the group of each row, integers (K,), if activations were ordered ("desc_act").  If rows of a group do not follow each other,
            the result has them sorted by group; each group must have as many.
        bits: 4 or 8.
        zero_offset: the number to add to stored zero points: 1 in checkpoints of the format "gptq", 0 in "gptq_v2".

    Raises:
        ValueError: other shapes, dtypes or numbers, groups of different sizes, or a zero point of more than 255.
    """
    if bits not in (4, 8):
        raise ValueError(f"bits = {bits}; allowed: 4 and 8")
    if zero_offset not in (0, 1):
        raise ValueError(f"zero_offset = {zero_offset}; allowed: 1, for checkpoints of the format 'gptq', and 0, for 'gptq_v2'")
    each = WORD // bits
    words, zeros, factors = _words(qweight, "qweight"), _zero_points(qzeros, bits, zero_offset), _matrix(scales, "scales")
    codes = _codes(words, bits).swapaxes(-1, -2).reshape(words.shape[0] * each, words.shape[1])
    given = _codes(zeros, bits).reshape(zeros.shape[0], -1) + zero_offset
    if given.max() >> 8:
        raise ValueError(f"a zero point is {given.max()}; no conversion takes more than 255: is zero_offset 0?")
    return _stored(codes, given, factors, None if g_idx is None else _groups(g_idx, len(codes)), qweight)


def from_awq(qweight: AnyArray, qzeros: AnyArray, scales: AnyArray) -> Stored:
    """Weights of 4 bits as AWQ stores them ("gemm"): words of eight columns, interleaved as 0, 2, 4, 6, 1, 3, 5, 7.

    Args:
        qweight: ``int32`` (K, N / 8).
        qzeros: ``int32`` (groups, N / 8).
        scales: (groups, N).

    Raises:
        ValueError: other shapes or dtypes.
    """
    order = np.argsort(_AWQ_COLUMNS)
    words, zeros, factors = _words(qweight, "qweight"), _words(qzeros, "qzeros"), _matrix(scales, "scales")
    codes, given = (_codes(array, 4)[..., order].reshape(len(array), -1) for array in (words, zeros))
    return _stored(codes, given, factors, None, qweight)


def _stored(codes: Array, zeros: Array, scales: Array, groups: Array | None, like: Any) -> Stored:
    """The parts, checked against each other."""
    rows, columns = codes.shape
    if zeros.shape != scales.shape or scales.shape[1] != columns:
        raise ValueError(
            f"{columns} columns of codes need zero points and scales (groups, {columns}); they are {zeros.shape} and {scales.shape}"
        )
    if rows % len(scales):
        raise ValueError(f"{rows} rows are no whole groups: there are {len(scales)} groups")
    size, order = rows // len(scales), None
    if groups is not None:
        if not np.array_equal(np.sort(groups), np.arange(rows) // size):
            raise ValueError(f"g_idx must have each of the groups 0 to {len(scales) - 1} {size} times")
        if not np.array_equal(groups, np.arange(rows) // size):
            order = np.argsort(groups, kind="stable")
            codes = codes[order]
    parts = (np.ascontiguousarray(part) for part in (codes.astype(np.uint8), zeros.astype(np.uint8), scales))
    codes, zeros, scales = (elements.like(part, like) for part in parts)
    return Stored(codes, zeros, scales, size, None if order is None else elements.like(order, like))


def _codes(words: Array, bits: int) -> Array:
    """The codes of words, the lowest first, on an axis of their own."""
    shifts = np.arange(0, WORD, bits, dtype=np.uint32)
    codes: Array = words[..., None] >> shifts & np.uint32((1 << bits) - 1)
    return codes


def _words(value: AnyArray, what: str) -> Array:
    return _matrix(elements.bits(value, WORD // 8, what), what)


def _zero_points(value: Any, bits: int, zero_offset: int) -> Array:
    """The words of zero points, which symmetric weights have, too."""
    if value is None:
        middle = 1 << bits - 1
        word = sum(middle - zero_offset << shift for shift in range(0, WORD, bits))
        raise ValueError(
            f"qzeros is None; the zero points of a symmetric checkpoint are {middle}: "
            f"give np.full((groups, N // {WORD // bits}), {word:#x}, np.uint32), as its file has them"
        )
    return _words(value, "qzeros")


def _matrix(value: Any, what: str) -> Array:
    array = elements.as_array(value, what)
    if array.ndim != 2:
        raise ValueError(f"{what} has shape {array.shape}; it has two axes")
    not_empty(array, what)
    return array


def _groups(value: AnyArray, rows: int) -> Array:
    array = elements.as_array(value, "g_idx")
    if array.shape != (rows,) or array.dtype.kind not in "iu":
        raise ValueError(f"g_idx is {array.dtype} of shape {array.shape}; it is an integer for each of {rows} rows")
    return array
