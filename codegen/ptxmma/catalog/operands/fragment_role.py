"""Elements of a matrix, spread over the registers of the threads."""

from __future__ import annotations

import math

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role, register_type, vector


class Fragment(Role):
    """A multiplicand, or any other matrix in registers."""

    matrix = True
    multiplied = True
    layout_kind = "fragment"
    typed = True
    varies = True

    def describe(self, context: Context) -> Known:
        """Its elements, the registers that hold them, and where each lies."""
        known = context.element()
        known |= context.carried(known["element_type"]) | context.layout()
        elements = math.prod(known["sizes"].values()) // known["layout"].threads
        usual = register_type(context.spec, known["register_types"][0])
        known |= {"elements": elements, "registers": elements * known["bits"] // usual.bits, "single": context.entry.single}
        if context.entry.sparse:
            known["sparsity"] = layouts.granularity(context.spec, context.variant)
        return known

    def text(self, operand: Operand) -> str:
        """A list of registers in braces, or one register without."""
        if operand.single:
            return super().text(operand)
        return vector(operand.register_types[0], operand.registers)

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """An array by reference, or a single register."""
        prefix = {"read": "", "write": "=", "read-write": "+"}[operand.access]
        if operand.single:
            value = f'"{prefix}{operand.constraint}"({name})'
            return (Parameter(parameter=f"{c_type}{'&' if prefix else ''} {name}", values=(value,)),)
        array = Parameter(
            parameter=f"{'' if prefix else 'const '}{c_type} (&{name})[{operand.registers}]",
            values=tuple(f'"{prefix}{operand.constraint}"({name}[{i}])' for i in range(operand.registers)),
            array=f'"{prefix}{operand.constraint}", {name}',
            text="{{{}}}",
        )
        return (array,)


class Accumulator(Fragment):
    """The matrix that products are added to, or the result."""

    multiplied = False
    varies = False
