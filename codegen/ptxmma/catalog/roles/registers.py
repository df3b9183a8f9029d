"""Operands in the registers of all threads, fragments, metadata and scale factors, and the numbers that select a part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.metadata import Metadata
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.register_operand import RegisterOperand
from ptxmma.catalog.operands.scales import Scales
from ptxmma.catalog.roles.numbers import Constant
from ptxmma.catalog.roles.role import Context, Known, Parameter, Role, register_type, template_argument, vector


class Fragment(Role, kinds=("fragment",)):
    """A multiplicand, or any other matrix in registers."""

    matrix = True
    multiplied = True
    layout_kind = "fragment"
    typed = True
    varies = True
    operand_type = RegisterOperand

    def describe(self, context: Context) -> Known:
        """Its elements, the registers that hold them, and where each lies."""
        known = context.element(context.entry.type)
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
        """An array by reference, or, of a single register, that or its value."""
        prefix = {"read": "", "write": "=", "read-write": "+"}[operand.access]
        declared = f"{'' if prefix else 'const '}{c_type} (&{name})[{operand.registers}]"
        values = tuple(f'"{prefix}{operand.constraint}"({name}[{i}])' for i in range(operand.registers))
        if operand.single:
            value = f'"{prefix}{operand.constraint}"({name})'
            return (Parameter(declared, values=values), Parameter(parameter=f"{c_type}{'&' if prefix else ''} {name}", values=(value,)))
        return (Parameter(declared, values=values, array=f'"{prefix}{operand.constraint}", {name}', text="{{{}}}"),)


class Accumulator(Fragment, kinds=("accumulator",)):
    """The matrix that products are added to, or the result."""

    multiplied = False
    varies = False


class MetadataWord(Role, kinds=("metadata",)):
    """A register with the indices of the kept elements."""

    layout_kind = "metadata"
    axes = ("row", "chunk", "selector")
    describes = True
    sparse = True
    operand_type = Metadata

    def describe(self, context: Context) -> Known:
        """One register, the place of each field, and the fields that the instruction admits."""
        spec, facts = context.spec, context.variant.facts
        pattern = layouts.granularity(spec, context.variant)
        if pattern is None:
            raise LookupError(f"no granularity of the spec is for {context.variant.canonical}")
        padding = next(field for occupied, field in spec.choice(pattern).fields.items() if not int(occupied, 2))
        fields = {"granularity": pattern, "legal": pattern.admitted(facts), "padding": padding}
        return super().describe(context) | context.layout() | fields | {"contributors": spec.register_layouts[context.plan().entry].text}


class Selector(Constant, kinds=("selector",)):
    """The number of the threads of each quad that give the metadata; the layout of the metadata says how many choices there are."""

    describes = True
    sparse = True
    beside = "metadata"

    def immediates(self, context: Context) -> Sequence[int]:
        """The numbers of the layout's axis ``selector``."""
        return tuple(range(context.neighbour(self.beside).plan().axes["selector"]))


class ScaleData(Role, kinds=("scale-data",)):
    """A register with scale factors."""

    layout_kind = "scale"
    axes = ("block", "byte_id", "thread_id")
    describes = True
    alone = True
    operand_type = Scales

    def describe(self, context: Context) -> Known:
        """One register, the type of the scale factors, and the place of each."""
        return super().describe(context) | context.element(context.entry.type) | context.layout()


class ByteId(Role, kinds=("byte-id",)):
    """The number of the bytes of the register that hold the scale factors."""

    axis: ClassVar[str] = "byte_id"
    describes = True
    beside = "scale-data"
    follows = True
    needs = (("immediate", "true, as for every scale id"),)

    def immediates(self, context: Context) -> Sequence[int]:
        """The numbers of the layout's axis of that name."""
        plan = context.neighbour(self.beside).plan()
        return tuple(number * plan.steps.get(self.axis, 1) for number in range(plan.axes[self.axis]))

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A template argument, or a register."""
        return (template_argument(operand, name), *super().parameters(operand, name, c_type))


class ThreadId(ByteId, kinds=("thread-id",)):
    """The number of the threads of each quad that hold the scale factors."""

    axis = "thread_id"
