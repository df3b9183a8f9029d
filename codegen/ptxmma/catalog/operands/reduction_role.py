"""What a load of tensor memory computes of the columns of each thread: their least or greatest, and which of them are kept."""

from __future__ import annotations

from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role
from ptxmma.catalog.operands.tensor_product_role import LaneMask


class Reduction(Role):
    """A register of each thread with one value for all of its columns."""

    typed = True

    def describe(self, context: Context) -> Known:
        """One register of its type."""
        return context.carried(str(context.variant.facts[context.entry.type]))

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A reference."""
        return (Parameter(parameter=f"{c_type}& {name}", values=(f'"={operand.constraint}"({name})',)),)


class Indices(LaneMask):
    """Which columns are kept, in a list of registers."""

    varies = False

    def describe(self, context: Context) -> Known:
        """A list even of one register."""
        return super().describe(context) | {"braced": True}

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """An array by reference, which is written."""
        values = tuple(f'"={operand.constraint}"({name}[{number}])' for number in range(operand.registers))
        return (Parameter(parameter=f"{c_type} (&{name})[{operand.registers}]", values=values, text="{{{}}}"),)
