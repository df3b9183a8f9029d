"""Operands that name shared memory: matrix descriptors, addresses of rows, strides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.role import Context, Known, Parameter, Role
from ptxmma.model import Layout

#: The largest stride that fits into 32 bits.
_LARGEST = (1 << 32) - 1


class Descriptor(Role):
    """A 64-bit word that says where a matrix lies in shared memory, and how."""


class Address(Role):
    """An address: of a row of each matrix, by thread, or of a whole matrix."""

    layout_kind = "address"

    def describe(self, context: Context) -> Known:
        """Its alignment, whether memory is written there, and for rows: which thread gives which, and how long each is."""
        entry = context.entry
        numbers = layouts.variables(context.spec, context.variant, context.name) | {"thread_bytes": _thread_bytes(context)}
        known: Known = context.carried() | {"alignment": layouts.size(entry.alignment, numbers)}
        known["writes"] = _matrix(context).entry.access == "read"
        if layouts.plan(context.spec, context.variant, context.name) is not None:
            known |= context.layout() | {"row_bytes": layouts.size(entry.row_bytes, numbers)}
        return known

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A 32-bit shared address, or a pointer; of a generic address a pointer alone."""
        pointer = f"{'' if operand.writes else 'const '}void* {name}"
        if operand.constraint == "l":
            return (Parameter(parameter=pointer, values=(f'"l"({name})',)),)
        shared = f'"{operand.constraint}"(static_cast<{c_type}>(__cvta_generic_to_shared({name})))'
        return (*super().parameters(operand, name, c_type), Parameter(parameter=pointer, values=(shared,)))


class Stride(Role):
    """Elements from the start of a row, or column, to that of the next."""

    def describe(self, context: Context) -> Known:
        """Its unit, and what leaving it out means: rows, or columns, without a gap."""
        sizes = _matrix(context).layout()["sizes"]
        default = sizes["col" if context.variant.qualifiers[context.entry.order] == "row" else "row"]
        return super().describe(context) | {"unit": context.entry.unit, "default": default}

    def immediates(self, context: Context) -> Sequence[int] | None:
        """Any number of elements."""
        return range(_LARGEST + 1) if context.entry.immediate else None


def _matrix(context: Context) -> Context:
    """The operand whose matrix lies in memory."""
    name = context.entry.of
    return context._replace(name=name, entry=context.variant.instruction.operand_kinds[name])


def _thread_bytes(context: Context) -> int:
    """Bytes that one thread holds of the matrix."""
    matrix = _matrix(context)
    layout: Layout = matrix.layout()["layout"]
    elements = math.prod(layout.axes.values()) // layout.threads
    return elements * layout.bits // 8
