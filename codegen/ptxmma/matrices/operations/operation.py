"""The base of the operations.

An operation finds its operands by their kind and access.  It never asks what an operand is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.product_operands import Multiplicand
from ptxmma.model import InstructionSet
from ptxmma.model.instruction import Verb

#: The class of each operation, entered where it is defined.
OPERATION_OF: dict[str, type[Operation]] = {}


class Operation:
    """The effect of an instruction on its operands: ``class Load(Operation, name="load")``.

    Attributes:
        verb: its effect in words: ``"loads"``.
        needs: kinds of operands that an operand list has, each with their accesses: ``("fragment", "write", "read")``.
        options: the arguments that :meth:`trace` takes beside the place of an element.
    """

    verb: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, name: Verb | None = None) -> None:
        """Enter a class for the operation of a name; None for what several operations share."""
        super().__init_subclass__()
        if name is not None:
            OPERATION_OF[name] = cls

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Yield what an entry of the spec needs for this operation and does not have, each as a sentence for its author.

        Args:
            entry: an instruction with one operand list, and the operands of that list alone.
        """
        for kind, *wanted in self.needs:
            yield from lacks_operands(entry, self.verb, kind, *wanted)

    def statement(self, instruction: Instruction) -> str:
        """Its effect as a formula over its operands: ``"d[row][col] = a[col][row]"``."""
        raise NotImplementedError

    def arguments(self, instruction: Instruction) -> dict[str, str]:
        """The emulator's parameters by the manual's names of the operands, both with ``_`` for ``-``: ``{"p": "address"}``."""
        operands = instruction.operands
        return {operand.name.replace("-", "_"): operand.kind.replace("-", "_") for operand in operands if operand.access != "write"}

    def refusal(self, instruction: Instruction) -> Missing:
        """The error for an operation without elements to follow: what it lacks, and why."""
        raise NotImplementedError

    def traced(self, instruction: Instruction) -> Operand:
        """The operand whose elements :meth:`trace` explains.

        Raises:
            Missing: it moves and multiplies nothing.
        """
        raise self.refusal(instruction)

    def described(self, instruction: Instruction, form: str | None = None) -> dict[str, Multiplicand]:  # noqa: ARG002  # none but products
        """The matrices that it reads through descriptors, by the letters of A and B; of a pair of CTAs the half of one."""
        return {}

    def trace(self, instruction: Instruction, *coordinates: int, **options: Any) -> Any:  # noqa: ARG002  # none is read
        """The places that an element of :meth:`traced` comes from, and goes to; see :func:`ptxmma.matrices.tracing.trace`."""
        raise self.refusal(instruction)


def lacks_operands(entry: InstructionSet, verb: str, kind: str, *wanted: str) -> Iterator[str]:
    """A sentence unless the operands of a kind have exactly the ``wanted`` accesses."""
    present = {name: operand.access for name, operand in entry.operand_kinds.items() if operand.kind == kind}
    if sorted(present.values()) != sorted(wanted):
        needs = " and ".join(f"one {kind} with access: {access}" for access in wanted)
        has = ", ".join(f"{name} with access: {access}" for name, access in present.items()) or "none"
        yield f"an instruction that {verb} has {needs}; one operand list has {has}"
