"""What the assemblers and the checker say of a corpus.

Three things are asked:

* every module as it stands: the checker may call an instruction an error only if the assembler refuses it, and must find all of them;
* every different instruction with one thing changed, on its own target and version, and unchanged on every other target and version;
* modules with such mutants in the place of what they had, so that declarations, scopes and neighbours are those of real code.

The judge is the newest pinned assembler that knows a target.  It reads the instructions with the registers that they have, named by their
types, in a function that nobody calls (see :mod:`ptxmma_proof.questions`): then it makes all checks and no code.
"""

from __future__ import annotations

import bisect
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.check import Checker, Findings
from ptxmma.evidence.corpus import Change, Disagreement, Source
from ptxmma.ptx import lines as ptx
from ptxmma_proof import matrix, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.corpus import extraction
from ptxmma_proof.corpus.mutants import Mutant, Vocabulary, mutants
from ptxmma_proof.questions import Lines, Progress, quiet

#: How an instruction is called that was not changed, on its own target and on others.
UNCHANGED = "unchanged"
ELSEWHERE = "other target or version"
#: Lines for one process of an assembler.
_BATCH = 4000
#: Statements of a module that are changed at once, where they stand.
_IN_PLACE = 64


class Held(NamedTuple):
    """A module of the corpus."""

    source: str
    path: Path
    text: str
    module: extraction.Module


class Asked(NamedTuple):
    """A target and a version, with the assembler that decides, and lines with the change that made each."""

    assembler: Assembler
    target: str
    version: str
    source: str
    kinds: Mapping[str, str]


class Verdict(NamedTuple):
    """What was said of one line."""

    asked: Asked
    line: str
    refused: str | None  # what the assembler said; None where it accepts
    error: str | None  # what the checker said

    @property
    def agrees(self) -> bool:
        """Whether both take it or both refuse it."""
        return (self.refused is None) == (self.error is None)


class Outcome(NamedTuple):
    """All that was found."""

    sources: tuple[Source, ...]
    counted: int
    false_alarms: int
    mutants: int
    changes: tuple[Change, ...]
    disagreements: tuple[Disagreement, ...]


class UnjudgedError(ValueError):
    """No module to judge, or nobody to judge it."""


def judge(
    catalog: Catalog, folder: Path, assemblers: Sequence[Assembler], most: int, cache: Path, jobs: int = -1, progress: Progress = quiet
) -> Outcome:
    """Judge every module in a folder, which has one folder for each source.

    Args:
        catalog: the database.
        folder: of the corpus.
        assemblers: the newest that knows a target is its judge.
        most: mutants of one kind for each different instruction.
        cache: where answers are kept.
        jobs: assemblers at a time, as joblib counts them.
        progress: told how many questions are answered.

    Raises:
        UnjudgedError: no module with a matrix instruction, or one for a target that no assembler knows.
        UnreadableError: a file that is no module.
        AssemblerError: an assembler failed without naming a line.
    """
    modules = list(read(catalog, folder))
    if not modules:
        raise UnjudgedError(
            f"there is no module with a matrix instruction in {folder}: make them with `python -m ptxmma_proof.corpus build`"
        )
    checker = Checker(catalog.database, follow=False)
    material = _Material.of(catalog, modules, assemblers, most)
    every = list(_asked(catalog, modules, material))
    verdicts = _verdicts(checker, catalog, every, cache, jobs, progress)
    known = {(found.asked.target, found.asked.version, found.line): found for found in verdicts}
    stands = [_as_it_stands(checker, held, known) for held in modules]
    placed = [_in_place(checker, held, material, known) for held in modules]
    differing = [found for found in verdicts if not found.agrees]
    # What differs in a module differs of the line alone, too, or else the module makes the difference.
    alone = {(found.asked.target, found.asked.version, found.line) for found in differing}
    for found in (found for each in (*stands, *placed) for found in each.differing):
        if (found.asked.target, found.asked.version, found.line) not in alone:
            differing.append(found)
    kinds = [kind for each in every for kind in each.kinds.values()]
    return Outcome(
        tuple(_sources(modules, every, known, placed)),
        sum(each.counted for each in stands),
        sum(found.refused is None for each in stands for found in each.differing),
        sum(kind != UNCHANGED for kind in kinds),
        tuple(_changes(verdicts)),
        tuple(map(_disagreement, differing)),
    )


