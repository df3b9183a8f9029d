"""Matrices to the registers of all threads, and back."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import batch_of, cropped, not_empty, whole
from ptxmma.arrays.tiling import Tiling

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand


def tiling(operand: Operand) -> Tiling:
    """The order of an operand's elements in its registers."""
    layout = operand.fragment()
    return Tiling(layout.map, (operand.computations, operand.rows, operand.cols), layout.threads, operand.bits)


def pack(operand: Operand, matrix: Any) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.pack`."""
    codes = _codes(operand, matrix)
    wanted = _tile_shape(operand)
    if codes.shape[-len(wanted) :] != wanted:
        raise ValueError(f"{operand.name} has shape {codes.shape}; one tile is {batch_of(*wanted)}: pack_tiles takes larger matrices")
    return elements.like(_packed(operand, codes)[..., 0, 0, :, :], matrix)


def pack_tiles(operand: Operand, matrix: Any, *, pad: bool = False) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.pack_tiles`."""
    codes = whole(_codes(operand, matrix), (operand.rows, operand.cols), operand.name, pad)
    return elements.like(_packed(operand, codes), matrix)


def unpack(operand: Operand, registers: Any) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.unpack`."""
    held = _registers(operand, registers)
    return elements.like(_unpacked(operand, held[..., None, None, :, :]), registers)


def unpack_tiles(operand: Operand, registers: Any, shape: Sequence[int] | None = None) -> Any:
    """See :meth:`ptxmma.catalog.operands.Operand.unpack_tiles`."""
    held = _registers(operand, registers)
    if held.ndim < 4:
        raise ValueError(
            f"registers have shape {held.shape}; a grid of tiles is (..., R/{operand.rows}, C/{operand.cols}, {_held(operand)})"
        )
    return elements.like(cropped(_unpacked(operand, held), shape, (operand.rows, operand.cols), "registers"), registers)


def register_dtype(operand: Operand) -> np.dtype[Any]:
    """The dtype of a register: the C type that the CUDA wrappers give it."""
    held: np.dtype[Any] = np.dtype(getattr(ctypes, f"c_{operand.c_type.removesuffix('_t')}"))
    return held


def _tile_shape(operand: Operand) -> tuple[int, ...]:
    """The shape of one tile; independent products stand in front where there are several."""
    return (operand.rows, operand.cols) if operand.computations == 1 else (operand.computations, operand.rows, operand.cols)


def _held(operand: Operand) -> str:
    return f"{operand.fragment().threads}, {operand.registers}"


def _codes(operand: Operand, matrix: Any) -> Array:
    """The bits of a matrix of the operand's type, checked as far as they do not depend on the number of tiles."""
    operand.fragment()
    assert operand.element is not None
    codes = elements.codes(matrix, operand.element, operand.name)
    products = operand.computations
    least = 2 if products == 1 else 3
    if codes.ndim < least or (products > 1 and codes.shape[-3] != products):
        raise ValueError(f"{operand.name} has shape {codes.shape}; it takes (..., {'' if products == 1 else f'{products}, '}R, C)")
    not_empty(codes, operand.name)
    return codes


def _packed(operand: Operand, codes: Array) -> Array:
    """Whole tiles to a grid of registers."""
    held = codes.astype(f"u{max(operand.bits // 8, 1)}", copy=False)
    if operand.shift:
        held = held << operand.shift
    if operand.computations == 1:
        held = held[..., None, :, :]
    if held.strides[-2] == held.itemsize != held.strides[-1]:
        order = operand.tiling.transposed
        packed = np.ascontiguousarray(order.pack(order.fold(held.swapaxes(-1, -2))).swapaxes(-4, -3))
    else:
        packed = operand.tiling.pack(operand.tiling.fold(held))
    return packed.view(register_dtype(operand))


def _registers(operand: Operand, registers: Any) -> Array:
    """Registers of all threads as unsigned integers, checked."""
    layout = operand.fragment()
    held = elements.bits(registers, register_dtype(operand).itemsize, "registers")
    if held.shape[-2:] != (layout.threads, operand.registers):
        raise ValueError(f"registers have shape {held.shape}; {operand.name} takes (..., {_held(operand)}): threads, registers of each")
    not_empty(held, "registers")
    return held


def _unpacked(operand: Operand, registers: Array) -> Array:
    """A grid of registers to whole tiles."""
    assert operand.element is not None
    order = operand.tiling
    codes = order.unfold(order.unpack(registers, np.dtype(f"u{max(operand.bits // 8, 1)}")))
    if operand.computations == 1:
        codes = codes[..., 0, :, :]
    if operand.shift:
        codes >>= operand.shift
    if operand.bits > operand.element.bits:
        codes &= (1 << operand.element.bits) - 1
    return elements.typed(codes.astype(elements.bits_dtype(operand.element), copy=False), operand.element)
