"""The sections of the page of a form: its names in C++, its pictures, the choices of its products, the pages beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.names.cplusplus import shown
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.catalog.names.product_family import type_of_product
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.legal_products import facts_of, met
from ptxmma.catalog.roles import multiplicands
from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.generator.emit.docs.family import UNDOCUMENTED, Row
from ptxmma.generator.emit.docs.form_groups import FormGroup
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.docs.layout_sections import Use
from ptxmma.model import Condition, InstructionSet, Spec

# --- names in C++ -----------------------------------------------------------------------------------------------------------


def functions(forms: Sequence[Row]) -> str:
    """A row for the first variant of each form, documented ones first: its function, its type in the typed front, its header if several."""
    first = [(row.members[0], row.form.documented) for row in sorted(forms, key=lambda row: not row.form.documented)]
    headers = {shown(instruction).header for instruction, _ in first}
    rows = []
    for instruction, documented in first:
        said = shown(instruction)
        names = [f"ptxmma::{instruction.identifier}", said.front or type_of_product(instruction)]
        names += [f"#include <{said.header}>"] if len(headers) > 1 else []
        spelling = rest.code(instruction.canonical) + ("" if documented else f" ({UNDOCUMENTED})")
        rows.append([spelling, "\n\n".join(map(rest.code, filter(None, names)))])
    return rest.table(("Variant", "Function and type"), rows, kind="names")


# --- pictures ---------------------------------------------------------------------------------------------------------------


#: Places of a product: A is on the left, B above, the accumulators between them.
_PRODUCT = ("left", "above", "result")
_BESIDE = "beside"


def figures(gallery: Gallery, entries: Iterable[InstructionSet], uses: Iterable[Use], root: str) -> dict[str, list[dict[str, Any]]]:
    """The pictures by their places, one for each layout; ``root`` leads from the page to the site's first folder."""
    places: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.operation == "multiply":
            places |= {(entry.name, name): place for name, place in zip(multiplicands(entry), ("left", "above"), strict=False)}
            places |= {(entry.name, name): "result" for name, kind in entry.operand_kinds.items() if kind.kind == "accumulator"}
    by_picture: dict[str, list[Use]] = {}
    for use in uses:
        by_picture.setdefault(use.picture, []).append(use)
    made: dict[str, list[dict[str, Any]]] = {place: [] for place in (*_PRODUCT, _BESIDE)}
    for picture, group in by_picture.items():
        place = next((places[key] for use in group if (key := (use.instruction, use.operand.name)) in places), _BESIDE)
        made[place].append(
            {
                "picture": picture,
                "width": gallery.width(picture),
                "alt": f"Layout of {' and '.join(dict.fromkeys(use.operand.name for use in group))}",
                "explorer": f"{root}{EXPLORER}{explorer(i=group[0].canonical)}",
                "caption": _caption(group),
            }
        )
    return {place: shown for place, shown in made.items() if shown}


#: Pixels beside the pictures of A and B that fit beside each other on most screens, and on the widest.
_FITTING, _WIDEST = 944, 1200


