"""Matrices between memory and registers, and transposed in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Operation, lacks_operands
from ptxmma.matrices.places import Move, Moves, checked_stride, element_text, memory_place, memory_text, operand_of, register_place
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
        from ptxmma.matrices.transfers import memory as transfers

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
        from ptxmma.matrices.transfers import memory as transfers

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
        from ptxmma.matrices.transfers import memory as transfers

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
