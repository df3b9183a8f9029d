"""Asks every assembler about every instruction in every operand form, on every target, in every version.

The database names the first version in which each target accepts an instruction.  An assembler must accept it from that version on, and
refuse it in earlier versions and on every other target.  Releases that start a target at another version, or have dropped it, are in the
database too, and must match as exactly.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma_proof import errata, neighbours, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.claims import first_by, first_module, known_to
from ptxmma_proof.questions import Lines, Progress, Question, quiet


class Subject(NamedTuple):
    """The instructions in question, line by line: each with each of its operand lists, and representatives with hints."""

    catalog: Catalog
    instructions: tuple[Instruction, ...]  # the instructions of each line
    forms: tuple[OperandForm, ...]  # the forms of each line
    lines: Lines

    @classmethod
    def of(cls, catalog: Catalog, families: Sequence[str] = ()) -> Subject:
        """Everything in a database, or in some of its families."""
        chosen = [instruction for instruction in catalog.all() if not families or instruction.family in families]
        asked = [(instruction, form, line) for instruction in chosen for form, line in ptx.asked(instruction)]
        hinted = (each for instruction in neighbours.representatives(chosen) for each in _hinted(instruction))
        asked += [(each, ptx.operand_lists(each)[0], ptx.lines(each)[0]) for each in hinted]
        instructions, forms, lines = zip(*asked, strict=True) if asked else ((), (), ())
        return cls(catalog, instructions, forms, Lines.of(lines, banks(catalog)))


def _hinted(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction with each hint alone, and with one of each hint that it takes."""
    *others, last = [instruction, *instruction.hinted()]
    yield from (each for each in others if len(each.hints) == 1)
    if last.hints:
        yield last


class Column(NamedTuple):
    """The answers of one assembler to all lines on one target."""

    assembler: Assembler
    target: str
    accepted: tuple[tuple[str, ...], ...]  # the versions that accept it, for each line
    said: tuple[str, ...]  # the error in the newest version; "" for an accepted line
    sound: tuple[str, ...]  # the versions asked: in others it refuses even an empty module


class Difference(NamedTuple):
    """Lines on which an assembler and the database differ."""

    cuda: str
    target: str
    assembler: str  # "accepted from 8.0 on"
    database: str
    said: str = ""  # why the assembler refuses the first of the lines in its newest version
    lines: tuple[str, ...] = ()  # none: the target itself
    explanation: str = ""  # the entry of the errata that says so

    def __str__(self) -> str:
        if not self.lines:
            return f"CUDA {self.cuda}, {self.target}: {self.assembler}, the database says {self.database}"
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
        said = f" ({self.said})" if self.said else ""
        explained = f"; explained by {self.explanation}" if self.explanation else ""
        return f"CUDA {self.cuda}, {self.target}: {self.assembler}{said}, the database says {self.database}: {lines}{explained}"


def banks(catalog: Catalog) -> list[str]:
    """The register types that every module declares."""
    return [entry.name for entry in catalog.database.spec.types.registers if not entry.read]


def versions_of(catalog: Catalog, assembler: Assembler) -> list[str]:
    """The versions to ask an assembler about: the spec's versions up to its newest, and its newest."""
    known = [entry.version for entry in catalog.database.spec.isa_versions]
    spoken = {version for version in known if Version(version) <= assembler.ptx} | {assembler.ptx}
    return sorted(spoken, key=Version)


def targets_of(catalog: Catalog, assembler: Assembler) -> list[str]:
    """The targets of the spec that an assembler knows."""
    return [target.name for target in catalog.database.spec.targets if target.name in assembler.targets]


def newest(catalog: Catalog, assemblers: Iterable[Assembler]) -> dict[str, Assembler]:
    """The newest of the assemblers that knows a target, for each target."""
    by_age = sorted(assemblers, key=lambda assembler: Version(assembler.cuda))
    return {target: assembler for assembler in by_age for target in targets_of(catalog, assembler)}


def question(assembler: Assembler, target: str, version: str, lines: Lines, unreadable: tuple[str, ...] = ()) -> Question:
    """A question to an assembler about a target that it knows."""
    return Question(assembler.path, assembler.sha256, target, version, lines, unreadable)


def sweep(
    subject: Subject, assemblers: Sequence[Assembler], targets: Sequence[str], cache: Path, jobs: int, progress: Progress = quiet
) -> list[Column]:
    """Ask every assembler about every line, on each of the targets that it knows, in every version.

    Empty modules come first: releases up to CUDA 12.5 no longer enforce the first version of a target once a module has one of the
    instructions that they expand (``m8n8k4`` with f16).
    """
    empty = Lines.of((), subject.lines.banks)
    places = [(assembler, target) for assembler in assemblers for target in targets_of(subject.catalog, assembler) if target in targets]
    modules = [(assembler, target, v) for assembler, target in places for v in versions_of(subject.catalog, assembler)]
    refused = questions.ask([question(*module, empty) for module in modules], cache, jobs, progress)
    sound = [module for module, answer in zip(modules, refused, strict=True) if not answer]
    unreadable = {assembler: questions.unreadable(assembler, subject.lines) for assembler in assemblers}
    asked = [question(*module, subject.lines, unreadable[module[0]]) for module in sound]
    said = map(questions.by_line, questions.ask(asked, cache, jobs, progress))
    answers: dict[tuple[Assembler, str], dict[str, dict[int, str]]] = {place: {} for place in places}
    for (assembler, target, version), by_line in zip(sound, said, strict=True):
        answers[assembler, target][version] = by_line
    return [_column(subject, assembler, target, by_version) for (assembler, target), by_version in answers.items()]


