"""The results of decompressing vectors of each thread, in registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.places import operand_of
from ptxmma.matrices.transfers.memory import Moved

_BYTE = 8


def decompress(instruction: Instruction, indices: Any, source: Any) -> Moved:
    """Decompress vectors; see :func:`ptxmma.emulate`.

    Raises:
        ValueError: another number of registers, or an index of no place: there the result depends on the chip.
    """
    extents = instruction.extents
    kept, group, repeats = extents["kept"], extents["group"], extents["num"]
    codes = _split(source, operand_of(instruction, "vector", "read"), extents["width"], kept * repeats)
    places = _split(indices, operand_of(instruction, "indices"), extents["index"], kept * repeats)
    if (places >= group).any():
        raise ValueError(f"{instruction.canonical}: an index is {places.max()}; elements go to the places 0..{group - 1}")
    codes, places = (array.reshape(*array.shape[:-1], repeats, kept) for array in (codes, places))
    result = np.zeros((*codes.shape[:-1], group), codes.dtype)
    for number in range(kept):
        np.put_along_axis(result, places[..., number, None].astype(np.intp), codes[..., number, None], -1)
    registers = _joined(result.reshape(*result.shape[:-2], -1), operand_of(instruction, "vector", "write"), extents["width"])
    return Moved(instruction, registers=registers)


def _split(registers: Any, operand: Operand, bits: int, count: int) -> Array:
    """The first numbers of so many bits in registers (..., registers), from the low bits up."""
    words = elements.bits(registers, operand.register_dtype.itemsize, operand.name)
    if words.shape[-1:] != (operand.registers,):
        raise ValueError(f"{operand.name} has shape {words.shape}; it takes (..., {operand.registers})")
    numbers = words[..., None] >> _places(operand, bits, words.dtype) & words.dtype.type((1 << bits) - 1)
    every: Array = numbers.reshape(*words.shape[:-1], -1)
    return every[..., :count]


def _joined(codes: Array, operand: Operand, bits: int) -> Array:
    """Registers that hold numbers of so many bits: the inverse of :func:`_split`."""
    places = _places(operand, bits, codes.dtype)
    registers: Array = np.bitwise_or.reduce(codes.reshape(*codes.shape[:-1], -1, len(places)) << places, -1)
    return registers


def _places(operand: Operand, bits: int, dtype: Any) -> Array:
    """The lowest bit of each number in a register."""
    return np.arange(0, _BYTE * operand.register_dtype.itemsize, bits, dtype=dtype)
