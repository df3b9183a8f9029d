"""Places of elements outside registers, and the moves of elements between places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.arrangements import Place, arrangement, bit_range


class MemoryPlace(NamedTuple):
    """The place of an element in memory, counted from an address."""

    lane: int | None  # the thread whose address it is; None: all threads pass the same one
    byte: int  # counted from the address
    low: int  # lowest bit in that byte
    width: int  # bits
    cta: int = 0  # the thread block of a pair whose shared memory it is

    @property
    def bits(self) -> str:
        """The bits, counted from the lowest of that byte: ``"15:0"``."""
        return bit_range(self.low, self.width)


class TensorPlace(NamedTuple):
    """The place of an element in tensor memory, counted from an address."""

    lane: int  # of tensor memory
    column: int
    access: int  # 1 for the second of two accesses, whose columns an operand moves
    low: int  # lowest bit in that cell
    width: int  # bits
    cta: int = 0  # the thread block of a pair whose tensor memory it is
    copies: tuple[TensorPlace, ...] = ()  # the other places with the same bits

    @property
    def bits(self) -> str:
        """The bits of the cell: ``"31:0"``."""
        return bit_range(self.low, self.width)


#: The place of something; None: in shared memory, at a place that only a descriptor says, or a place that no source says.
Spot = Place | MemoryPlace | TensorPlace | None


class Move(NamedTuple):
    """One element that an instruction moves."""

    source: Place | MemoryPlace | TensorPlace
    source_operand: str  # that holds it, or whose value is the address
    target: Place | MemoryPlace | TensorPlace
    target_operand: str


class Moves(NamedTuple):
    """The moves of one element: several where a fragment holds it in copies."""

    operand: str  # whose element it is
    at: dict[str, int]  # its place, by the axes of that operand
    moves: tuple[Move, ...]


def operand_of(instruction: Instruction, kind: str, access: str = "") -> Operand:
    """The operand of a kind, whatever it is called.

    Raises:
        Missing: the instruction has none.
    """
    for form in reversed(instruction.forms):  # the last one has all operands
        for operand in form.operands:
            if operand.kind == kind and access in ("", operand.access):
                return operand
    raise Missing(f"{instruction.canonical} has no operand that is {kind}")


def register_place(instruction: Instruction, operand: Operand, lane: int, element: int) -> Place:
    """Register and bits of an element of a thread."""
    return arrangement(instruction, operand.name).place(lane, element)


def element_text(name: str, axes: Sequence[str]) -> str:
    """An element by the names of its axes: ``"r[matrix][row][col]"``."""
    return name + "".join(f"[{axis}]" for axis in axes)
