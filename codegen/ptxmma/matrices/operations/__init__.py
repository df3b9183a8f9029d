"""The operations of instructions, a module for each; the emulator, ``trace``, ``show`` and the reference use them."""

from __future__ import annotations

from typing import get_args

from ptxmma.catalog.instructions import Instruction
from ptxmma.matrices.operations import compress, effect, multiply, transfer  # noqa: F401  # their classes enter themselves
from ptxmma.matrices.operations.operation import OPERATION_OF, Operation
from ptxmma.model.instruction import Verb

__all__ = ["OPERATIONS", "Operation", "operation"]

#: The operations by the name that the spec has for each.
OPERATIONS: dict[str, Operation] = {name: OPERATION_OF[name]() for name in get_args(Verb)}


def operation(instruction: Instruction) -> Operation:
    """Return the operation of an instruction."""
    return OPERATIONS[instruction.operation]
