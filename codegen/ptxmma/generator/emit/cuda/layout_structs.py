"""The layouts of a family as C++ types, whose members are the functions of its C header."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.generator.emit import c_text
from ptxmma.generator.emit.c_headers.layout_functions import functions, stem
from ptxmma.model import formula


class Member(NamedTuple):
    """One function: its name, its parameters, and the function of the C header that it calls."""

    name: str
    parameters: str
    arguments: str
    function: str


class LayoutStruct(NamedTuple):
    """One layout.

    Attributes:
        name: ``"mma_m16n8k16_a_b16"``.
        members: its functions.
        bits: width of an element's container; 0 without elements.
        depth: the axis along which a product sums, ``"col"`` of A and ``"row"`` of B; of a result the columns; empty without elements.
        result: whether a product sums along neither.
    """

    name: str
    members: list[Member]
    bits: int
    depth: str
    result: bool


def of(catalog: Catalog, family: str) -> list[LayoutStruct]:
    """The layouts of a family."""
    spec = catalog.database.spec
    operands: dict[str, Operand] = {}
    for instruction in catalog.all(lambda entry: entry.family == family):
        operands.update({operand.layout.name: operand for operand in instruction.operands if operand.layout is not None})
    structs = []
    for layout in catalog.database.layouts:
        if layout.family != family:
            continue
        entry, prefix = spec.register_layouts[layout.entry], f"{stem(layout)}_"
        members = [
            Member(
                one.name.removeprefix(prefix), ", ".join(f"uint32_t {name}" for name in one.parameters), ", ".join(one.parameters), one.name
            )
            for one in functions(layout, entry, operands[layout.name])
        ]
        summed = [axis for axis, size in entry.axes.items() if "k" in formula.names(formula.parse(size))]
        depth = (summed or [layout.coordinates[-1]])[0] if layout.kind == "fragment" else ""
        structs.append(LayoutStruct(c_text.identifier(layout.name), members, layout.bits, depth, not summed))
    return structs
