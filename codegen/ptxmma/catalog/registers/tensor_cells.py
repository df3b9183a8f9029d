"""Matrices, scale factors and metadata to an image of tensor memory, and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements, metadata_bytes
from ptxmma.arrays.elements import Array
from ptxmma.catalog.tensor_places import Place, TensorPlaces

if TYPE_CHECKING:
    from ptxmma.catalog.operands.tensor_operand import TensorOperand


_BYTE = 8


def pack(operand: TensorOperand, matrix: Any, memory: Any, address: int, selections: dict[str, Any]) -> Array:
    """See :meth:`ptxmma.TensorOperand.pack`."""
    placed = operand.placed()
    codes = _codes(operand, placed, matrix)
    image = _image(placed, memory)
    cells = image.reshape(placed.numbers["ctas"], *image.shape[-2:])
    word = image.dtype.type
    mask = (1 << placed.unit) - 1 if placed.unit < placed.memory.cell else (1 << placed.memory.cell) - 1
    for place in _copies(placed, selections):
        for bit in np.unique(place.bit):
            here = np.broadcast_to(place.bit, codes.shape) == bit
            at = _inside(placed, Place(*(np.broadcast_to(part, codes.shape)[here] for part in place)), address, image.shape[-1])
            kept = cells[at] & ~word(mask << int(bit) - placed.shift)
            cells[at] = kept | codes[here].astype(word) << word(bit)
    return image


def unpack(operand: TensorOperand, memory: Any, address: int, selections: dict[str, Any]) -> Any:
    """See :meth:`ptxmma.TensorOperand.unpack`."""
    placed = operand.placed()
    image = _image(placed, memory)
    cells = image.reshape(placed.numbers["ctas"], *image.shape[-2:])
    place = next(_copies(placed, selections))
    shape = tuple(placed.sizes[axis] for axis in placed.coordinates)
    at = _inside(placed, Place(*(np.broadcast_to(part, shape) for part in place)), address, image.shape[-1])
    width = min(placed.unit, operand.element.bits) if operand.element is not None else placed.unit
    codes = cells[at] >> np.broadcast_to(place.bit, shape).astype(image.dtype) & image.dtype.type((1 << width) - 1)
    return elements.like(_matrix(operand, codes), memory)


def _copies(placed: TensorPlaces, selections: dict[str, Any]) -> Iterator[Place]:
    """The places of everything in each copy, over the axes in their order."""
    sizes = [placed.sizes[axis] for axis in placed.coordinates]
    axes: dict[str, Any] = dict(zip(placed.coordinates, np.meshgrid(*map(np.arange, sizes), indexing="ij", sparse=True), strict=True))
    for numbers in itertools.product(*(range(placed.sizes[axis]) for axis in placed.layout.apart)):
        copy: dict[str, Any] = dict(zip(placed.layout.apart, numbers, strict=True))
        yield placed.locate(**axes, **copy, **selections)


def _inside(placed: TensorPlaces, place: Place, address: int, columns: int) -> tuple[Array, Array, Array]:
    """The cells of places, counted from an address, as an index.

    Raises:
        ValueError: they leave the memory, or the address is not at a lane at which the operand may start.
    """
    base = integer("address", address)
    lane, column = placed.memory.parts(base)
    if base < 0 or lane not in placed.layout.align:
        raise ValueError(f"address {base:#x} is lane {lane}; it must be lane {placed.first_lanes}")
    last = int(np.max(place.column)) + column
    if last >= columns:
        raise ValueError(f"columns reach from {column} to {last}; the memory has {columns}")
    return place.cta, place.lane + lane, place.column + column


def _image(placed: TensorPlaces, memory: Any) -> Array:
    """The image of tensor memory, checked; a new one of zeros for None."""
    lanes, ctas = placed.memory.lanes, placed.numbers["ctas"]
    shape = (lanes,) if ctas == 1 else (ctas, lanes)
    if memory is None:
        return np.zeros((*shape, placed.memory.least_columns), f"u{placed.memory.cell // _BYTE}")
    image = elements.bits(memory, placed.memory.cell // 8, "memory")
    if image.shape[:-1] != shape:
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"memory has shape {image.shape}; it takes ({wanted}, columns) of {placed.memory.cell} bits")
    return image


def _codes(operand: TensorOperand, placed: TensorPlaces, matrix: Any) -> Array:
    """The bits of everything that lies there, over the axes in their order.

    Raises:
        ValueError: another shape or dtype.
    """
    sizes = tuple(placed.sizes[axis] for axis in placed.coordinates)
    if operand.element is None:
        whole = placed.unit == _BYTE
        rows = elements.bits(matrix, 1, "the data") if whole else metadata_bytes.row_major(matrix)
        fields = _BYTE // placed.unit
        if rows.shape != (sizes[0], sizes[1] // fields):
            what = "the data" if whole else "metadata"
            raise ValueError(f"{what} has shape {rows.shape}; it takes ({sizes[0]}, {sizes[1] // fields})")
        return elements.split(rows, placed.unit)
    codes = elements.codes(matrix, operand.element, operand.name)
    shape = _shape(placed)
    if codes.shape != shape:
        raise ValueError(f"{operand.name} has shape {codes.shape}; it takes ({', '.join(map(str, shape))})")
    return codes if shape == sizes else codes.swapaxes(-1, -2)


def _matrix(operand: TensorOperand, codes: Array) -> Array:
    """What :func:`_codes` takes."""
    if operand.element is None:
        return elements.joined(codes.astype(np.uint8), operand.placed().unit)
    turned = codes if _shape(operand.placed()) == codes.shape else codes.swapaxes(-1, -2)
    return elements.typed(np.ascontiguousarray(turned).astype(elements.bits_dtype(operand.element)), operand.element)


def _shape(placed: TensorPlaces) -> tuple[int, ...]:
    """The shape of a matrix as A or B itself lies: what belongs to columns has them last."""
    return tuple(placed.sizes[axis] for axis in sorted(placed.coordinates, key=lambda axis: axis == "col"))
