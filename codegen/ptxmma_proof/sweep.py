"""A run of the assemblers: asks about every instruction and its neighbours, reports differences, records the answers."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma.ptx import lines as ptx
from ptxmma_proof import matrix, negative_space, neighbours, questions, records
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.matrix import Column, Difference, Subject
from ptxmma_proof.negative_space import Batch, Disagreement, Explanations
from ptxmma_proof.neighbours import Neighbours

#: The most lines that a difference shows.
_SHOWN = 3
#: Digits of the name of an answer.
_DIGITS = 4


class UnknownNameError(ValueError):
    """A family or target that the database does not have."""


class Outcome(NamedTuple):
    """The outcome of a run."""

    subject: Subject
    columns: list[Column]
    differences: list[Difference]
    space: dict[str, Neighbours]
    batches: list[Batch]
    disagreements: list[Disagreement]

    @property
    def agrees(self) -> bool:
        """True if rules or errata explain every difference."""
        return not self.wrong and all(each.explanation for each in self.disagreements)

    def record(self, date: str) -> list[Line]:
        """The run as lines of ``spec/evidence/assembler.jsonl``; the same answers give the same lines."""
        return list(_recorded(self, date))

    def words(self) -> Iterator[str]:
        """The run in words."""
        catalog = self.subject.catalog
        for assembler in dict.fromkeys(column.assembler for column in self.columns):
            if new := news(catalog, assembler):
                yield f"CUDA {assembler.cuda} knows what the database does not: {', '.join(new)}"
        for difference in self.differences:
            yield str(difference)
            yield from (f"    {ptx.compact(line)}" for line in difference.lines[:_SHOWN])
        for disagreement in self.disagreements:
            yield f"{disagreement}; explained by {disagreement.explanation}" if disagreement.explanation else str(disagreement)
        asked = matrix.asked(self.columns)
        lines, answers = len(self.subject.lines.texts), sum(asked.values())
        yield f"matrix: {len(asked)} assemblers, {lines} lines, {answers} answers, {self.wrong} disagreements"
        count = sum(map(len, self.space.values()))
        unexplained = sum(not each.explanation for each in self.disagreements)
        yield f"negative space: {count} lines, {self.neighbour_answers} answers, {unexplained} disagreements"

    @property
    def wrong(self) -> int:
        """The number of lines of instructions on which an assembler and the database differ, and no erratum says why."""
        return sum(max(1, len(each.lines)) for each in self.differences if not each.explanation)

    @property
    def neighbour_answers(self) -> int:
        """The number of answers about neighbours."""
        return sum(len(batch.lines.texts) for batch in self.batches)


def run(
    catalog: Catalog,
    chosen: Sequence[Assembler],
    targets: Sequence[str] = (),
    families: Sequence[str] = (),
    jobs: int = -1,
    cache: Path | None = None,
) -> Outcome:
    """Ask the assemblers; without targets or families, about all.  The cache is :data:`ptxmma_proof.questions.ANSWERS` by default.

    Raises:
        UnknownNameError: a target or a family that the database does not have, or targets that no assembler knows.
        AssemblerError: an assembler was interrupted, or failed without naming a line.
    """
    spec = catalog.database.spec
    wanted = choose("target", targets, [entry.name for entry in spec.targets])
    subject = Subject.of(catalog, choose("family", families, dict.fromkeys(entry.family for entry in spec.instructions)))
    space = neighbours.neighbours(catalog, families)
    kept = cache or questions.ANSWERS
    with shown() as bar:
        columns = matrix.sweep(subject, chosen, wanted, kept, jobs, moving(bar, "matrix"))
        if not columns:
            names = ", ".join(f"CUDA {assembler.cuda}" for assembler in chosen)
            raise UnknownNameError(f"nothing was asked: {names} knows no target of {', '.join(wanted)}")
        batches = negative_space.sweep(catalog, space, chosen, wanted, kept, jobs, moving(bar, "negative space"))
    disagreements = negative_space.disagreements(catalog, batches, Explanations(catalog, space))
    return Outcome(subject, columns, list(matrix.differences(subject, columns)), space, batches, disagreements)


def choose(what: str, names: Sequence[str], known: Iterable[str]) -> list[str]:
    """The known names that were asked for, or all.

    Raises:
        UnknownNameError: with the closest names that there are.
    """
    every = list(known)
    for name in names:
        if name not in every:
            close = difflib.get_close_matches(name, every, 3, 0.5) or every
            raise UnknownNameError(f"there is no {what} {name!r}; {'closest' if close is not every else 'known'}: {', '.join(close)}")
    return [name for name in every if not names or name in names]


def news(catalog: Catalog, assembler: Assembler) -> list[str]:
    """Targets and the version that an assembler knows and the database lacks; older targets than ours do not count."""
    spec = catalog.database.spec
    lowest = min(target.number for target in spec.targets)
    known = {target.name for target in spec.targets}
    targets = [name for name in assembler.targets if name not in known and int(re.sub(r"\D", "", name)) >= lowest]
    versions = [] if assembler.ptx in {entry.version for entry in spec.isa_versions} else [assembler.ptx]
    return [*(f"target {name}" for name in targets), *(f"PTX ISA {version}" for version in versions)]


# --- the record ---------------------------------------------------------------------------------------------------------------


def _recorded(outcome: Outcome, date: str) -> Iterator[Line]:
    catalog = outcome.subject.catalog
    assemblers = list(dict.fromkeys(column.assembler for column in outcome.columns))
    known = {column.target for column in outcome.columns}
    targets = [target.name for target in catalog.database.spec.targets if target.name in known]
    parts = {family: witnesses.Part(date=date, totals=_totals(outcome, family)) for family in outcome.space}
    yield witnesses.Run(
        date=date,
        spec=catalog.database.spec.version,
        tools=tuple(tool(each, date) for each in assemblers),
        targets=tuple(targets),
        totals=records.totals(parts),
        families=parts,
    )
    answers: dict[str, dict[str, str]] = {}
    for instruction, lines in _lines_of(outcome.subject).items():
        accepted = [_accepted(outcome, assemblers, targets, line) for line in lines]
        common = {target: text for target, text in accepted[0].items() if all(other.get(target) == text for other in accepted)}
        name = hashlib.sha256(json.dumps(common).encode()).hexdigest()[:_DIGITS]
        answers[name] = common
        yield witnesses.Assembled(instruction=instruction, facts=digest.asked(catalog.find(instruction), targets), answer=name)
    yield from (witnesses.Answer(name=name, accepted=accepted) for name, accepted in sorted(answers.items()))


def _totals(outcome: Outcome, family: str) -> dict[str, int]:
    """The numbers of a family; a target on which an assembler differs counts in each of them."""
    pairs = zip(outcome.subject.lines.texts, outcome.subject.instructions, strict=True)
    lines = {line for line, instruction in pairs if instruction.family == family}
    differing = Counter[bool]()
    for each in outcome.differences:
        differing[bool(each.explanation)] += max(not each.lines, len(lines.intersection(each.lines)))
    explained = Counter(bool(each.explanation) for each in outcome.disagreements if each.line in outcome.space[family])
    return {
        "answers": len(lines) * sum(len(column.sound) for column in outcome.columns),
        "disagreements": differing[False],
        "neighbours": len(outcome.space[family]),
        "neighbour_answers": sum(len(batch.lines.texts) for batch in outcome.batches if batch.family == family),
        "explained": differing[True] + explained[True],
        "unexplained": explained[False],
    }


def tool(assembler: Assembler, date: str) -> Tool:
    """An assembler, as records name it."""
    return Tool(kind="assembler", name=f"CUDA {assembler.cuda}", version=assembler.build, sha256=assembler.sha256, date=date)


def _lines_of(subject: Subject) -> dict[str, list[int]]:
    """The numbers of the lines of each instruction; lines that need more than it, with hints or operands of some targets, are left out."""
    numbers: dict[str, list[int]] = {}
    for number, (instruction, form) in enumerate(zip(subject.instructions, subject.forms, strict=True)):
        if not instruction.hints and instruction.accepted_by(form=form) == instruction.accepted_by():
            numbers.setdefault(instruction.canonical, []).append(number)
    return numbers


def _accepted(outcome: Outcome, assemblers: Sequence[Assembler], targets: Sequence[str], line: int) -> dict[str, str]:
    """The part of :class:`ptxmma.catalog.evidence.witnesses.Answer` for a line."""
    versions: Mapping[tuple[str, str], tuple[str, ...]] = {
        (column.assembler.cuda, column.target): column.accepted[line] for column in outcome.columns
    }
    by_target = {}
    for target in targets:
        spans: list[tuple[str, list[str]]] = []
        before = ""
        for assembler in assemblers:
            accepted = versions.get((assembler.cuda, target), ())
            first = matrix.first_version(accepted, matrix.versions_of(outcome.subject.catalog, assembler)) or "/".join(accepted)
            if first and first == before:
                spans[-1][1].append(assembler.cuda)
            elif first:
                spans.append((first, [assembler.cuda]))
            before = first
        if spans:
            by_target[target] = "; ".join(f"{first} in {' to '.join(dict.fromkeys((span[0], span[-1])))}" for first, span in spans)
    return by_target


# --- progress -------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """A progress bar on a terminal, nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        yield bar


def moving(bar: Progress, title: str) -> questions.Progress:
    """A callback that moves a task of a progress bar."""
    task = bar.add_task(title, total=None)
    return lambda done, of: bar.update(task, completed=done, total=of)
