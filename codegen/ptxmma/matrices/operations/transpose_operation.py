"""A matrix in registers, transposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Operation, lacks_operands
from ptxmma.matrices.places import Move, Moves, element_text, operand_of, register_place
from ptxmma.model import InstructionSet


class Transpose(Operation):
    """Transposes a matrix."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """One matrix that it writes and one that it reads."""
        yield from lacks_operands(entry, "transposes", "fragment", "write", "read")

    def statement(self, instruction: Instruction) -> str:
        """Each element goes where its row and its column change places."""
        target, source = self.traced(instruction), operand_of(instruction, "fragment", "read")
        return f"{element_text(target.name, target.axes)} = {element_text(source.name, _swapped(target.axes))}"

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:  # noqa: ARG002  # one for all
        """Works on arrays."""
        from ptxmma.matrices import transfers

        return transfers.transpose

    def traced(self, instruction: Instruction) -> Operand:
        """The result."""
        return operand_of(instruction, "fragment", "write")

    def trace(self, instruction: Instruction, *coordinates: int, **axes: Any) -> Moves:
        """The register that an element of the result comes from."""
        target, source = self.traced(instruction), operand_of(instruction, "fragment", "read")
        lane, element = target.locate(*coordinates, **axes)
        place = target.coords(lane, element)
        moved = register_place(instruction, source, *source.locate(*_swapped(place)))
        move = Move(moved, source.name, register_place(instruction, target, lane, element), target.name)
        return Moves(target.name, dict(zip(target.axes, place, strict=True)), (move,))


def _swapped(place: tuple[Any, ...]) -> tuple[Any, ...]:
    """A place with its row and its column, the last two coordinates, exchanged."""
    *several, row, col = place
    return (*several, col, row)
