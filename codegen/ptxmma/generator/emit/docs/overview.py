"""The index of the reference, and the page with every instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxmma.generator.emit.docs import family, rest
from ptxmma.model import Spec, Version

#: The rows of forms of each instruction.
Forms = Mapping[str, Sequence[family.Row]]


def index(spec: Spec, families: Sequence[str], forms: Forms, pages: Sequence[str]) -> dict[str, Any]:
    """What the index shows."""
    rows = []
    for name in families:
        entries = [entry for entry in spec.instructions if entry.family == name]
        accepted = [row.accepted for entry in entries for row in forms[entry.name]]
        earliest = min(accepted, key=lambda versions: min(versions.values(), default=Version()))
        rows.append(
            (
                rest.link(name, rest.label("family", name)),
                rest.text(entries[0].title),
                rest.codes(entry.name for entry in entries),
                str(sum(len(row.members) for entry in entries for row in forms[entry.name])),
                family.needs(spec, earliest),
            )
        )
    header = ("Family", "What it does", "Instructions", "Variants", "First variant needs")
    return {
        "families": rest.table(header, rows),
        "pages": [page for page in pages if "/" not in page and page not in families],
        "family_pages": families,
    }


def all_instructions(spec: Spec, forms: Forms) -> dict[str, Any]:
    """What the page with every instruction shows."""
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
