"""Instructions that order others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands import matrices
from ptxmma.matrices.operations.operation import Operation
from ptxmma.model import InstructionSet


class Synchronise(Operation):
    """Orders other instructions, or waits for them."""

    def lacks(self, entry: InstructionSet) -> Iterator[str]:
        """Nothing, but it has no matrix."""
        if names := matrices(entry):
            yield f"an instruction that synchronises has no matrix; it has {', '.join(names)}"

    def statement(self, instruction: Instruction) -> str:  # noqa: ARG002  # all of them are alike
        """No operand changes."""
        return "orders other instructions; no matrix changes"

    def emulator(self, instruction: Instruction) -> NoReturn:
        """There is nothing to emulate."""
        self._refuse(instruction)

    def traced(self, instruction: Instruction) -> NoReturn:
        """No operand has elements."""
        self._refuse(instruction)

    def trace(self, instruction: Instruction, *coordinates: int, **options: Any) -> NoReturn:  # noqa: ARG002  # none is read
        """There is nothing to trace."""
        self._refuse(instruction)

    def _refuse(self, instruction: Instruction) -> NoReturn:
        raise Missing(f"{instruction.canonical} neither moves nor multiplies matrices: it orders other instructions")
