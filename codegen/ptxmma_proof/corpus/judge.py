"""Compares the checker with assemblers on a corpus.

Three things are compared:

* every module unchanged: the checker must find every matrix instruction, and may report an error only where the assembler refuses;
* every distinct instruction with one change on its own target and version, and unchanged on every other target and version;
* modules with some instructions replaced by such mutants, so that the checker reads them among real declarations, scopes and neighbours.

The judge is the newest pinned assembler that knows a target.  It reads the instructions, with registers named by their types, in a
function that nobody calls (see :mod:`ptxmma_proof.questions`), and so makes all its checks and no code.
"""

from __future__ import annotations

import bisect
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import Checker, Findings
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma_proof import matrix, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.corpus import extraction
from ptxmma_proof.corpus.samples import Samples
from ptxmma_proof.corpus.verdicts import ELSEWHERE, UNCHANGED, Asked, CorpusFile, Outcome, Verdict
from ptxmma_proof.questions import Lines, Progress, quiet

#: Lines for one process of an assembler.
_BATCH = 4000
#: Statements of a module that are replaced in place.
_IN_PLACE = 64


class UnjudgedError(ValueError):
    """A module to judge, or an assembler that judges it, is missing."""


def judge(
    catalog: Catalog, folder: Path, assemblers: Sequence[Assembler], most: int, cache: Path, jobs: int = -1, progress: Progress = quiet
) -> Outcome:
    """Judge every module in a folder, which has one folder for each source.

    Args:
        catalog: the database.
        folder: the folder of the corpus.
        assemblers: the newest that knows a target is its judge.
        most: mutants of one kind for each different instruction.
        cache: the cache of answers.
        jobs: assemblers at a time, as joblib counts them.
        progress: called with the number of questions answered.

    Raises:
        UnjudgedError: no module with a matrix instruction, or one for a target that no assembler knows.
        UnreadableError: a file is not a module.
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
    known = {(verdict.asked.target, verdict.asked.version, verdict.line): verdict for verdict in verdicts}
    unchanged = [_unchanged(checker, file, known) for file in modules]
    placed = [_in_place(checker, file, material, known) for file in modules]
    differing = [verdict for verdict in verdicts if not verdict.agrees]
    # A line that differs in a module and not alone differs because of the module.
    alone = {(verdict.asked.target, verdict.asked.version, verdict.line) for verdict in differing}
    for verdict in (verdict for each in (*unchanged, *placed) for verdict in each.differing):
        if (verdict.asked.target, verdict.asked.version, verdict.line) not in alone:
            differing.append(verdict)
    lines = [known[file.module.target, file.module.version, one.line] for file in modules for one in file.module.instructions]
    return Outcome(
        modules=modules,
        distinct=len({(verdict.asked.target, verdict.asked.version, verdict.line) for verdict in lines}),
        counted=sum(each.counted for each in unchanged),
        refused=sum(verdict.refused is not None for verdict in lines),
        false_alarms=sum(verdict.refused is None for each in unchanged for verdict in each.differing),
        mutants=sum(kind != UNCHANGED for each in every for kind in each.kinds.values()),
        in_place=sum(each.changed for each in placed),
        disagreements=differing,
        judges=list(dict.fromkeys(each.assembler for each in every)),
    )


def read(catalog: Catalog, folder: Path) -> Iterator[CorpusFile]:
    """The modules of a corpus that have a matrix instruction."""
    stems = extraction.stems(catalog)
    for path in sorted(folder.rglob("*.ptx")):
        text = path.read_text(encoding="utf-8")
        module = extraction.module(text, stems)
        if module.instructions:
            yield CorpusFile(path.relative_to(folder).parts[0], path, text, module)


# --- what is asked ----------------------------------------------------------------------------------------------------------------


class _Material(NamedTuple):
    """The parts of the questions."""

    speakers: Mapping[str, Assembler]  # the assembler that speaks for each target
    stems: Sequence[str]
    samples: Samples
    most: int

    @classmethod
    def of(cls, catalog: Catalog, modules: Sequence[CorpusFile], assemblers: Sequence[Assembler], most: int) -> _Material:
        speakers = matrix.newest(catalog, assemblers)
        for file in modules:
            if file.module.target not in speakers:
                raise UnjudgedError(f"{file.path}: no assembler that is here knows {file.module.target}: fetch them with `make assemblers`")
        return cls(speakers, extraction.stems(catalog), Samples(catalog), most)

    def mutants(self, line: str) -> dict[str, str]:
        """The lines one change away, each with the kind of change; lines that no longer begin like one of our instructions are left out."""
        changed = self.samples.of(ptx.split(line)[0], self.most)
        return {text: kind for text, kind in changed.items() if extraction.begins(ptx.split(text)[0], self.stems)}


def _asked(catalog: Catalog, modules: Sequence[CorpusFile], material: _Material) -> Iterator[Asked]:
    lines: dict[tuple[str, str, str], dict[str, None]] = {}
    for file in modules:
        key = file.source, file.module.target, file.module.version
        lines.setdefault(key, {}).update(dict.fromkeys(instruction.line for instruction in file.module.instructions))
    for (source, target, version), own in lines.items():
        assembler = material.speakers[target]
        kinds = dict.fromkeys(own, UNCHANGED)
        for line in own:
            kinds = material.mutants(line) | kinds
        yield Asked(assembler, target, version, source, kinds)
        for other in matrix.versions_of(catalog, assembler):
            if other != version and Version(other) >= _first(catalog, target):
                yield Asked(assembler, target, other, source, dict.fromkeys(own, ELSEWHERE))
    every = dict.fromkeys(sorted({line for group in lines.values() for line in group}), ELSEWHERE)
    for target, assembler in material.speakers.items():
        yield Asked(assembler, target, assembler.ptx, "", every)


def _first(catalog: Catalog, target: str) -> str:
    """The first version with a target; assemblers refuse even an empty module in earlier ones."""
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
    verdicts = []
    for (each, question), answer in zip(batches, answers, strict=True):
        refused = questions.by_line(answer)
        text, first = ptx.module(each.version, each.target, question.lines.texts, banks)
        errors = {line - first: message for line, message in _errors(checker.check(text)).items()}
        for number, line in enumerate(question.lines.texts):
            verdicts.append(Verdict(each, line, refused.get(number), errors.get(number)))
    return verdicts


def _batches(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    return (lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH))


def _errors(findings: Findings) -> dict[int, str]:
    """The first error of each line."""
    return {finding.line: f"{finding.message} [{finding.rule}]" for finding in reversed(findings.findings) if finding.severity == "error"}


# --- modules ----------------------------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """The checker's verdict on a module."""

    counted: int  # instructions that it found
    changed: int  # instructions that were changed
    differing: tuple[Verdict, ...]