def read(catalog: Catalog, folder: Path) -> Iterator[Held]:
    """The modules of a corpus that have a matrix instruction."""
    stems = extraction.stems(catalog)
    for path in sorted(folder.rglob("*.ptx")):
        text = path.read_text(encoding="utf-8")
        found = extraction.module(text, stems)
        if found.instructions:
            yield Held(path.relative_to(folder).parts[0], path, text, found)


# --- what is asked ----------------------------------------------------------------------------------------------------------------


class _Material(NamedTuple):
    """What is asked whom."""

    speakers: Mapping[str, Assembler]  # by target
    stems: Sequence[str]
    vocabulary: Vocabulary
    most: int

    @classmethod
    def of(cls, catalog: Catalog, modules: Sequence[Held], assemblers: Sequence[Assembler], most: int) -> _Material:
        speakers = matrix.newest(catalog, assemblers)
        for held in modules:
            if held.module.target not in speakers:
                raise UnjudgedError(f"{held.path}: no assembler that is here knows {held.module.target}: fetch them with `make assemblers`")
        return cls(speakers, extraction.stems(catalog), Vocabulary.of(catalog), most)

    def mutants(self, line: str) -> list[Mutant]:
        """The mutants of a line; what no longer begins like an instruction of the database is none of the checker's."""
        return [each for each in mutants(line, self.vocabulary, self.most) if extraction.begins(ptx.split(each.line)[0], self.stems)]


def _asked(catalog: Catalog, modules: Sequence[Held], material: _Material) -> Iterator[Asked]:
    lines: dict[tuple[str, str, str], dict[str, None]] = {}
    for held in modules:
        key = held.source, held.module.target, held.module.version
        lines.setdefault(key, {}).update(dict.fromkeys(found.line for found in held.module.instructions))
    for (source, target, version), own in lines.items():
        assembler = material.speakers[target]
        kinds = dict.fromkeys(own, UNCHANGED)
        for line in own:
            for mutant in material.mutants(line):
                kinds.setdefault(mutant.line, mutant.kind)
        yield Asked(assembler, target, version, source, kinds)
        for other in matrix.versions_of(catalog, assembler):
            if other != version and version_key(other) >= version_key(_first(catalog, target)):
                yield Asked(assembler, target, other, source, dict.fromkeys(own, ELSEWHERE))
    every = dict.fromkeys(sorted({line for found in lines.values() for line in found}), ELSEWHERE)
    for target, assembler in material.speakers.items():
        yield Asked(assembler, target, assembler.ptx, "", every)


def _first(catalog: Catalog, target: str) -> str:
    """The first version that has a target: in those before, a module without any line is refused."""
    return next(entry.ptx for entry in catalog.database.spec.targets if entry.name == target)


def _verdicts(checker: Checker, catalog: Catalog, every: Sequence[Asked], cache: Path, jobs: int, progress: Progress) -> list[Verdict]:
    banks = matrix.banks(catalog)
    unreadable: dict[str, tuple[str, ...]] = {}
    for assembler in {each.assembler.path: each.assembler for each in every}.values():
        texts = (line for each in every for line in each.kinds if each.assembler == assembler)
        unreadable[assembler.path] = questions.unreadable(assembler, Lines.of(texts, banks))
    batches = [
        (each, matrix.question(each.assembler, each.target, each.version, Lines.of(texts, banks), unreadable[each.assembler.path]))
        for each in every
        for texts in _batches(list(each.kinds))
    ]
    answers = questions.ask([question for _, question in batches], cache, jobs, progress)
    found = []
    for (each, question), answer in zip(batches, answers, strict=True):
        refused = questions.by_line(answer)
        text, first = ptx.module(each.version, each.target, question.lines.texts, banks)
        errors = {line - first: message for line, message in _errors(checker.check(text)).items()}
        for number, line in enumerate(question.lines.texts):
            found.append(Verdict(each, line, refused.get(number), errors.get(number)))
    return found


