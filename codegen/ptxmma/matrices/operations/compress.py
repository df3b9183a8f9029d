"""Vectors of each thread, compressed to the elements that a pattern of sparsity keeps, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Refusing, lacks_operands
from ptxmma.matrices.places import operand_of
from ptxmma.matrices.transfers.memory import Moved
from ptxmma.model import InstructionSet

_REGISTER = 4  # bytes


class Compress(Refusing):
    """Keeps some elements of a vector, and says which."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """The vectors before and after, the indices, and a descriptor."""
        yield from lacks_operands(entry, "compresses a vector", "vector", "read", "write")
        yield from lacks_operands(entry, "compresses a vector", "indices", "write")
        yield from lacks_operands(entry, "compresses a vector", "sparsity-descriptor", "read")

    def statement(self, instruction: Instruction) -> str:
        """The part that is kept."""
        kept, indices, of = _named(instruction)
        return f"{kept} = the two elements of each four of {of} that the descriptor chooses; {indices} = their places among the four"

    def _refusal(self, instruction: Instruction) -> Missing:
        kept, indices, _ = _named(instruction)
        return Missing(
            f"{instruction.canonical}: no source says in which order {kept} has the two kept elements, where {indices} has their indices, "
            f"and which of equal elements are kept; PTX ISA 9.4 has a figure, and leaves the last to the implementation"
        )


class Decompress(Refusing):
    """Writes the elements of a vector to the places that indices name, and zeros elsewhere."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """The vectors before and after, and the indices."""
        yield from lacks_operands(entry, "decompresses a vector", "vector", "read", "write")
        yield from lacks_operands(entry, "decompresses a vector", "indices", "read")

    def statement(self, instruction: Instruction) -> str:
        """The place where each element goes."""
        extents, (source, indices, target) = instruction.extents, _named(instruction)
        kept, group = extents["kept"], extents["group"]
        return f"{target}[{group} * g + {indices}[{kept} * g + s]] = {source}[{kept} * g + s] for s < {kept}; 0 elsewhere"

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The parameters of :func:`decompress`."""
        kinds = {"vector": "source"}
        return {name: kinds.get(kind, kind) for name, kind in super().arguments(instruction).items()}

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        return decompress

    def _refusal(self, instruction: Instruction) -> Missing:
        return Missing(f"{instruction.canonical} moves elements of vectors, which are no matrices; `ptxmma.emulate` says where each goes")


def decompress(instruction: Instruction, indices: Any, source: Any) -> Moved:
    """Decompress vectors; see :func:`ptxmma.emulate`.

    Raises:
        ValueError: another number of registers, or an index of no place: there the result depends on the chip.
    """
    extents = instruction.extents
    kept, group, repeats = extents["kept"], extents["group"], extents["num"]
    codes = _split(source, _operand(instruction, "vector", "read"), extents["width"], kept * repeats)
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


def _operand(instruction: Instruction, kind: str, access: str) -> Operand:
    return next(operand for operand in instruction.forms[0].operands if (operand.kind, operand.access) == (kind, access))


def _named(instruction: Instruction) -> tuple[str, str, str]:
    """The names of the compressed vector, of the indices and of the whole vector."""
    indices = operand_of(instruction, "indices")
    vectors = {operand.access: operand.name for operand in instruction.forms[0].operands if operand.kind == "vector"}
    whole = {"write": "read", "read": "write"}[indices.access]  # indices are written where the whole vector is read
    return vectors[indices.access], indices.name, vectors[whole]
