"""Checks the arguments of compression and its inverse."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.metadata_bytes import FIELDS, fields
from ptxmma.arrays.shapes import whole_shape
from ptxmma.matrices.sparse.blocks import Bools, Bytes, at, refuse_crowded
from ptxmma.matrices.sparse.patterns import Pattern
from ptxmma.model import ElementType, Spec


def checked_matrix(
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


def type_of(array: Array, element: str | ElementType | None, spec: Spec) -> str:
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


def bits_of(array: Array, spec: Spec, what: str) -> Array:
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


def checked_mask(mask: Any, shape: tuple[int, ...], padded: tuple[int, ...], coding: Pattern) -> Bools:
    """The mask, checked."""
    chosen = elements.as_array(mask, "the mask")
    if chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(f"the mask must be bool of the matrix's shape {shape}, not {chosen.dtype} of shape {chosen.shape}")
    refuse_crowded("the mask", chosen, padded, None, coding)
    return chosen
