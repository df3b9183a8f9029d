"""Operands and their layouts as JavaScript reads them: what an operand is for, how PTX and C++ take it, where its elements lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ptxmma.catalog.instructions import Catalog, OperandForm
from ptxmma.catalog.names.cplusplus import identifier, part_of_name
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import ROLES
from ptxmma.generator.emit.javascript.shortening import Interned, beginnings, bit_places, columns, without_empty
from ptxmma.model import Layout

# --- operands ---------------------------------------------------------------------------------------------------------------


#: More legal values than these are written as a range.
_FEW = 16


def places_in(form: OperandForm) -> str:
    """The syntax of a list of operands with ``#`` for each of them.

    Raises:
        ValueError: it has other names than the operands, or another order.
    """
    places = re.sub(r"[\w-]+", "#", form.syntax)
    names = iter(form.operands)
    if re.sub("#", lambda _: next(names).name, places) != form.syntax:
        raise ValueError(f"{form.syntax!r} does not list its operands in their order")
    return places


def subject(operand: Operand) -> dict[str, Any]:
    """The purpose of an operand, whatever holds it."""
    return {"name": operand.name, "kind": operand.kind} | without_empty(
        of=operand.of,
        meanings=operand.meanings,
        single=operand.single,
        braced=operand.braced,
        sparse=operand.sparsity is not None,
        unit=operand.unit,
        identifier=called if (called := identifier(operand.name)) != part_of_name(operand.name).lower() else "",
    )


def role(operand: Operand) -> dict[str, Any]:
    """The form in which PTX takes an operand."""
    legal: Any = operand.immediates
    if legal is not None and len(legal) > _FEW:
        legal = {"first": legal[0], "last": legal[-1]} | ({"step": legal.step} if isinstance(legal, range) and legal.step > 1 else {})
    elif legal is not None:
        legal = list(legal)
    return without_empty(
        access=operand.access if operand.access != "read" else "",
        constraint=operand.constraint,
        immediates=legal,
        immediate_only=not operand.takes_register,
    )


def cpp(operand: Operand) -> dict[str, str]:
    """The usual way in which a C++ function takes it, with ``#`` for the numbers of registers and ``@`` for its identifier."""
    name = identifier(operand.name)
    way = ROLES[operand.kind].parameters(operand, name, operand.c_type)[0]
    many = operand.registers > 1 or operand.listed
    value = next(iter(way.values), "").replace("[0]", "[#]" if many else "[0]")
    parameter = way.parameter.replace(f"[{operand.registers}]", "[#]") if many else way.parameter
    text = "" if way.text == "{}" else way.text
    texts = without_empty(parameter=parameter, template=way.template, value=value, text=text, prologue=way.prologue, epilogue=way.epilogue)
    return {key: re.sub(rf"(?<!\")\b{name}\b", "@", each) for key, each in texts.items()}


# --- layouts; ``layout_records.js`` expands them ----------------------------------------------------------------------------


def formulas(catalog: Catalog) -> dict[str, Any]:
    """The formulas of the spec as people read them, each with what is the same for all its layouts."""
    kinds = {layout.entry: layout.kind for layout in catalog.database.layouts if layout.kind != "fragment"}
    entries = []
    for index, entry in enumerate(catalog.database.spec.register_layouts):
        at = {axis: [f"{case.value}  if {case.when}" if case.when else case.value for case in cases] for axis, cases in entry.at.items()}
        about = without_empty(kind=kinds.get(index), let=entry.let, at=at, apart=entry.apart, text=entry.text, observed=entry.observed)
        entries.append({"operands": entry.operands} | about | {"source": entry.source})
    return columns(entries)


def records(layouts: Sequence[Layout]) -> dict[str, Any]:
    """The layouts by column, and the maps and axes that several of them have."""
    maps, axes = Interned(), Interned()
    rows = columns([_record(layout, maps, axes) for layout in layouts])
    return {"layouts": {"names": beginnings(layout.name for layout in layouts), **rows}, "maps": maps.values, "axes": axes.values}


def _record(layout: Layout, maps: Interned, axes: Interned) -> dict[str, Any]:
    """Numbers of the formula, of the map and of the axes, bits, threads, the summed axis, growing axes and steps.

    The map says which bit of which output each bit of an input becomes: ``"col:0 row:3+2"``.  Its outputs are the axes where it begins
    with a lane, and otherwise those that it mentions, unless it lists others.
    """
    bits = {name: bit_places(places) for name, places in layout.map.bits.items()}
    mentioned = dict.fromkeys(output for places in layout.map.bits.values() for output, _ in places)
    if list(layout.map.outputs) != list(layout.axes if "lane" in bits else mentioned):
        bits["->"] = " ".join(layout.map.outputs)
    numbers = {"formula": layout.entry, "map": maps.number(bits), "axes": axes.number(layout.axes)}
    more = without_empty(summed=layout.summed, growing=layout.growing, steps=layout.steps)
    return numbers | {"bits": layout.bits, "threads": layout.threads} | more
