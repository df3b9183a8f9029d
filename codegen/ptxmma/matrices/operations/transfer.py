"""Matrices between memory, tensor memory and registers, and transposed in registers."""

from __future__ import annotations

from typing import Any, ClassVar

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.places import (
    Move,
    Moves,
    TensorPlace,
    checked_stride,
    element_text,
    memory_place,
    memory_text,
    operand_of,
    register_place,
)


class Load(Operation, name="load"):
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


class Store(Operation, name="store"):
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


class Transpose(Operation, name="transpose"):
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


# --- tensor memory -----------------------------------------------------------------------------------------------------------


#: The axes of a fragment that are coordinates of tensor memory: its lanes and columns.
_CELL = ("row", "col")


class TensorTransfer(Operation):
    """Moves columns of tensor memory to registers or back.

    Attributes:
        access: the access to the fragment.
    """

    access: ClassVar[str]

    def traced(self, instruction: Instruction) -> Operand:
        """The fragment."""
        return operand_of(instruction, "fragment")

    def statement(self, instruction: Instruction) -> str:
        """Each element, and its lane and column counted from the address."""
        fragment, address = self.traced(instruction), operand_of(instruction, "tensor-address").name
        offsets = [axis for axis in fragment.axes if axis not in _CELL]
        cell = f"{address}[{_CELL[0]}][{' + '.join([_CELL[1], *(f'{axis} * {_split(instruction).name}' for axis in offsets)])}]"
        element = element_text(fragment.name, fragment.axes)
        return f"{element} = {cell}" if self.access == "write" else f"{cell} = {element}"

    def trace(self, instruction: Instruction, *coordinates: int, **axes: Any) -> Moves:
        """The cell of tensor memory, counted from the address, and the register."""
        fragment, address = self.traced(instruction), operand_of(instruction, "tensor-address")
        lane, element = fragment.locate(*coordinates, **axes)
        at = dict(zip(fragment.axes, fragment.coords(lane, element), strict=True))
        cell = TensorPlace(at["row"], at["col"], at.get("access", 0), 0, fragment.bits)
        place = register_place(instruction, fragment, lane, element)
        if self.access == "write":
            return Moves(fragment.name, at, (Move(cell, address.name, place, fragment.name),))
        return Moves(fragment.name, at, (Move(place, fragment.name, cell, address.name),))


class TensorLoad(TensorTransfer, name="tensor-load"):
    """Loads from tensor memory."""

    access = "write"
    verb = "loads from tensor memory"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("fragment", "write"), ("tensor-address", "read"))


class TensorReduce(TensorLoad, name="tensor-reduce"):
    """Loads from tensor memory, and the minimum or maximum of the columns of each thread."""

    verb = "loads from tensor memory with a reduction"
    needs = (*TensorLoad.needs, ("reduction", "write"))

    def statement(self, instruction: Instruction) -> str:
        """The elements, and what is reduced."""
        fragment, result = self.traced(instruction), operand_of(instruction, "reduction")
        return f"{super().statement(instruction)}; {result.name} = the minimum or maximum {fragment.name} of the thread"


class TensorCompress(Operation, name="tensor-compress"):
    """Loads two of each four columns of tensor memory, and says which."""

    verb = "compresses tensor memory"
    needs = (("fragment", "write"), ("indices", "write"), ("tensor-address", "read"))

    def statement(self, instruction: Instruction) -> str:
        """The columns that are kept."""
        kept, indices = operand_of(instruction, "fragment"), operand_of(instruction, "indices")
        return f"{kept.name} = the two smallest or largest of each four columns; {indices.name} = their places among the four"

    def refusal(self, instruction: Instruction) -> Missing:
        """No source gives the order of what is kept."""
        kept, indices = operand_of(instruction, "fragment"), operand_of(instruction, "indices")
        return Missing(
            f"{instruction.canonical}: no source says in which order {kept.name} has the two kept columns, where {indices.name} has their "
            f"indices, and which of equal columns are kept; PTX ISA 9.4 has a figure, and leaves the last to the implementation"
        )


class TensorStore(TensorTransfer, name="tensor-store"):
    """Stores to tensor memory."""

    access = "read"
    verb = "stores to tensor memory"
    needs = (("fragment", "read"), ("tensor-address", "read"))


def _split(instruction: Instruction) -> Operand:
    """The operand that says how many columns lie between two accesses."""
    return operand_of(instruction, "immediate")
