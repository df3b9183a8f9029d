"""The record of the assemblers by family: a run of some families leaves the lines of the others alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Answer, Assembled, Line, Part, Run
from ptxmma.catalog.instructions import Catalog


def totals(parts: Mapping[str, Part]) -> dict[str, int]:
    """The sums over all families."""
    sums = Counter[str]()
    for part in parts.values():
        sums.update(part.totals)
    return dict(sums)


def updated(path: Path, lines: Sequence[Line], catalog: Catalog) -> list[Line]:
    """The lines of a run and the lines of other families in a file, without instructions that the catalog lacks.

    Args:
        path: the path of the record; it need not exist.
        lines: the lines of the run, which comes first.
        catalog: that knows the family of each instruction.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a record, or of other assemblers, targets or families.
    """
    if not path.exists():
        return list(lines)
    before = witnesses.read(path)
    run, known = lines[0], before[0] if before else None
    if not isinstance(run, Run) or not isinstance(known, Run):
        raise ValueError(f"{path}:1: the first line must be the run")
    family_of = {instruction.canonical: instruction.family for instruction in catalog.all()}
    asked = [line for line in before if isinstance(line, Assembled) and line.instruction in family_of]
    kept = [line for line in asked if family_of[line.instruction] not in run.families]
    if not kept:
        return list(lines)
    if _asked(run) != _asked(known):
        raise ValueError(f"{path} is the record of other assemblers or targets; ask about every family: leave --family out")
    assembled = [*kept, *(line for line in lines if isinstance(line, Assembled))]
    answers = {line.name: line for line in (*before, *lines) if isinstance(line, Answer)}
    left = {family_of[line.instruction] for line in kept}
    parts = {family: part for family, part in known.families.items() if family in left} | run.families
    whole = msgspec.structs.replace(run, families=parts, totals=totals(parts))
    return [whole, *assembled, *(answers[name] for name in sorted({line.answer for line in assembled}))]


def _asked(run: Run) -> tuple[object, ...]:
    return [(tool.name, tool.sha256) for tool in run.tools], run.targets
