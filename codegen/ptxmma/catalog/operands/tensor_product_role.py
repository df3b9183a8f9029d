"""Operands that say what a product of matrices in tensor memory is: its shape and types, and which of its lanes and columns count."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, vector
from ptxmma.model import OperandKind


class InstructionDescriptor(Role):
    """A 32-bit word with the shape, the types and the options of a product."""


class LaneMask(Role):
    """A bit for each lane of tensor memory, in a list of registers; the lanes of the bits that are set keep their values."""

    varies = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It needs the length of the list."""
        yield from super().lacks(entry)
        if not entry.count:
            yield "say count: the registers of the list"

    def describe(self, context: Context) -> Known:
        """The length of the list."""
        numbers = layouts.variables(context.spec, context.variant, context.name)
        return super().describe(context) | {"registers": layouts.size(context.entry.count, numbers)}

    def text(self, operand: Operand) -> str:
        """The list in braces."""
        return vector(operand.register_types[0], operand.registers)

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """An array by reference."""
        values = tuple(f'"{operand.constraint}"({name}[{number}])' for number in range(operand.registers))
        return (Parameter(parameter=f"const {c_type} (&{name})[{operand.registers}]", values=values, text="{{{}}}"),)


class ColumnMask(Role):
    """A 64-bit word that says which columns of a matrix count as zero."""

    varies = True
