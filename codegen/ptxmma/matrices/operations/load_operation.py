"""Matrices from memory into registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.memory_places import checked_stride, memory_place, memory_text
from ptxmma.matrices.operations.operation import Operation, lacks_operands
from ptxmma.matrices.places import Move, Moves, element_text, operand_of, register_place
from ptxmma.model import InstructionSet


class Load(Operation):
    """Loads matrices."""

    options = ("stride",)

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """One matrix that it writes, and its address."""
        yield from lacks_operands(entry, "loads", "fragment", "write")
        yield from lacks_operands(entry, "loads", "address", "read")

    def statement(self, instruction: Instruction) -> str:
        """Each element comes from memory."""
        target = self.traced(instruction)
        return f"{element_text(target.name, target.axes)} = {memory_text(instruction)}"

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices import transfers

        return transfers.load

    def traced(self, instruction: Instruction) -> Operand:
        """The fragment."""
        return operand_of(instruction, "fragment")

    def trace(self, instruction: Instruction, *coordinates: int, stride: int | None = None, **axes: int) -> Moves:
        """The bytes that an element comes from, and the registers that hold it afterwards."""
        target = self.traced(instruction)
        copies = target.places(*coordinates, **axes)
        at = dict(zip(target.axes, target.coords(*copies[0]), strict=True))
        source = memory_place(instruction, at, checked_stride(instruction, stride))
        address = operand_of(instruction, "address").name
        places = [register_place(instruction, target, lane, element) for lane, element in copies]
        return Moves(target.name, at, tuple(Move(source, address, place, target.name) for place in places))
