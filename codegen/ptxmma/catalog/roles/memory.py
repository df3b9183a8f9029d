"""Operands that name shared memory: matrix descriptors, addresses, strides."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.register_operand import RowAddress
from ptxmma.catalog.roles.role import Context, Known, Parameter, Role

#: The largest stride that fits into 32 bits.
_LARGEST = (1 << 32) - 1


class Descriptor(Role, kinds=("descriptor",)):
    """A 64-bit word that says where a matrix lies in shared memory, and how."""

    matrix = True
    multiplied = True
    describes = True
    alone = True
    varies = True


class SharedDescriptor(Role, kinds=("shared-descriptor",)):
    """A 64-bit word that says where data lies in shared memory, and how, where the instruction does not name its type."""

    varies = True


class Location(Role, kinds=("location",)):
    """The address of one object, of as many bytes as its alignment: of a word that an instruction writes, or of an mbarrier."""

    needs = (("alignment", "the bytes to whose multiples it is aligned"),)

    def describe(self, context: Context) -> Known:
        """Its alignment."""
        numbers = layouts.variables(context.spec, context.variant, context.name)
        return context.carried() | {"alignment": layouts.size(context.entry.alignment, numbers), "writes": True}

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A 32-bit shared address, or a pointer; of a generic address a pointer alone."""
        pointer = f"{'' if operand.writes else 'const '}{self.target(operand)}* {name}"
        if operand.constraint == "l":
            return (Parameter(parameter=pointer, values=(f'"l"({name})',)),)
        shared = f'"{operand.constraint}"(static_cast<{c_type}>(__cvta_generic_to_shared({name})))'
        return (*super().parameters(operand, name, c_type), Parameter(parameter=pointer, values=(shared,)))

    def either(self, operand: Operand, name: str, c_type: str) -> Parameter | None:  # noqa: ARG002  # 32 bits
        """A shared address: a number, or made of a pointer."""
        if operand.constraint == "l":
            return None
        return Parameter(parameter=f"{self.place(operand)} {name}", values=(f'"{operand.constraint}"({name}.address)',))

    def target(self, operand: Operand) -> str:
        """The C++ type that a pointer to it points to."""
        return f"uint{8 * operand.alignment}_t"

    def place(self, operand: Operand) -> str:
        """The C++ type of its address in shared memory."""
        return f"shared_place<{'' if operand.writes else 'const '}{self.target(operand)}>"


class Block(Location):
    """The address of memory of any size."""

    def target(self, operand: Operand) -> str:  # noqa: ARG002  # of any type
        """Data of any type."""
        return "void"

    def place(self, operand: Operand) -> str:
        """The same without a template: many functions have it, and compilers read it faster."""
        return "shared_destination" if operand.writes else "shared_source"


class Destination(Block, kinds=("destination",)):
    """The address to which data is copied."""


class Source(Block, kinds=("source",)):
    """The address from which data is copied."""

    def describe(self, context: Context) -> Known:
        """It is read only."""
        return super().describe(context) | {"writes": False}


class TensorMap(Source, kinds=("tensormap",)):
    """The generic address of a tensor map: coordinates follow it in its brackets."""


class Address(Block, kinds=("address",)):
    """The address of a row, one from each thread, or of a whole matrix."""

    layout_kind = "address"
    describes = True
    places = True
    operand_type = RowAddress

    def describe(self, context: Context) -> Known:
        """Its alignment and whether memory is written there; of a row also which thread gives it, and its bytes."""
        entry = context.entry
        numbers = layouts.variables(context.spec, context.variant, context.name) | {
            "thread_bytes": layouts.thread_bytes(context.described().plan())
        }
        known: Known = context.carried() | {"alignment": layouts.size(entry.alignment, numbers)}
        known["memory_bits"] = layouts.size(entry.memory_bits or "bits", numbers)
        known["writes"] = context.described().entry.access == "read"
        if context.plan_of(context.variant, context.name) is not None:
            known |= context.layout() | {"row_bytes": layouts.size(entry.row_bytes, numbers)}
        return known


class Stride(Role, kinds=("stride",)):
    """The number of elements from the start of a row, or column, to the next one's."""

    describes = True
    places = True
    varies = True
    needs = (("order", "the qualifier that is row where rows lie one after another in memory, and col where columns do"),)

    def describe(self, context: Context) -> Known:
        """Its unit, and what leaving it out means: rows, or columns, without a gap."""
        matrix = context.described().layout()
        slow, fast = matrix["layout"].plane
        if context.variant.qualifiers[context.entry.order] != "row":
            slow, fast = fast, slow
        return super().describe(context) | {"unit": context.entry.unit, "order": (slow, fast), "default": matrix["sizes"][fast]}

    def immediates(self, context: Context) -> Sequence[int] | None:
        """Any number of elements."""
        return range(_LARGEST + 1) if context.entry.immediate else None
