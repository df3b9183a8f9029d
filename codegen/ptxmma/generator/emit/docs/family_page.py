"""The page of an instruction family: the table that leads to the page of each form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ptxmma.generator.emit.docs import protocol_page, rest
from ptxmma.generator.emit.docs.errata_page import errata_list
from ptxmma.generator.emit.docs.family import Row, needs, syntax
from ptxmma.generator.emit.docs.form_groups import FormGroup
from ptxmma.model import InstructionSet, Spec, Version


def page(spec: Spec, family: str, groups: Sequence[FormGroup], forms: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The data of a family's page; ``forms`` are the rows of forms of each instruction."""
    entries = [entry for entry in spec.instructions if entry.family == family]
    return {
        "title": rest.text(family),
        "page_label": rest.label("family", family),
        "table": _table(spec, [group for group in groups if group.family == family]),
        "pages": [group.path for group in groups if group.family == family],
        "instructions": [
            {
                "name": rest.text(entry.name),
                "label": rest.label("instruction", entry.name),
                "summary": _summary(spec, entry, forms[entry.name]),
                "syntax": syntax(entry),
            }
            for entry in entries
        ],
        "protocol": protocol_page.label(family, spec) if any(entry.asynchronous for entry in entries) else "",
        "errata": errata_list(erratum for erratum in spec.errata if erratum.family == family and not erratum.when),
    }


def _table(spec: Spec, groups: Iterable[FormGroup]) -> str:
    """A row for each page."""

    def row(group: FormGroup) -> tuple[str, ...]:
        results = {
            instruction.matrix_types.get(name, ""): None
            for instruction in group.own
            for name, kind in instruction.variant.instruction.operand_kinds.items()
            if kind.kind == "accumulator"
        }
        first = min(
            (instruction.accepted_by() for instruction in group.own), key=lambda versions: min(versions.values(), default=Version())
        )
        shown = rest.link(group.shape, group.label)
        return shown, rest.codes(group.types), rest.codes(filter(None, results)), needs(spec, first), str(len(group.members))

    return rest.table(*rest.dense(("Shape", "Elements", "Accumulators", "First needs", "Variants"), map(row, groups)), kind="forms")


def _summary(spec: Spec, entry: InstructionSet, forms: Sequence[Row]) -> str:
    """One paragraph: what it is, who executes it, and how many there are."""
    count = sum(len(row.members) for row in forms)
    threads = spec.scopes[entry.scope]
    who = f"All {threads} threads of a {entry.scope} execute it together" if threads > 1 else f"Each {entry.scope} executes it by itself"
    if entry.asynchronous:
        who += "; its results appear at a later wait"
    many = f"{count} variants" if count > 1 else "one variant"
    beyond = sum(len(row.members) for row in forms if not row.form.documented)
    many += f" ({beyond} of them beyond the manual)" if beyond else ""
    return f"{rest.text(entry.title)}. {who}. There {'are' if count > 1 else 'is'} {many} (PTX ISA {rest.source(entry.source)})."