def arrangement(figures: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The class of the pictures of a product: A on the left of B wherever both fit whole, on ``"wide"`` screens alone; ``""`` nowhere."""
    if not {"left", "above"} <= figures.keys():
        return ""
    across = sum(max(each["width"] for each in figures[place]) for place in ("left", "above"))
    return "product" if across <= _FITTING else "product wide" if across <= _WIDEST else ""


def _caption(group: Sequence[Use]) -> str:
    """The operands, their types and sizes, and the layout's name in generated code."""
    names = rest.codes(dict.fromkeys(use.operand.name for use in group))
    types = list(dict.fromkeys(use.element for use in group if use.element))
    modifiers = list(dict.fromkeys(use.modifiers for use in group if use.modifiers))
    text = names + (f" of {rest.codes(types)}" if types else "")
    text += f" with {' or '.join(map(rest.code, modifiers))}" if modifiers else ""
    counts = list(dict.fromkeys((use.elements, use.registers) for use in group if use.elements))
    if len(counts) == 1:
        elements, registers = counts[0]
        holders = "one register" if registers == "1" else f"{registers} registers"
        text += f": {elements} elements in {holders}" if elements != "1" else ": one element"
    return f"{text}. {rest.codes(dict.fromkeys(use.layout.name for use in group))}"


# --- products whose instruction descriptor chooses --------------------------------------------------------------------------


def product_tables(spec: Spec, opcodes: Sequence[Instruction]) -> tuple[list[str], str]:
    """The rules that some opcodes of one instruction can meet, and those that narrow them further; nothing where they state their shape.

    A product is legal if a row of each table allows it.
    """
    rules = spec.tensor_products
    if rules is None or opcodes[0].operation != resolution.OPERATION:
        return [], ""
    facts = [facts_of(opcode.database.spec, opcode.variant) for opcode in opcodes]
    needs = {"targets": "Targets, and those that include one"}
    scales = {"stype": "Scale factors", "block": "Elements that share one", **needs}
    sizes: dict[str, Any] = {"titles": {"m": "M", "n": "N"}, "cells": {"n": lambda row: product_rules.ranges(row.n)}}
    limits = {"titles": sizes["titles"] | {"fields": "Other fields"}, "cells": sizes["cells"] | {"fields": lambda row: _fields(row.fields)}}
    chosen = [
        struct_tables.table(met(rules.types, facts), titles={"dtype": "D", "atype": "A", "btype": "B"}),
        struct_tables.table(met(rules.depths, facts), titles={"k": "K", **needs}),
        struct_tables.table(met(rules.options, facts), titles={"field": "Field of the descriptor", "value": "Value", **needs}),
        struct_tables.table(met(rules.shapes, facts), **sizes),
        struct_tables.table(met(rules.scales, facts), titles=scales),
    ]
    return list(filter(None, chosen)), struct_tables.table(met(rules.limits, facts), **limits)


def _fields(fields: Condition) -> str:
    """The fields that a limit leaves some values: ``btype e4m3, b_majorness K``."""
    return ", ".join(f"{rest.code(name)} {rest.codes(map(str, values))}" for name, values in fields.items())


# --- pages beside it --------------------------------------------------------------------------------------------------------


#: The factor by which a sparse product covers more of K, with as many products.
_RATIO = 2


def neighbours(group: FormGroup, every: Sequence[FormGroup]) -> list[str]:
    """Lines with links; empty where a group has no neighbours."""
    return [
        f"{what}: {', '.join(rest.link(other.title, other.label) for other in others)}"
        for what, others in _neighbours(group, every)
        if others
    ]


def _neighbours(group: FormGroup, every: Sequence[FormGroup]) -> Iterator[tuple[str, list[FormGroup]]]:
    others = [other for other in every if other.path != group.path]
    own = [other for other in others if other.family == group.family]
    first = group.own[0]
    sparse = first.sparse
    yield f"The {'dense' if sparse else 'sparse'} counterpart", [other for other in others if _is_counterpart(group, other)]
    yield "The same width", [other for other in own if other.bits == group.bits and group.bits]
    yield "The same shape", [other for other in own if other.shape == group.shape and other.bits != group.bits]
    yield "Used with it", [other for other in own if not other.bits] if first.operation != "synchronise" else []
    yield "Others of the family", own if first.operation == "synchronise" else []
    if first.operation != "multiply":
        return
    yield (
        "Other families with these types",
        [
            other
            for other in others
            if other.family != group.family and set(other.types) & set(group.types) and other.own[0].operation == "multiply"
        ],
    )


def _is_counterpart(group: FormGroup, other: FormGroup) -> bool:
    """Return whether two groups multiply the same types alike, one of them a sparse A with twice the K."""
    one, two = group.own[0], other.own[0]
    if (
        one.sparse == two.sparse
        or not set(group.types) & set(other.types)
        or one.variant.instruction.scope != two.variant.instruction.scope
    ):
        return False
    dense, sparse = (two, one) if one.sparse else (one, two)
    return sparse.extents | {"k": dense.extents.get("k")} == dense.extents and sparse.extents.get("k") == _RATIO * dense.extents.get("k", 0)
