"""Where the elements that a load or store moves lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxmma.arguments import integer
from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.places import MemoryPlace, element_text, operand_of


def width(instruction: Instruction) -> int:
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


def offset(instruction: Instruction, at: Mapping[str, Any], stride: int) -> tuple[Any, Any]:
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
        return None, (slow * stride + fast) * width(instruction)
    lane = address.locate(**{axis: at[axis] for axis in address.axes})
    place: Any = 0
    for axis in fragment.axes:
        if axis not in address.axes:
            place = place * fragment.sizes[axis] + at[axis]
    return lane, place * width(instruction)


def memory_place(instruction: Instruction, at: Mapping[str, int], stride: int) -> MemoryPlace:
    """Where one element lies in memory; arguments as for :func:`offset`."""
    lane, bit = offset(instruction, at, stride)
    return MemoryPlace(lane, bit // 8, bit % 8, width(instruction))


def memory_text(instruction: Instruction) -> str:
    """An element in memory as a formula: ``"p[matrix][row][col]"``, or ``"p[row * stride + col]"``."""
    address, fragment = operand_of(instruction, "address"), operand_of(instruction, "fragment")
    if address.layout is not None:
        inner = [axis for axis in fragment.axes if axis not in address.axes]
        return element_text(element_text(address.name, address.axes), inner)
    stride = operand_of(instruction, "stride")
    slow, fast = stride.order
    return f"{address.name}[{slow} * {stride.name} + {fast}]"