def _column(subject: Subject, assembler: Assembler, target: str, said: Mapping[str, Mapping[int, str]]) -> Column:
    count = range(len(subject.lines.texts))
    accepted = tuple(tuple(version for version, refused in said.items() if line not in refused) for line in count)
    last = said[max(said, key=Version)] if said else {}
    return Column(assembler, target, accepted, tuple(last.get(line, "") for line in count), tuple(said))


def differences(subject: Subject, columns: Iterable[Column]) -> Iterator[Difference]:
    """The differences between the assemblers and the database, lines with the same difference together."""
    for assembler, each in itertools.groupby(columns, key=lambda column: column.assembler):
        own = list(each)
        yield from _differing_targets(subject.catalog, assembler, own)
        versions = versions_of(subject.catalog, assembler)
        first = [first_by(*pair, assembler.cuda) for pair in zip(subject.instructions, subject.forms, strict=True)]
        for column in own:
            for difference in _differing_lines(subject, column, versions, first):
                yield difference._replace(explanation=_explanation(subject, difference, assembler))


def _differing_lines(subject: Subject, column: Column, versions: Sequence[str], first: Sequence[Mapping[str, str]]) -> Iterator[Difference]:
    groups: dict[tuple[str, str], list[int]] = {}
    for line, accepted in enumerate(column.accepted):
        floor = first[line].get(column.target)
        expected = tuple(version for version in versions if floor is not None and Version(version) >= floor)
        if accepted != expected:
            groups.setdefault((verdict(accepted, versions), verdict(expected, versions)), []).append(line)
    for (assembler, database), lines in groups.items():
        texts = tuple(subject.lines.texts[line] for line in lines)
        yield Difference(column.assembler.cuda, column.target, assembler, database, column.said[lines[0]], texts)


def _explanation(subject: Subject, difference: Difference, assembler: Assembler) -> str:
    """The entries of the errata that say why an assembler refuses lines on a target; ``""`` unless there is one for each line."""
    instructions = dict(zip(subject.lines.texts, subject.instructions, strict=True))
    refusing = {seen.erratum for seen in evidence.of(subject.catalog.database).sightings if _refuses(seen, difference, assembler)}
    ids = {next((entry.id for entry in instructions[line].errata() if entry.id in refusing), "") for line in difference.lines}
    return "" if "" in ids else ", ".join(sorted(ids))


def _refuses(seen: Sighting, difference: Difference, assembler: Assembler) -> bool:
    refuses = seen.database == "accepts" and seen.answer != errata.ACCEPTED
    same = difference.target in seen.targets and difference.said in ("", seen.answer)
    return refuses and same and bool(errata.answering(seen, difference.target, [assembler]))


def _differing_targets(catalog: Catalog, assembler: Assembler, columns: Iterable[Column]) -> Iterator[Difference]:
    """The targets that only the assembler or only the database knows, or that start at another version."""
    expected = known_to(catalog.database.spec, assembler.cuda)
    versions = versions_of(catalog, assembler)
    sound = {column.target: column.sound for column in columns}
    for target in catalog.database.spec.targets:
        if (target.name in assembler.targets) != (target.name in expected):
            says, database = ("unknown", "known") if target.name in expected else ("known", "unknown")
            yield Difference(assembler.cuda, target.name, says, database)
        elif target.name in sound:
            first = Version(first_module(target, assembler.cuda))
            claimed = [version for version in versions if Version(version) >= first]
            if sound[target.name] != tuple(claimed):
                yield Difference(assembler.cuda, target.name, verdict(sound[target.name], versions), verdict(claimed, versions))


def first_version(accepted: Sequence[str], versions: Sequence[str]) -> str | None:
    """The version from which all accept a line; None if no version does, or a later one refuses."""
    if not accepted or tuple(accepted) != tuple(versions[len(versions) - len(accepted) :]):
        return None
    return accepted[0]


def verdict(accepted: Sequence[str], versions: Sequence[str]) -> str:
    """The versions that accept a line, in words."""
    if not accepted:
        return "refused"
    first = first_version(accepted, versions)
    return f"accepted from {first} on" if first else f"accepted in {', '.join(accepted)} only"


def asked(columns: Iterable[Column]) -> Counter[str]:
    """The number of answers of each CUDA release."""
    counts: Counter[str] = Counter()
    for column in columns:
        counts[column.assembler.cuda] += len(column.accepted) * len(column.sound)
    return counts
