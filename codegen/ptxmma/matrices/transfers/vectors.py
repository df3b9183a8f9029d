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

_REGISTER = 4  # bytes


def decompress(instruction: Instruction, indices: Any, source: Any) -> Moved:
    """Decompress vectors; see :func:`ptxmma.emulate`.

    Raises:
        ValueError: another number of registers, or an index of no place: there the result depends on the chip.
    """
    extents = instruction.extents
    kept, group, repeats = extents["kept"], extents["group"], extents["num"]
    codes = _split(
        source,
        next(each for each in instruction.forms[0].operands if (each.kind, each.access) == ("vector", "read")),
        extents["width"],
        kept * repeats,
    )
    places = _split(indices, operand_of(instruction, "indices"), extents["index"], kept * repeats)
    if (places >= group).any():
        raise ValueError(f"{instruction.canonical}: an index is {places.max()}; elements go to the places 0..{group - 1}")
    codes, places = (array.reshape(*array.shape[:-1], repeats, kept) for array in (codes, places))
    result = np.zeros((*codes.shape[:-1], group), codes.dtype)
    for number in range(kept):
        np.put_along_axis(result, places[..., number, None].astype(np.intp), codes[..., number, None], -1)
    return Moved(instruction, registers=_joined(result.reshape(*result.shape[:-2], -1), extents["width"]))


def _split(registers: Any, operand: Operand, bits: int, count: int) -> Array:
    """The first numbers of so many bits in registers (..., registers), from the low bits up."""
    words = elements.bits(registers, _REGISTER, operand.name)
    if words.shape[-1:] != (operand.registers,):
        raise ValueError(f"{operand.name} has shape {words.shape}; it takes (..., {operand.registers})")
    numbers = words[..., None] >> np.arange(0, 8 * _REGISTER, bits, dtype=words.dtype) & words.dtype.type((1 << bits) - 1)
    every: Array = numbers.reshape(*words.shape[:-1], -1)
    return every[..., :count]


def _joined(codes: Array, bits: int) -> Array:
    """Registers that hold numbers of so many bits: the inverse of :func:`_split`."""
    each = 8 * _REGISTER // bits
    shifted = codes.reshape(*codes.shape[:-1], -1, each) << np.arange(0, 8 * _REGISTER, bits, dtype=codes.dtype)
    registers: Array = np.bitwise_or.reduce(shifted, -1)
    return registers
