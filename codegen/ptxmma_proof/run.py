"""The whole run that ``python -m ptxmma_proof --assembler`` makes: choose, ask, say what differs."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence.assembler import Assembler as Evidence
from ptxmma.ptx import lines as ptx
from ptxmma_proof import matrix, negative, questions, report
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.matrix import Column, Difference, Subject
from ptxmma_proof.negative import Batch, Disagreement, Explanations, Neighbours

#: Lines that a difference shows of its own.
_SHOWN = 3


class UnknownNameError(ValueError):
    """A family or target that the database does not have."""


class Outcome(NamedTuple):
    """What a run found."""

    subject: Subject
    columns: list[Column]
    differences: list[Difference]
    space: dict[str, Neighbours]
    batches: list[Batch]
    disagreements: list[Disagreement]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs but what the errata explain."""
        return not self.differences and all(each.erratum for each in self.disagreements)

    def report(self, date: str) -> Evidence:
        """The run as evidence."""
        return report.compose(date, self.subject, self.columns, self.differences, self.space, self.batches, self.disagreements)

    def lines(self) -> Iterator[str]:
        """The run in words."""
        catalog = self.subject.catalog
        for assembler in dict.fromkeys(column.assembler for column in self.columns):
            if new := news(catalog, assembler):
                yield f"CUDA {assembler.cuda} knows what the database does not: {', '.join(new)}"
        for difference in self.differences:
            yield str(difference)
            yield from (f"    {ptx.compact(line)}" for line in difference.lines[:_SHOWN])
        for disagreement in self.disagreements:
            yield f"{disagreement}; erratum {disagreement.erratum}" if disagreement.erratum else str(disagreement)
        asked = matrix.asked(self.columns)
        wrong = sum(max(1, len(each.lines)) for each in self.differences)
        lines = len(self.subject.lines.texts)
        yield f"matrix: {len(asked)} assemblers, {lines} lines, {sum(asked.values())} answers, {wrong} disagreements"
        count = sum(map(len, self.space.values()))
        answers = sum(len(batch.lines.texts) for batch in self.batches)
        yield f"negative space: {count} lines, {answers} answers, {sum(not each.erratum for each in self.disagreements)} disagreements"


def run(
    catalog: Catalog,
    chosen: Sequence[Assembler],
    targets: Sequence[str] = (),
    families: Sequence[str] = (),
    jobs: int = -1,
    cache: Path | None = None,
) -> Outcome:
    """Ask the assemblers everything; no target or family means all, and no cache :data:`ptxmma_proof.questions.ANSWERS`.

    Raises:
        UnknownNameError: a target or a family that the database does not have, or targets that no assembler knows.
        AssemblerError: an assembler was interrupted, or failed without naming a line.
    """
    spec = catalog.database.spec
    wanted = choose("target", targets, [entry.name for entry in spec.targets])
    subject = Subject.of(catalog, choose("family", families, dict.fromkeys(entry.family for entry in spec.instructions)))
    space = negative.neighbours(catalog, families)
    kept = cache or questions.ANSWERS
    with shown() as bar:
        columns = matrix.sweep(subject, chosen, wanted, kept, jobs, moving(bar, "matrix"))
        if not columns:
            names = ", ".join(f"CUDA {assembler.cuda}" for assembler in chosen)
            raise UnknownNameError(f"nothing was asked: {names} knows no target of {', '.join(wanted)}")
        batches = negative.sweep(catalog, space, chosen, wanted, kept, jobs, moving(bar, "negative space"))
    found = negative.disagreements(catalog, batches, Explanations(catalog, space))
    return Outcome(subject, columns, list(matrix.differences(subject, columns)), space, batches, found)


def choose(what: str, names: Sequence[str], known: Iterable[str]) -> list[str]:
    """Those of the known names that were asked for; all where none was.

    Raises:
        UnknownNameError: with the closest names that there are.
    """
    held = list(known)
    for name in names:
        if name not in held:
            close = difflib.get_close_matches(name, held, 3, 0.5) or held
            raise UnknownNameError(f"there is no {what} {name!r}; {'closest' if close is not held else 'known'}: {', '.join(close)}")
    return [name for name in held if not names or name in names]


def news(catalog: Catalog, assembler: Assembler) -> list[str]:
    """What an assembler knows and the database does not: targets of the kind that it holds, and a version."""
    spec = catalog.database.spec
    lowest = min(target.number for target in spec.targets)
    held = {target.name for target in spec.targets}
    targets = [name for name in assembler.targets if name not in held and int(re.sub(r"\D", "", name)) >= lowest]
    versions = [] if assembler.ptx in {entry.version for entry in spec.isa_versions} else [assembler.ptx]
    return [*(f"target {name}" for name in targets), *(f"PTX ISA {version}" for version in versions)]


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """A progress bar on a terminal, nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        yield bar


def moving(bar: Progress, title: str) -> questions.Progress:
    """A task of a progress bar, to be told how far it is."""
    task = bar.add_task(title, total=None)
    return lambda done, of: bar.update(task, completed=done, total=of)
