"""Places of elements outside registers, and the moves of elements between places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.arguments import integer
from ptxmma.catalog.descriptors.bits import bit_range
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.arrangements import Place, arrangement
from ptxmma.matrices.shared.copied_tile import Origin


class MemoryPlace(NamedTuple):
    """The place of an element in memory, counted from an address."""

    lane: int | None  # the thread whose address it is; None: all threads pass the same one
    byte: int  # counted from the address
    low: int  # lowest bit in that byte
    width: int  # bits
    cta: int = 0  # the thread block of a pair whose shared memory it is
    origin: Origin | None = None  # the element of a tensor that a copy brought there

    @property
    def bits(self) -> str:
        """The bits, counted from the lowest of that byte: ``"15:0"``."""
        return bit_range(self.low, self.width)


class TensorPlace(NamedTuple):
    """The place of an element in tensor memory, counted from an address."""

    lane: int  # the lane of tensor memory
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


def memory_bits(instruction: Instruction) -> int:
    """Bits of an element in memory, where registers may have wider ones."""
    return operand_of(instruction, "address").memory_bits


def checked_stride(instruction: Instruction, stride: Any) -> int:
    """Elements from a row, or column, to the next; 0 for an instruction that takes the address of each row from a thread.

    Raises:
        TypeError: a stride that is not an integer.
        ValueError: a stride with which rows overlap, or one for an instruction that takes none.
    """
    address = operand_of(instruction, "address")
    if address.layout is not None:
        if stride is not None:
            raise ValueError(f"{instruction.canonical} takes no stride: each {address.axes[-1]} has its own address")
        return 0
    operand = operand_of(instruction, "stride")
    assert operand.default is not None
    elements = operand.default if stride is None else integer(operand.name, stride)
    if elements < operand.default:
        raise ValueError(
            f"the behaviour of {instruction.canonical} is undefined with a stride of {elements} elements: rows, or columns, have "
            f"{operand.default}"
        )
    return elements


def memory_offset(instruction: Instruction, at: Mapping[str, Any], stride: int) -> tuple[Any, Any]:
    """The thread whose address an element is counted from, and its lowest bit from there on.

    Args:
        instruction: one that loads or stores.
        at: the place of the element, by the axes of the fragment: integers, or arrays.
        stride: as :func:`checked_stride` gives it.

    Returns:
        ``(lane, bit)``; the lane is None where all threads pass one address.
    """
    address, fragment = operand_of(instruction, "address"), operand_of(instruction, "fragment")
    if address.layout is None:
        slow, fast = (at[axis] for axis in operand_of(instruction, "stride").order)
        return None, (slow * stride + fast) * memory_bits(instruction)
    lane = address.locate(**{axis: at[axis] for axis in address.axes})
    place: Any = 0
    for axis in fragment.axes:
        if axis not in address.axes:
            place = place * fragment.sizes[axis] + at[axis]
    return lane, place * memory_bits(instruction)


def memory_place(instruction: Instruction, at: Mapping[str, int], stride: int) -> MemoryPlace:
    """Return the place of one element in memory; arguments as for :func:`memory_offset`."""
    lane, bit = memory_offset(instruction, at, stride)
    return MemoryPlace(lane, bit // 8, bit % 8, memory_bits(instruction))


def memory_text(instruction: Instruction) -> str:
    """An element in memory as a formula: ``"p[matrix][row][col]"``, or ``"p[row * stride + col]"``."""
    address, fragment = operand_of(instruction, "address"), operand_of(instruction, "fragment")
    if address.layout is not None:
        inner = [axis for axis in fragment.axes if axis not in address.axes]
        return element_text(element_text(address.name, address.axes), inner)
    stride = operand_of(instruction, "stride")
    slow, fast = stride.order
    return f"{address.name}[{slow} * {stride.name} + {fast}]"
