"""Constants of an instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, legal_values, template_argument
from ptxmma.model import OperandKind


class Constant(Role):
    """An operand that is always an immediate."""

    carried = False

    def describe(self, context: Context) -> Known:
        """Its legal values."""
        return {"immediates": self.immediates(context), "takes_register": False, "constraint": "n", "meanings": context.entry.meanings}

    def text(self, operand: Operand) -> str:
        """The first legal value."""
        assert operand.immediates
        return str(operand.immediates[0])

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:  # noqa: ARG002  # it has no register
        """A template argument."""
        return (template_argument(operand, name),)


class Immediate(Constant):
    """A constant whose legal values the spec lists."""

    varies = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It needs legal values, and a default must be one of them."""
        yield from super().lacks(entry)
        values = legal_values(entry)
        if not values:
            yield "say values: [...], meanings: {...}, or limit: N for 0..N"
        elif entry.default is not None and entry.default not in values:
            shown = f"{values[0]}..{values[-1]}" if isinstance(values, range) else ", ".join(map(str, values))
            yield f"its default, {entry.default}, must be one of {shown}"

    def immediates(self, context: Context) -> Sequence[int]:
        """The values that the spec lists."""
        return legal_values(context.entry, context.variant.facts)


class Majorness(Immediate):
    """Along which dimension neighbours of a matrix in shared memory lie side by side; ``meanings`` has ``"K"`` and ``"MN"``."""

    describes = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It needs the meanings of its values."""
        yield from super().lacks(entry)
        if entry.values or entry.limit >= 0:
            yield "say meanings: what each legal immediate means, and neither values nor limit"


class Negation(Immediate):
    """The factor of a matrix: -1 negates it."""

    describes = True
