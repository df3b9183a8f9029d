"""A run as evidence: what :mod:`ptxmma.evidence.assembler` holds, of what was asked and answered."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence import assembler, facts
from ptxmma.ptx import lines as ptx
from ptxmma_proof import matrix, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.matrix import Column, Difference, Subject
from ptxmma_proof.negative import Batch, Disagreement, Neighbours


def compose(
    date: str,
    subject: Subject,
    columns: Sequence[Column],
    differences: Sequence[Difference],
    space: Mapping[str, Neighbours],
    batches: Sequence[Batch],
    disagreements: Sequence[Disagreement],
) -> assembler.Assembler:
    """The report of a run; the same answers give the same report."""
    catalog = subject.catalog
    assemblers = list(dict.fromkeys(column.assembler for column in columns))
    asked = {found.family for found in subject.instructions}
    return assembler.Assembler(
        date=date,
        spec=catalog.database.spec.version,
        assemblers=tuple(_asked(catalog, each, columns) for each in assemblers),
        versions=tuple(dict.fromkeys(version for each in assemblers for version in matrix.versions_of(catalog, each))),
        facts={family: sha256 for family, sha256 in facts.accepted(catalog).items() if family in asked},
        asked=dict(matrix.asked(columns)),
        answers=tuple(_alike(subject, columns)),
        differences=tuple(_difference(each) for each in differences),
        negative=tuple(_space(family, lines, batches, disagreements) for family, lines in space.items()),
        errata=facts.explaining(catalog),
        disagreements=tuple(_disagreements(disagreements)),
    )


def _asked(catalog: Catalog, each: Assembler, columns: Iterable[Column]) -> assembler.Asked:
    versions = matrix.versions_of(catalog, each)
    targets = {column.target: _first(column.sound, versions) for column in columns if column.assembler == each and column.sound}
    return assembler.Asked(cuda=each.cuda, build=each.build, ptx=each.ptx, sha256=each.sha256, targets=targets)


def _alike(subject: Subject, columns: Sequence[Column]) -> Iterator[assembler.Alike]:
    """The lines of instructions by what was said of them."""
    classes: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    versions = {column.assembler: matrix.versions_of(subject.catalog, column.assembler) for column in columns}
    for line, text in enumerate(subject.lines.texts):
        said = tuple(
            (column.assembler.cuda, column.target, _first(column.accepted[line], versions[column.assembler]))
            for column in columns
            if column.accepted[line]
        )
        classes.setdefault(said, []).append(ptx.compact(text))
    for said, lines in classes.items():
        accepted: dict[str, dict[str, str]] = {}
        for cuda, target, first in said:
            accepted.setdefault(cuda, {})[target] = first
        yield assembler.Alike(accepted=accepted, lines=tuple(lines))


def _first(accepted: Sequence[str], versions: Sequence[str]) -> str:
    """The first of the versions that accept; all of them where one in between refuses."""
    return matrix.first_version(accepted, versions) or " ".join(accepted)


def _difference(each: Difference) -> assembler.Difference:
    lines = tuple(map(ptx.compact, each.lines))
    return assembler.Difference(
        cuda=each.cuda, target=each.target, assembler=each.assembler, database=each.database, said=each.said, lines=lines
    )


def _space(family: str, lines: Neighbours, batches: Iterable[Batch], disagreements: Iterable[Disagreement]) -> assembler.Space:
    own = (batch for batch in batches if batch.family == family)
    disputed = Counter(target for each in disagreements if each.line in lines for target in each.targets)
    answers = tuple(
        assembler.Bits(target=target, cuda=speaker.cuda, accepted=assembler.packed(_accepted(each)), disputed=disputed[target])
        for (target, speaker), each in itertools.groupby(own, key=lambda batch: (batch.target, batch.assembler))
    )
    return assembler.Space(family=family, lines=len(lines), sha256=facts.of_lines(lines), answers=answers)


def _accepted(batches: Iterable[Batch]) -> Iterator[bool]:
    """Whether each of the lines is accepted, in their order."""
    for batch in batches:
        refused = questions.by_line(batch.refusals)
        yield from (number not in refused for number in range(len(batch.lines.texts)))


def _disagreements(found: Iterable[Disagreement]) -> Iterator[assembler.Disagreement]:
    """Lines that were answered alike, and that one erratum explains, stand together."""
    classes: dict[Disagreement, list[str]] = {}
    for each in found:
        classes.setdefault(each._replace(line=""), []).append(ptx.compact(each.line))
    for said, lines in classes.items():
        yield assembler.Disagreement(
            erratum=said.erratum,
            cuda=said.cuda,
            version=said.version,
            targets=said.targets,
            answer=said.answer,
            lines=tuple(lines),
        )
