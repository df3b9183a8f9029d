"""Constants of an instruction."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, template_argument


class Immediate(Role):
    """A constant."""

    carried = False

    def describe(self, context: Context) -> Known:
        """Its legal values."""
        return {"immediates": self.immediates(context), "takes_register": False, "constraint": "n", "meanings": context.entry.meanings}

    def immediates(self, context: Context) -> Sequence[int]:
        """Those that the spec lists, or those up to its limit."""
        entry = context.entry
        return entry.values or tuple(entry.meanings.values()) or range(entry.limit + 1)

    def text(self, operand: Operand) -> str:
        """The first legal value."""
        assert operand.immediates
        return str(operand.immediates[0])

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:  # noqa: ARG002  # it has no register
        """A template argument."""
        return (template_argument(operand, name),)


class Majorness(Immediate):
    """Along which dimension neighbours of a matrix in shared memory lie side by side; ``meanings`` has ``"K"`` and ``"MN"``."""


class Negation(Immediate):
    """The factor of a matrix: -1 negates it."""