def _batches(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    return (lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH))


def _errors(findings: Findings) -> dict[int, str]:
    """The first error of each line."""
    return {found.line: found.message for found in reversed(findings.findings) if found.severity == "error"}


# --- modules ----------------------------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """What the checker said of a module."""

    counted: int  # instructions that it found
    changed: int  # instructions that were changed
    differing: tuple[Verdict, ...]


_Known = Mapping[tuple[str, str, str], Verdict]


def _as_it_stands(checker: Checker, held: Held, known: _Known) -> _Read:
    return _compared(checker, held, held.text, held.module, [found.line for found in held.module.instructions], known)


def _in_place(checker: Checker, held: Held, material: _Material, known: _Known) -> _Read:
    """The module with some of its instructions changed, each to a mutant that names no register that it did not."""
    chance = random.Random(held.path.name)
    lines = [found.line for found in held.module.instructions]
    changes: dict[int, str] = {}
    for number in chance.sample(range(len(lines)), min(_IN_PLACE, len(lines))):
        found = held.module.instructions[number]
        pool = [mutant.line for mutant in material.mutants(found.line) if found.named(mutant.line)]
        if pool:
            lines[number] = chance.choice(pool)
            changes[found.offset] = found.named(lines[number]) or ""
    text = extraction.rewritten(held.text, changes)
    return _compared(checker, held, text, extraction.module(text, material.stems), lines, known)._replace(changed=len(changes))


def _compared(checker: Checker, held: Held, text: str, module: extraction.Module, lines: Sequence[str], known: _Known) -> _Read:
    """The checker's errors in a text, one for each statement, against what the assembler said of its line."""
    findings = checker.check(text)
    ends = [match.start() for match in re.finditer("\n", text)]
    starts = [bisect.bisect_left(ends, found.offset) + 1 for found in module.instructions]
    errors: dict[int, str] = {}
    for place, message in _errors(findings).items():
        errors.setdefault(max(0, bisect.bisect_right(starts, place) - 1), message)
    differing = []
    for number, line in enumerate(lines):
        verdict = known[held.module.target, held.module.version, line]._replace(error=errors.get(number))
        if not verdict.agrees:
            differing.append(verdict)
    return _Read(findings.instructions, 0, tuple(differing))


# --- counting ---------------------------------------------------------------------------------------------------------------------


def _sources(modules: Sequence[Held], every: Sequence[Asked], known: _Known, placed: Sequence[_Read]) -> Iterator[Source]:
    grouped: dict[tuple[str, str], list[tuple[Held, _Read]]] = {}
    for held, read_again in zip(modules, placed, strict=True):
        grouped.setdefault((held.source, held.module.target), []).append((held, read_again))
    for (source, target), found in grouped.items():
        lines = [(held.module.version, each.line) for held, _ in found for each in held.module.instructions]
        yield Source(
            name=source,
            target=target,
            files=len(found),
            bytes=sum(len(held.text.encode()) for held, _ in found),
            instructions=len(lines),
            distinct=len(set(lines)),
            refused=sum(known[target, version, line].refused is not None for version, line in lines),
            mutants=sum(
                kind not in (UNCHANGED, ELSEWHERE)
                for each in every
                if (each.source, each.target) == (source, target)
                for kind in each.kinds.values()
            ),
            in_place=sum(each.changed for _, each in found),
        )


def _changes(verdicts: Iterable[Verdict]) -> Iterator[Change]:
    count: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for found in verdicts:
        kind = found.asked.kinds[found.line]
        count[kind] += 1
        refused[kind] += found.refused is not None
    return (Change(kind=kind, mutants=count[kind], refused=refused[kind]) for kind in sorted(count))


def _disagreement(found: Verdict) -> Disagreement:
    return Disagreement(
        line=found.line,
        kind=found.asked.kinds[found.line],
        target=found.asked.target,
        version=found.asked.version,
        answer="accepted" if found.refused is None else "refused",
        said=found.refused or found.error or "",
    )
