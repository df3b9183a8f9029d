"""Matrices between memory and registers, and transposed in registers."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.places import Move, Moves, checked_stride, element_text, memory_place, memory_text, operand_of, register_place


class Load(Operation):
    """Loads matrices."""

    verb = "loads"
    needs = (("fragment", "write"), ("address", "read"))
    options = ("stride",)

    def statement(self, instruction: Instruction) -> str:
        """Each element comes from memory."""
        target = self.traced(instruction)
        return f"{element_text(target.name, target.axes)} = {memory_text(instruction)}"

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

    verb = "stores"
    needs = (("fragment", "read"), ("address", "read"))
    options = ("stride",)

    def statement(self, instruction: Instruction) -> str:
        """Each element goes to memory."""
        source = self.traced(instruction)
        return f"{memory_text(instruction)} = {element_text(source.name, source.axes)}"

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

    verb = "transposes"
    needs = (("fragment", "write", "read"),)

    def statement(self, instruction: Instruction) -> str:
        """Each element goes where its row and its column change places."""
        target, source = self.traced(instruction), operand_of(instruction, "fragment", "read")
        return f"{element_text(target.name, target.axes)} = {element_text(source.name, _swapped(target.axes))}"

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
