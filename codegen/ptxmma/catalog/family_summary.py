"""A family of instructions in short, as plain data: what ``ptxmma show`` prints for its name."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog import cplusplus, listing
from ptxmma.catalog.instructions import Catalog


def summary(catalog: Catalog, family: str) -> dict[str, Any]:
    """A family in dicts, lists, strings and integers.

    ``types`` has an entry for each combination of element types: its shapes, the first PTX ISA version that has one of its
    instructions, and the least targets.
    """
    spec, members = catalog.database.spec, list(catalog.all(lambda entry: entry.family == family))
    entries = [entry for entry in spec.instructions if entry.family == family]
    groups: dict[tuple[str, ...], list[listing.Line]] = {}
    for line in listing.lines(members):
        groups.setdefault(line.types, []).append(line)
    return {
        "family": family,
        "titles": list(dict.fromkeys(entry.title for entry in entries)),
        "instructions": len(members),
        "documented": sum(member.documented for member in members),
        "sources": list(dict.fromkeys(form.source for entry in entries for form in entry.forms)),
        "syntax": list(dict.fromkeys(entry.syntax for entry in entries)),
        "types": [
            {
                "types": list(types),
                "shapes": list(dict.fromkeys(line.shape for line in lines if line.shape)),
                "ptx": min(listing.first_version(line.accepted_by) for line in lines),
                "targets": listing.least_targets(spec, {target for line in lines for target in line.accepted_by}),
            }
            for types, lines in groups.items()
        ],
        "headers": list(dict.fromkeys(f"ptxmma/{cplusplus.header(member)}" for member in members)),
        "errata": [{"id": entry.id, "bites": entry.bites, "holds": entry.holds} for entry in spec.errata if entry.family == family],
    }