_Known = Mapping[tuple[str, str, str], Verdict]


def _unchanged(checker: Checker, file: CorpusFile, known: _Known) -> _Read:
    return _compared(checker, file, file.text, file.module, [instruction.line for instruction in file.module.instructions], known)


def _in_place(checker: Checker, file: CorpusFile, material: _Material, known: _Known) -> _Read:
    """The module with some instructions replaced by mutants that name the same registers."""
    chance = random.Random(file.path.name)
    lines = [instruction.line for instruction in file.module.instructions]
    changes: dict[int, str] = {}
    for number in chance.sample(range(len(lines)), min(_IN_PLACE, len(lines))):
        instruction = file.module.instructions[number]
        pool = [text for text in material.mutants(instruction.line) if instruction.named(text)]
        if pool:
            lines[number] = chance.choice(pool)
            changes[instruction.offset] = instruction.named(lines[number]) or ""
    text = extraction.rewritten(file.text, changes)
    return _compared(checker, file, text, extraction.module(text, material.stems), lines, known)._replace(changed=len(changes))


def _compared(checker: Checker, file: CorpusFile, text: str, module: extraction.Module, lines: Sequence[str], known: _Known) -> _Read:
    """The checker's first error in each statement of a text, beside the assembler's answer to the line."""
    findings = checker.check(text)
    ends = [match.start() for match in re.finditer("\n", text)]
    starts = [bisect.bisect_left(ends, instruction.offset) + 1 for instruction in module.instructions]
    errors: dict[int, str] = {}
    for place, message in _errors(findings).items():
        errors.setdefault(max(0, bisect.bisect_right(starts, place) - 1), message)
    differing = []
    for number, line in enumerate(lines):
        verdict = known[file.module.target, file.module.version, line]._replace(error=errors.get(number))
        if not verdict.agrees:
            differing.append(verdict)
    return _Read(findings.instructions, 0, tuple(differing))
