"""Loads from tensor memory, and stores to it."""

from __future__ import annotations

from typing import Any, ClassVar

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.operations.operation import Operation
from ptxmma.matrices.places import Move, Moves, TensorPlace, element_text, operand_of, register_place

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


class TensorLoad(TensorTransfer):
    """Loads from tensor memory."""

    access = "write"
    verb = "loads from tensor memory"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("fragment", "write"), ("tensor-address", "read"))


class TensorReduce(TensorLoad):
    """Loads from tensor memory, and the least or greatest of the columns of each thread."""

    verb = "loads from tensor memory with a reduction"
    needs = (*TensorLoad.needs, ("reduction", "write"))

    def statement(self, instruction: Instruction) -> str:
        """The elements, and what is reduced."""
        fragment, result = self.traced(instruction), operand_of(instruction, "reduction")
        return f"{super().statement(instruction)}; {result.name} = the least or greatest {fragment.name} of the thread"


class TensorCompress(Operation):
    """Loads two of each four columns of tensor memory, and says which."""

    verb = "compresses tensor memory"
    needs = (("fragment", "write"), ("indices", "write"), ("tensor-address", "read"))

    def statement(self, instruction: Instruction) -> str:
        """The columns that are kept."""
        kept, indices = operand_of(instruction, "fragment"), operand_of(instruction, "indices")
        return f"{kept.name} = the two least or greatest of each four columns; {indices.name} = their places among the four"

    def refusal(self, instruction: Instruction) -> Missing:
        """No source gives the order of what is kept."""
        kept, indices = operand_of(instruction, "fragment"), operand_of(instruction, "indices")
        return Missing(
            f"{instruction.canonical}: no source says in which order {kept.name} has the two kept columns, where {indices.name} has their "
            f"indices, and which of equal columns are kept; PTX ISA 9.4 has a figure, and leaves the last to the implementation"
        )


class TensorStore(TensorTransfer):
    """Stores to tensor memory."""

    access = "read"
    verb = "stores to tensor memory"
    needs = (("fragment", "read"), ("tensor-address", "read"))


def _split(instruction: Instruction) -> Operand:
    """The operand that says how many columns lie between two accesses."""
    return operand_of(instruction, "immediate")
