"""The pages that lead to others: the index, every instruction on one page, and the page of each family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names import links
from ptxmma.generator.emit import matrices
from ptxmma.generator.emit.docs import family, form_groups, ordering, rest, spec_pages
from ptxmma.generator.emit.docs.errata_page import errata_list
from ptxmma.generator.emit.docs.family import Row, needs, syntax
from ptxmma.generator.emit.docs.form_groups import FormGroup
from ptxmma.model import InstructionSet, Spec, Version

# --- index ------------------------------------------------------------------------------------------------------------------


#: Pages that the site lists beside its guides.
ELSEWHERE = ("errata", "evidence", "differences", "rules")

#: The rows of forms of each instruction.
Forms = Mapping[str, Sequence[family.Row]]


def index(spec: Spec, families: Sequence[str], forms: Forms, pages: Sequence[str], groups: Sequence[FormGroup]) -> dict[str, Any]:
    """The values for the index."""
    alone = {group.family: group.path for group in groups if form_groups.alone(group, groups)}
    rows = []
    for name in families:
        entries = [entry for entry in spec.instructions if entry.family == name]
        accepted = [row.accepted for entry in entries for row in forms[entry.name]]
        earliest = min(accepted, key=lambda versions: min(versions.values(), default=Version()))
        rows.append(
            (
                rest.link(name, rest.label("family", name)),
                rest.text(next((entry for entry in entries if entry.operation == "multiply"), entries[0]).title),
                rest.codes(entry.name for entry in entries),
                str(sum(len(row.members) for entry in entries for row in forms[entry.name])),
                family.needs(spec, earliest),
            )
        )
    header = ("Family", "What it does", "Instructions", "Variants", "First variant needs")
    return {
        "families": rest.table(header, rows),
        "pages": [page for page in pages if "/" not in page and page not in (*families, *ELSEWHERE)],
        "family_pages": [alone.get(name, name) for name in families],
    }


def scope(catalog: Catalog) -> str:
    """A table for the first page of the site: which instructions there are, on which chips they run and on which they were run."""
    summary = evidence.of(catalog.database)
    families: dict[str, list[Instruction]] = {}
    for instruction in catalog.all():
        families.setdefault(instruction.family, []).append(instruction)
    rows = []
    for name, members in families.items():
        entry = members[0].variant.instruction
        ran = sum(bool(summary.of(instruction.canonical).executed) for instruction in members)
        chips = sorted({run.chip for instruction in members for run in summary.of(instruction.canonical).executed})
        run = f"{ran} of {len(members)} on {', '.join(map(rest.text, chips))}" if ran else rest.NOTHING
        rows.append((rest.link(name, rest.label("family", name)), rest.source(entry.source.rpartition(".")[0]), str(len(members)), run))
    return rest.table(("Family", "Chapter", "Variants", "Run"), rows)


def headers(catalog: Catalog) -> str:
    """The names of headers as a substitution, for the guide to the headers."""
    packing = (f"ptxmma/{name}" if number == 0 else name for number, name in enumerate(matrices.family_headers(catalog)))
    return f".. |headers that pack| replace:: {rest.codes(packing)}\n"


def all_instructions(spec: Spec, forms: Forms) -> dict[str, Any]:
    """The values for the page with every instruction."""
    return {
        "instructions": [
            {
                "entry": entry,
                "patterns": [family.pattern(entry, row) for row in forms[entry.name] if row.form.documented],
                "beyond": [family.pattern(entry, row) for row in forms[entry.name] if not row.form.documented],
            }
            for entry in spec.instructions
        ]
    }


# --- families ---------------------------------------------------------------------------------------------------------------


def labels(family: str, entries: Iterable[InstructionSet]) -> list[str]:
    """The targets of references to a family and to its instructions."""
    return [rest.label("family", family), *(rest.label("instruction", entry.name) for entry in entries)]


def family_page(spec: Spec, family: str, groups: Sequence[FormGroup], forms: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The data of a family's page; ``forms`` are the rows of forms of each instruction."""
    entries = [entry for entry in spec.instructions if entry.family == family]
    return {
        "family": family,
        "table": _table(spec, [group for group in groups if group.family == family]),
        "pages": [group.path for group in groups if group.family == family],
        "instructions": [
            {"entry": entry, "summary": _family_summary(spec, entry, forms[entry.name]), "syntax": syntax(entry)} for entry in entries
        ],
        "protocol": spec_pages.protocol_label(family, spec) if any(entry.asynchronous for entry in entries) else "",
        "errata": errata_list(erratum for erratum in spec.errata if erratum.family == family and not erratum.when),
    }


def _table(spec: Spec, groups: Iterable[FormGroup]) -> str:
    """A row for each page, and for each requirement of the types of a page."""
    rows = [_row(spec, group, own) for group in groups for own in _by_needs(spec, group)]
    return rest.table(*rest.dense(("Shape", "Elements", "Accumulators", "First needs", "Variants"), rows), kind="forms")


def _by_needs(spec: Spec, group: FormGroup) -> list[list[Instruction]]:
    """The instructions of a page, with the loads and stores for them, by what the first with their type needs."""
    by_type: dict[str, list[Instruction]] = {}
    for instruction in group.own:
        by_type.setdefault(instruction.matrix_types.get(links.first_matrix(instruction), ""), []).append(instruction)
    by_needs: dict[str, list[Instruction]] = {}
    for members in by_type.values():
        by_needs.setdefault(_first_needs(spec, members), []).extend(members)
    return list(by_needs.values())


def _first_needs(spec: Spec, members: Iterable[Instruction]) -> str:
    first = min((instruction.accepted_by() for instruction in members), key=lambda versions: min(versions.values(), default=Version()))
    return needs(spec, first)


def _row(spec: Spec, group: FormGroup, own: Sequence[Instruction]) -> tuple[str, ...]:
    types = dict.fromkeys(instruction.matrix_types[name] for instruction in own if (name := links.first_matrix(instruction)))
    results = {
        instruction.matrix_types.get(name, ""): None
        for instruction in own
        for name, kind in instruction.variant.instruction.operand_kinds.items()
        if kind.kind == "accumulator"
    }
    count = len(group.members) if len(own) == len(group.own) else len(own)
    return rest.link(group.shape, group.label), rest.codes(types), rest.codes(filter(None, results)), _first_needs(spec, own), str(count)


def _family_summary(spec: Spec, entry: InstructionSet, forms: Sequence[Row]) -> str:
    """One paragraph: what it is, who executes it, and how many there are."""
    count = sum(len(row.members) for row in forms)
    many = f"{count} variants" if count > 1 else "one variant"
    beyond = sum(len(row.members) for row in forms if not row.form.documented)
    many += f" ({beyond} of them beyond the manual)" if beyond else ""
    return f"{ordering.summary(spec, entry)} There {'are' if count > 1 else 'is'} {many} (PTX ISA {rest.source(entry.source)})."
