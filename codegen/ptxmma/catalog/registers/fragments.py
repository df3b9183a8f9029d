"""Matrices to the registers of all threads, and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import batch_of, cropped, not_empty, whole
from ptxmma.arrays.tiling import Tiling
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import BitMap

if TYPE_CHECKING:
    from ptxmma.catalog.operands.operand import Operand

#: What a tiling calls the number of a matrix.
_MATRIX = "matrix"


def tiling(operand: Operand) -> Tiling:
    """The order of an operand's elements in its registers."""
    layout, sizes = operand.fragment(), (_matrices(operand), operand.rows, operand.cols)
    return Tiling(_places(layout, list(_leads(operand))), sizes, layout.threads, operand.bits, _MATRIX)


def _places(layout: Layout, leads: Sequence[str]) -> BitMap:
    """The map of a layout with one number for the matrix, and rows and columns called so."""
    names = dict(zip(layout.plane, (("row", 0), ("col", 0)), strict=True))
    width = 0
    for axis in reversed(leads):
        names[axis] = _MATRIX, width
        width += layout.map.outputs[axis]
    outputs = {names.get(axis, (axis, 0))[0]: size for axis, size in layout.map.outputs.items()} | ({_MATRIX: width} if leads else {})
    bits = {
        source: tuple((names[axis][0], names[axis][1] + bit) if axis in names else (axis, bit) for axis, bit in targets)
        for source, targets in layout.map.bits.items()
    }
    return BitMap(layout.map.inputs, outputs, bits)


def pack(operand: Operand, matrix: Any) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.pack`."""
    codes = _codes(operand, matrix)
    expected = _tile_shape(operand)
    if codes.shape[-len(expected) :] != expected:
        raise ValueError(f"{operand.name} has shape {codes.shape}; one tile is {batch_of(*expected)}: pack_tiles takes larger matrices")
    return elements.like(_packed(operand, codes)[..., 0, 0, :, :], matrix)


def pack_tiles(operand: Operand, matrix: Any, *, pad: bool = False) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.pack_tiles`."""
    codes = whole(_codes(operand, matrix), (operand.rows, operand.cols), operand.name, pad)
    return elements.like(_packed(operand, codes), matrix)


def unpack(operand: Operand, registers: Any) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.unpack`."""
    words = _registers(operand, registers)
    return elements.like(_unpacked(operand, words[..., None, None, :, :]), registers)


def unpack_tiles(operand: Operand, registers: Any, shape: Sequence[int] | None = None) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.unpack_tiles`."""
    words = _registers(operand, registers)
    if words.ndim < 4:
        raise ValueError(
            f"registers have shape {words.shape}; a grid of tiles is (..., R/{operand.rows}, C/{operand.cols}, {_register_axes(operand)})"
        )
    return elements.like(cropped(_unpacked(operand, words), shape, (operand.rows, operand.cols), "registers"), registers)


def register_dtype(operand: Operand) -> np.dtype[Any]:
    """The dtype of a register: the C type that the CUDA wrappers give it."""
    dtype: np.dtype[Any] = np.dtype(getattr(ctypes, f"c_{operand.c_type.removesuffix('_t')}"))
    return dtype


def _leads(operand: Operand) -> dict[str, int]:
    """The axes that tell several matrices apart, with their sizes."""
    around = (*operand.fragment().plane, COPY)
    return {axis: size for axis, size in operand.sizes.items() if axis not in around and size > 1}


def _matrices(operand: Operand) -> int:
    """The matrices that the operand holds."""
    return math.prod(_leads(operand).values())


def _tile_shape(operand: Operand) -> tuple[int, ...]:
    """The shape of one tile; several matrices come in front."""
    return (*_leads(operand).values(), operand.rows, operand.cols)


def _register_axes(operand: Operand) -> str:
    return f"{operand.fragment().threads}, {operand.registers}"


def _codes(operand: Operand, matrix: Any) -> Array:
    """The bits of a matrix of the operand's type, checked as far as they do not depend on the number of tiles."""
    operand.fragment()
    assert operand.element is not None
    codes = elements.codes(matrix, operand.element, operand.name)
    leads = tuple(_leads(operand).values())
    if codes.ndim < len(leads) + 2 or codes.shape[-2 - len(leads) : -2] != leads:
        raise ValueError(f"{operand.name} has shape {codes.shape}; it takes (..., {''.join(f'{size}, ' for size in leads)}R, C)")
    not_empty(codes, operand.name)
    return codes


def _packed(operand: Operand, codes: Array) -> Array:
    """Whole tiles to a grid of registers."""
    shifted = codes.astype(f"u{max(operand.bits // 8, 1)}", copy=False)
    if operand.shift:
        shifted = shifted << operand.shift
    shifted = shifted.reshape(*shifted.shape[: shifted.ndim - 2 - len(_leads(operand))], _matrices(operand), *shifted.shape[-2:])
    if shifted.strides[-2] == shifted.itemsize != shifted.strides[-1]:
        order = operand.tiling.transposed
        packed = np.ascontiguousarray(order.pack(order.fold(shifted.swapaxes(-1, -2))).swapaxes(-4, -3))
    else:
        packed = operand.tiling.pack(operand.tiling.fold(shifted))
    return packed.view(register_dtype(operand))


def _registers(operand: Operand, registers: Any) -> Array:
    """Registers of all threads as unsigned integers, checked."""
    layout = operand.fragment()
    words = elements.bits(registers, register_dtype(operand).itemsize, "registers")
    if words.shape[-2:] != (layout.threads, operand.registers):
        raise ValueError(
            f"registers have shape {words.shape}; {operand.name} takes (..., {_register_axes(operand)}): threads, registers of each"
        )
    not_empty(words, "registers")
    return words


def _unpacked(operand: Operand, registers: Array) -> Array:
    """A grid of registers to whole tiles."""
    assert operand.element is not None
    order = operand.tiling
    codes = order.unfold(order.unpack(registers, np.dtype(f"u{max(operand.bits // 8, 1)}")))
    codes = codes.reshape(*codes.shape[:-3], *_leads(operand).values(), *codes.shape[-2:])
    if operand.shift:
        codes >>= operand.shift
    if operand.bits > operand.element.bits:
        codes &= (1 << operand.element.bits) - 1
    return elements.typed(codes.astype(elements.bits_dtype(operand.element), copy=False), operand.element)
