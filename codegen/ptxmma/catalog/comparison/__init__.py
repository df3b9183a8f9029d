"""Two databases compared by what they mean: prose, sources and the wording of formulas do not count.

A change breaks consumers if code that was right with the old database need not be with the new one: an instruction or a target that is
gone, an element in another place, a name that generated code no longer has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.catalog.comparison.fact_changes import of_facts
from ptxmma.catalog.comparison.instruction_changes import Difference, of_instructions
from ptxmma.catalog.instructions import Catalog
from ptxmma.model import Layout


class Change(NamedTuple):
    """One way in which two databases differ.

    Attributes:
        kind: the kind of thing that differs: ``"instruction"``, ``"targets"``, ``"operand"``, ``"layout"``, ``"function"``, ``"erratum"`` …
        text: the change, in words.
        breaking: true if it breaks consumers.
        subjects: the things that it holds for: canonical spellings, names of layouts, types …
    """

    kind: str
    text: str
    breaking: bool
    subjects: tuple[str, ...]


def compare(old: Catalog, new: Catalog) -> list[Change]:
    """Everything that differs; what breaks consumers comes first."""
    gathered: dict[Difference, list[str]] = {}
    for subject, difference in itertools.chain(of_instructions(old, new), _functions(old, new), of_facts(old, new)):
        gathered.setdefault(difference, []).append(subject)
    changes = [Change(kind, text, breaking, tuple(dict.fromkeys(subjects))) for (kind, text, breaking), subjects in gathered.items()]
    return sorted(changes, key=lambda change: not change.breaking)


def _functions(old: Catalog, new: Catalog) -> Iterator[tuple[str, Difference]]:
    """Layouts by name: generated code has functions of these names."""
    ours, theirs = old.database.layout, new.database.layout
    fresh = {name: layout for name, layout in theirs.items() if name not in ours}
    for name, layout in ours.items():
        if name not in theirs:
            heir = next((other for other, candidate in fresh.items() if _alike(layout, candidate)), None)
            yield name, ("function", f"is now {heir}" if heir else "removed", True)
            fresh.pop(heir or "", None)
    for name in fresh:
        yield name, ("function", "added", False)


def _alike(one: Layout, other: Layout) -> bool:
    return all(
        getattr(one, field) == getattr(other, field) for field in ("kind", "shape", "operands", "bits", "axes", "apart", "steps", "map")
    )
