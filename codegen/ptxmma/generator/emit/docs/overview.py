"""The index of the reference, and the page with every instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.generator.emit.docs import family, rest
from ptxmma.model import Spec, Version

#: Pages that the site lists beside its guides.
ELSEWHERE = ("errata", "evidence", "rules")

#: The rows of forms of each instruction.
Forms = Mapping[str, Sequence[family.Row]]


def index(spec: Spec, families: Sequence[str], forms: Forms, pages: Sequence[str]) -> dict[str, Any]:
    """The values for the index."""
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
        "family_pages": families,
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


def all_instructions(spec: Spec, forms: Forms) -> dict[str, Any]:
    """The values for the page with every instruction."""
    return {
        "instructions": [
            {
                "name": rest.text(entry.name),
                "link": rest.link(entry.name, rest.label("instruction", entry.name)),
                "title": rest.text(entry.title),
                "patterns": [family.pattern(entry, row) for row in forms[entry.name] if row.form.documented],
                "beyond": [family.pattern(entry, row) for row in forms[entry.name] if not row.form.documented],
            }
            for entry in spec.instructions
        ]
    }
