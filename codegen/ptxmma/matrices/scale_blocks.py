"""Matrices in blocks that share a scale factor: checks of the arguments, and the parts that are processed at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements as types
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty
from ptxmma.matrices.scale_formats import Format
from ptxmma.model import ElementType

#: What a matrix may hold: two types are computed in float32, float64 in itself.
_INPUTS = tuple(map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)))
#: Elements that are processed at once, so that intermediate results stay in the cache.
_SLAB = 1 << 16


def checked_input(matrix: Any) -> Array:
    """A matrix of numbers that can be quantised."""
    array = types.as_array(matrix)
    if array.dtype not in _INPUTS:
        raise ValueError(f"the matrix has dtype {array.dtype}; it must be {', '.join(map(str, _INPUTS))}")
    return array


def checked_axis(array: Array, form: Format) -> int:
    """The axis of the blocks, counted from the first."""
    axis = integer("axis", form.axis)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis = {axis} is out of range: the matrix has shape {array.shape}")
    not_empty(array, "the matrix")
    return axis % array.ndim


def steps(array: Array, place: int, form: Format) -> list[int]:
    """Of which the sizes of a matrix must be multiples."""
    return [form.block if axis == place else 1 for axis in range(array.ndim)]


def checked_scale(value: float) -> np.float32:
    """A scale of a whole matrix: a positive number that float32 holds."""
    try:
        with np.errstate(over="ignore"):
            scale: np.float32 = np.float32(math.fsum([value]))  # of any real number, but not of text
    except (TypeError, ValueError, OverflowError):
        scale = np.float32(np.nan)
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"tensor_scale = {value!r}; it must be a positive number that float32 holds")
    return scale


def in_blocks(array: Array, place: int, size: int) -> Array:
    """An array as (all before the axis, blocks, elements of a block, all behind the axis); a view wherever strides allow it."""
    return array.reshape(math.prod(array.shape[:place]), -1, size, math.prod(array.shape[place + 1 :]))


def slabs(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Whole blocks of an array, as many as are worked on at once, in order."""
    outer, blocks, size, inner = shape
    most = max(_SLAB // (size * inner), 1)
    rows, run = max(most // blocks, 1), min(most, blocks)
    for row in range(0, outer, rows):
        for first in range(0, blocks, run):
            yield slice(row, row + rows), slice(first, first + run)


def returned(codes: Array, element: ElementType, given: Any) -> Any:
    """Codes in the kind and dtype that the caller gets."""
    typed = types.typed(codes, element)
    if types.is_tensor(given):
        import torch  # here already: the caller has a tensor

        return types.like(typed if hasattr(torch, typed.dtype.name) else codes, given)
    return typed
