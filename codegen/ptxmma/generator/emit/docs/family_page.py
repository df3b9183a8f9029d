"""What the page of an instruction family says, as data for its template.

Which sections a family has follows from what the spec says of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.generator.emit.docs import cplusplus_section, layout_sections, layout_uses, operand_tables, rest, rule_tables, struct_tables
from ptxmma.generator.emit.docs.errata_page import errata_table
from ptxmma.generator.emit.docs.family import DAGGER, Row, form_table, matrix, needs, qualifier_table, syntax, usual
from ptxmma.generator.emit.docs.fragment_relations import Relations
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices.operations import operation
from ptxmma.model import (
    InstructionSet,
    Spec,
    Version,
)


def page(catalog: Catalog, gallery: Gallery, relations: Relations, family: str, forms: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The data of a family's page; ``forms`` are the :func:`rows` of each instruction."""
    spec = catalog.database.spec
    entries = [entry for entry in spec.instructions if entry.family == family]
    shown = {entry.name: operand_tables.representatives(catalog, entry) for entry in entries}
    uses = {entry.name: layout_uses.uses(catalog, gallery, entry, shown[entry.name]) for entry in entries}
    sections = layout_sections.sections(spec, gallery, relations, itertools.chain.from_iterable(uses.values()))
    return {
        "title": rest.text(family),
        "page_label": rest.label("family", family),
        "keywords": ", ".join(dict.fromkeys(_every_shape(catalog, entries))),
        "instructions": [
            _instruction(catalog, entry, forms[entry.name], shown[entry.name])
            | {
                "registers": layout_uses.layout_table(uses[entry.name]),
                # Those that an earlier instruction of the page shows are not shown again.
                "layouts": [
                    sections.pop(picture) for picture in dict.fromkeys(use.picture for use in uses[entry.name]) if picture in sections
                ],
            }
            for entry in entries
        ],
        "protocol": spec.protocol is not None and any(entry.asynchronous for entry in entries),
        "errata": errata_table(erratum for erratum in spec.errata if erratum.family == family),
    }


def _every_shape(catalog: Catalog, entries: Iterable[InstructionSet]) -> Iterator[str]:
    """The shapes that the page abbreviates, for the search."""
    for entry in entries:
        for instruction in catalog.of(entry.name):
            if instruction.variant.ranging:
                yield instruction.variant.shape


def _instruction(catalog: Catalog, entry: InstructionSet, forms: Sequence[Row], representatives: Sequence[Instruction]) -> dict[str, Any]:
    spec = catalog.database.spec
    described = operand_tables.described_operands(entry, representatives)
    return {
        "name": rest.text(entry.name),
        "label": rest.label("instruction", entry.name),
        "summary": _summary(spec, entry, forms),
        "syntax": syntax(entry),
        "statements": _statements(representatives),
        "qualifiers": qualifier_table(entry),
        "forms": form_table(spec, entry, [row for row in forms if row.form.documented]),
        "beyond": form_table(spec, entry, [row for row in forms if not row.form.documented]),
        "usual": usual(entry),
        "dagger": DAGGER if any(row.accepted != row.stated for row in forms) else "",
        "matrix": matrix(spec, {needs(spec, row.accepted): row.accepted for row in forms}, "Forms that need"),
        "operands": operand_tables.operand_table(entry, described),
        "register_types": operand_tables.register_type_table(spec, entry, representatives, described),
        "functions": cplusplus_section.functions(forms),
        "statement": cplusplus_section.statement(forms),
        "sparsity": entry.sparse and bool(spec.granularities),
        "block_scaling": bool(spec.block_scaling) and any(kind.kind == "scale-data" for kind in entry.operand_kinds.values()),
        "descriptors": spec.shared_memory is not None and any(kind.kind == "descriptor" for kind in entry.operand_kinds.values()),
        "semantics": rule_tables.semantics_table(entry),
        "accumulation": rule_tables.accumulation_table(entry),
        "uniform": rule_tables.statements(entry.uniform),
        "undefined": rule_tables.statements(entry.undefined),
        "notes": rule_tables.statements(entry.notes),
        "requirements": struct_tables.table(entry.requires, titles={"when": "When"}),
        "observed": struct_tables.table(entry.observed, titles={"when": "When", "releases": "Releases that differ", "source": "Seen in"}),
    }


def _statements(representatives: Iterable[Instruction]) -> list[str]:
    """What an instruction does with its operands; where variants differ, each statement with the first variant that does so."""
    statements: dict[str, str] = {}
    for instruction in representatives:
        statements.setdefault(operation(instruction).statement(instruction), instruction.canonical)
    if len(statements) == 1:
        return list(statements)
    return [line for statement, spelling in statements.items() for line in (statement, f"    // {spelling}")]


def _summary(spec: Spec, entry: InstructionSet, forms: Sequence[Row]) -> str:
    """One paragraph: what it is, who executes it, how many there are, and since when."""
    count = sum(len(row.members) for row in forms)
    threads = spec.scopes[entry.scope]
    who = f"All {threads} threads of a {entry.scope} execute it together" if threads > 1 else f"Each {entry.scope} executes it by itself"
    if entry.asynchronous:
        who += "; its results appear at a later wait"
    first = dict.fromkeys(needs(spec, row.accepted) for row in sorted(forms, key=lambda row: _first(row.accepted)))
    since = f"the first of them with {next(iter(first))}" if len(first) > 1 else f"with {next(iter(first))}"
    many = f"{count} variants" if count > 1 else "one variant"
    beyond = sum(len(row.members) for row in forms if not row.form.documented)
    many += f" ({beyond} of them beyond the manual)" if beyond else ""
    return f"{rest.text(entry.title)}. {who}. There {'are' if count > 1 else 'is'} {many}, {since} (PTX ISA {rest.source(entry.source)})."


def _first(accepted: dict[str, Version]) -> Version:
    return min(accepted.values(), default=Version())
