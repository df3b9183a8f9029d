"""Shared memory and descriptors as JavaScript reads them: ``descriptors.js`` expands them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ptxmma.catalog.descriptors.shared_formats import matrix_formats, read_by, reads, swizzle_encoding
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.javascript.shortening import Interned, columns, condition, formula_text, runs, without_empty
from ptxmma.matrices.shared.canonical import canonical
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.matrices.shared.suspicions import Condition, conditions, expanded, stride_users, used_strides
from ptxmma.model import DescriptorField, DescriptorFormat, Majorness, Padded, SharedMemory


def descriptors(formats: Sequence[DescriptorFormat]) -> dict[str, Any]:
    """The formats without their sources and notes, each with the numbers of its fields, and the fields."""
    fields, cases = Interned(), Interned()
    written = []
    for format in formats:
        numbers = runs([fields.number(_field(field, cases)) for field in format.fields])
        about = without_empty(qualifier=format.qualifier, kinds=format.kinds, bits=format.bits, spare=format.spare)
        written.append({"name": format.name, "title": format.title, "family": format.family} | about | {"fields": numbers})
    return {"descriptors": written, "fields": columns(fields.values), "cases": columns(cases.values)} if written else {}


def _field(field: DescriptorField, cases: Interned) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(field)
    kept = {key: value for key, value in known.items() if key not in ("source", "cases")}
    legal = [
        without_empty(when=condition(case.when), below=case.below, targets=case.targets) | ({"values": case.values} if case.values else {})
        for case in field.cases
    ]  # fmt: skip
    return kept | ({"cases": runs([cases.number(case) for case in legal])} if legal else {})


def shared_memory(catalog: Catalog) -> dict[str, Any]:
    """The facts about shared memory, and about the matrices that each family reads there; none where the spec has none."""
    spec = catalog.database.spec
    if spec.shared_memory is None:
        return {}
    assert spec.tensor_maps is not None
    memory = spec.shared_memory
    known: dict[str, Any] = _without_sources(msgspec.to_builtins(memory))
    facts = {name: known[name] for name in ("alignment", "banks", "swizzles")}
    facts["tensor_map"] = _without_sources(msgspec.to_builtins(spec.tensor_maps.limits))
    facts |= {name: formula_text(known[name]) for name in ("swizzle_formula", "base_offset")}
    cuts = [{"lines": layout.lines, "panels": layout.panel_stride, "groups": layout.group_stride} for layout in memory.layouts]
    layouts = [
        {name: layout[name] for name in ("majorness", "swizzles", "cute", "lbo", "sbo")} | {"offset": formula_text(layout["offset"])} | cut
        for layout, cut in zip(known["layouts"], cuts, strict=True)
    ]
    families = [_read_by(catalog, format) for format in matrix_formats(spec)]
    return {"memory": facts | {"layouts": layouts, "families": families, "suspicions": _suspicions(memory)}}


def _without_sources(facts: Any) -> Any:
    """Facts as JSON has them, without the sections that they are from."""
    if isinstance(facts, dict):
        return {name: _without_sources(value) for name, value in facts.items() if name != "source"}
    return [_without_sources(each) for each in facts] if isinstance(facts, list) else facts


def _suspicions(memory: SharedMemory) -> dict[str, Any]:
    """The signs of mistakes in descriptors, and where the pattern of one starts: formulas and texts over its numbers."""
    rules = conditions(memory)
    let = memory.suspicions.let
    starts = {name: formula_text(expanded(name, let)) for name in ("first", "phase")} if rules else {}
    return {"rules": [_rule(each) for each in rules], "starts": starts}


def _rule(condition: Condition) -> dict[str, Any]:
    rule = condition.rule
    about = {"rule": rule.rule, "severity": rule.severity, "names": " ".join(sorted(condition.names))} | without_empty(field=rule.field)
    text = "".join(literal + (f"{{{formula_text(number)}}}" if number else "") for literal, number in condition.text)
    return about | {"when": formula_text(" and ".join(f"({part})" for part in condition.when)), "text": text}


def _read_by(catalog: Catalog, format: DescriptorFormat) -> dict[str, Any]:
    """The matrices that a family reads, and the format of its descriptors."""
    spec, family = catalog.database.spec, format.family
    assert spec.shared_memory is not None
    own = read_by(spec, spec.shared_memory, family)
    padded = [entry for entry in own.padded if reads(family, entry.family)]

    def rows(entries: Iterable[Majorness | Padded]) -> list[dict[str, Any]]:
        return [
            {"majorness": entry.majorness, "swizzles": entry.swizzles, "elements": entry.elements}
            | ({"group": entry.group} if isinstance(entry, Padded) else {})
            for entry in entries
        ]

    return {
        "family": family,
        "descriptor": format.name,
        "encodings": swizzle_encoding(spec, family),
        "reads": rows(own.majorness),
        "padded": rows(padded),
        "strides": _strides(catalog, family),
    }


def _strides(catalog: Catalog, family: str) -> dict[str, dict[str, dict[str, list[str]]]]:
    """By majorness and swizzle: the strides that are used, each with the operands that use it; none where all do."""
    memory = read_by(catalog.database.spec, memory_of(catalog.database), family)
    of = catalog.database, family
    return {
        majorness: {
            name: {stride: [] if stride in used_strides(layout, *of) else users for stride, users in stride_users(layout, *of).items()}
            for each in memory.layouts
            if each.majorness == majorness
            for name in each.swizzles
            for layout in [canonical(memory, majorness, name)]
        }
        for majorness in dict.fromkeys(each.majorness for each in memory.layouts)
    }
