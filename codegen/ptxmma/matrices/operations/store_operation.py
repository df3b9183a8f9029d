"""Matrices from registers into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.memory_places import checked_stride, memory_place, memory_text
from ptxmma.matrices.operations.operation import Operation, lacks_operands
from ptxmma.matrices.places import Move, Moves, element_text, operand_of, register_place
from ptxmma.model import InstructionSet


class Store(Operation):
    """Stores matrices."""

    options = ("stride",)

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """One matrix that it reads, and its address."""
        yield from lacks_operands(entry, "stores", "fragment", "read")
        yield from lacks_operands(entry, "stores", "address", "read")

    def statement(self, instruction: Instruction) -> str:
        """Each element goes to memory."""
        source = self.traced(instruction)
        return f"{memory_text(instruction)} = {element_text(source.name, source.axes)}"

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices import transfers

        return transfers.store

    def traced(self, instruction: Instruction) -> Operand:
        """The fragment."""
        return operand_of(instruction, "fragment")

    def trace(self, instruction: Instruction, *coordinates: int, stride: int | None = None, **axes: Any) -> Moves:
        """The registers that hold an element, and the bytes where it goes."""
        source = self.traced(instruction)
        lane, element = source.locate(*coordinates, **axes)
        at = dict(zip(source.axes, source.coords(lane, element), strict=True))
        target = memory_place(instruction, at, checked_stride(instruction, stride))
        place = register_place(instruction, source, lane, element)
        return Moves(source.name, at, (Move(place, source.name, target, operand_of(instruction, "address").name),))
