"""Scale factors of blocks of a matrix, and the ids that choose among those in a register."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, template_argument
from ptxmma.model import OperandKind


class ScaleData(Role):
    """A register with scale factors."""

    layout_kind = "scale"
    axes = ("block", "byte_id", "thread_id")
    describes = True
    alone = True

    def describe(self, context: Context) -> Known:
        """One register, the type of the scale factors, and which lies where."""
        return super().describe(context) | context.element() | context.layout()


class ByteId(Role):
    """Which bytes of the register hold the scale factors."""

    axis: ClassVar[str] = "byte_id"
    describes = True
    beside = "scale-data"
    follows = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It must admit an immediate."""
        yield from super().lacks(entry)
        if not entry.immediate:
            yield "say immediate: true, as for every scale id"

    def immediates(self, context: Context) -> Sequence[int]:
        """The numbers of the layout's axis of that name."""
        plan = context.neighbour(self.beside).plan()
        return tuple(number * plan.steps.get(self.axis, 1) for number in range(plan.axes[self.axis]))

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A template argument, or a register."""
        return (template_argument(operand, name), *super().parameters(operand, name, c_type))


class ThreadId(ByteId):
    """Which threads of each quad hold the scale factors."""

    axis = "thread_id"
