"""The base of the operations, and the parts that their traces have in common.

An operation finds its operands by their kind and access.  It never asks what an operand is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.arrangements import Place, arrangement, bit_range
from ptxmma.matrices.products.operands import Multiplicand
from ptxmma.model import InstructionSet


class MemoryPlace(NamedTuple):
    """Where an element lies in memory, counted from an address."""

    lane: int | None  # the thread whose address it is; None: all threads pass the same one
    byte: int  # from the address on
    low: int  # lowest bit in that byte
    width: int  # bits
    cta: int = 0  # of a pair, whose shared memory it is

    @property
    def bits(self) -> str:
        """The bits, counted from the lowest of that byte: ``"15:0"``."""
        return bit_range(self.low, self.width)


class TensorPlace(NamedTuple):
    """Where an element lies in tensor memory, counted from an address."""

    lane: int  # of tensor memory
    column: int
    access: int  # 1 for the second of two accesses, whose columns an operand moves
    low: int  # lowest bit in that cell
    width: int  # bits
    cta: int = 0  # of a pair, whose tensor memory it is
    copies: tuple[TensorPlace, ...] = ()  # the other places with the same bits

    @property
    def bits(self) -> str:
        """The bits of the cell: ``"31:0"``."""
        return bit_range(self.low, self.width)


class Move(NamedTuple):
    """One element that an instruction moves."""

    source: Place | MemoryPlace | TensorPlace
    source_operand: str  # that holds it, or whose value is the address
    target: Place | MemoryPlace | TensorPlace
    target_operand: str


class Moves(NamedTuple):
    """How an element gets where it goes: several moves where a fragment holds it in copies."""

    operand: str  # whose element it is
    at: dict[str, int]  # its place, by the axes of that operand
    moves: tuple[Move, ...]


class Operation:
    """What an instruction does with its operands.

    Attributes:
        options: what :meth:`trace` takes beside the place of an element.
    """

    options: ClassVar[tuple[str, ...]] = ()

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """What an entry of the spec needs for this operation and does not have, each as a sentence for its author.

        Args:
            entry: an instruction with one operand list, and the operands of that list alone.
        """
        raise NotImplementedError

    def statement(self, instruction: Instruction) -> str:
        """What it does, as a formula over its operands: ``"d[row][col] = a[col][row]"``."""
        raise NotImplementedError

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The parameters of :meth:`emulator` by the manual's names of the operands, with ``_`` for ``-``: ``{"p": "address"}``."""
        operands = (operand for form in instruction.forms for operand in form.operands)
        return {operand.name.replace("-", "_"): operand.kind for operand in operands if operand.access != "write"}

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:
        """The function that executes it: see :func:`ptxmma.emulate`.

        Raises:
            Missing: it moves and multiplies nothing.
        """
        raise NotImplementedError

    def traced(self, instruction: Instruction) -> Operand:
        """The operand whose elements :meth:`trace` explains.

        Raises:
            Missing: it moves and multiplies nothing.
        """
        raise NotImplementedError

    def described(self, instruction: Instruction, form: str | None = None) -> dict[str, Multiplicand]:  # noqa: ARG002  # none but products
        """The matrices that it reads through descriptors, by the letters of A and B; of a pair of CTAs the half of one."""
        return {}

    def trace(self, instruction: Instruction, *coordinates: int, **options: Any) -> Any:
        """Where an element of :meth:`traced` comes from, and where it goes; see :func:`ptxmma.matrices.tracing.trace`."""
        raise NotImplementedError


class Refusing(Operation):
    """An operation without elements to follow; a subclass overrides what it can do all the same."""

    def emulator(self, instruction: Instruction) -> Callable[..., Any]:
        """Refuses: see :meth:`_refusal`."""
        raise self._refusal(instruction)

    def traced(self, instruction: Instruction) -> Operand:
        """Refuses: see :meth:`_refusal`."""
        raise self._refusal(instruction)

    def trace(self, instruction: Instruction, *coordinates: int, **options: Any) -> Any:  # noqa: ARG002  # none is read
        """Refuses: see :meth:`_refusal`."""
        raise self._refusal(instruction)

    def _refusal(self, instruction: Instruction) -> Missing:
        """What it lacks, and why."""
        raise NotImplementedError


def lacks_operands(entry: InstructionSet, verb: str, kind: str, *wanted: str) -> Iterator[str]:
    """A sentence unless the operands of a kind have exactly the ``wanted`` accesses."""
    present = {name: operand.access for name, operand in entry.operand_kinds.items() if operand.kind == kind}
    if sorted(present.values()) != sorted(wanted):
        needs = " and ".join(f"one {kind} with access: {access}" for access in wanted)
        has = ", ".join(f"{name} with access: {access}" for name, access in present.items()) or "none"
        yield f"an instruction that {verb} has {needs}; one operand list has {has}"


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
