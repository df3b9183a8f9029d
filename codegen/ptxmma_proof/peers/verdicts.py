"""Verdicts on differences between peers and the database: who is right, why, and what the assemblers say.

People write them into ``verdicts.yaml``, one for every difference that has the same reason; the assemblers answer anew in each run.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Report, Sighting
from ptxmma.model import Version
from ptxmma_proof import assemblers, errata
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings, Judged
from ptxmma_proof.peers.sources import MissingPeerError

_WRITTEN = Path(__file__).with_name("verdicts.yaml")


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question to every assembler that knows the target and the version; ``asked`` is as in :class:`Sighting`."""

    asked: str
    target: str
    ptx: str


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A verdict on the differences whose peer, subject, operand and answer of the peer match patterns, as for file names.

    ``right``, ``why`` and ``report`` are as in :class:`ptxmma.catalog.evidence.witnesses.Difference`.
    """

    peer: str
    subject: str
    operand: str
    theirs: str = "*"
    right: Literal["ours", "theirs", "both", "open"]
    why: str
    questions: tuple[Question, ...] = ()
    report: Report | None = None

    def speaks_of(self, other: Difference) -> bool:
        """Return whether it is about a difference."""
        return all(fnmatch.fnmatchcase(getattr(other, name), getattr(self, name)) for name in ("peer", "subject", "operand", "theirs"))


def read(path: Path = _WRITTEN) -> list[Verdict]:
    """The verdicts that people wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a list of verdicts.
    """
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), list[Verdict])


def judge(findings: Findings, written: Sequence[Verdict] | None = None, asked: Sequence[Assembler] | None = None) -> Judged:
    """Give each difference the first verdict that speaks of it; differences that are alike become one.

    Args:
        findings: the findings of a comparison.
        written: the verdicts; unless given, all in ``verdicts.yaml``.
        asked: the assemblers that answer the questions of verdicts; the fetched ones unless given.

    Raises:
        MissingPeerError: a verdict has a question, and no assembler is fetched.
        AssemblerError: an assembler failed without a message.
    """
    known = read() if written is None else written
    alike: dict[tuple[str, str, str, str, int], list[str]] = {}
    for each in findings.differences:
        number = next((number for number, one in enumerate(known) if one.speaks_of(each)), len(known))
        alike.setdefault((each.peer, each.operand, each.theirs, each.ours, number), []).append(each.subject)
    judged = []
    for (peer, operand, theirs, ours, number), subjects in alike.items():
        line = witnesses.Difference(peer=peer, subjects=tuple(dict.fromkeys(subjects)), operand=operand, theirs=theirs, ours=ours)
        if number < len(known):
            verdict = known[number]
            answers = tuple(itertools.chain.from_iterable(_answers(each, asked) for each in verdict.questions))
            line = msgspec.structs.replace(line, right=verdict.right, why=verdict.why, answers=answers, report=verdict.report)
        judged.append(line)
    return Judged(findings, judged)


def _answers(question: Question, asked: Sequence[Assembler] | None) -> Iterator[Sighting]:
    """The answers of the assemblers to a question, one for neighbouring releases that say the same."""
    here = assemblers.fetched() if asked is None else asked
    if not here:
        raise MissingPeerError("a verdict asks the assemblers, and none is fetched: make assemblers")
    seen = Sighting(erratum="", tool="", targets=(question.target,), ptx=question.ptx, asked=question.asked, answer="")
    able = [one for one in here if question.target in one.targets and Version(question.ptx) <= Version(one.ptx)]
    said = [(one.cuda, errata.ask(seen, question.target, one)) for one in able]
    for answer, group in itertools.groupby(said, key=lambda pair: pair[1]):
        releases = [cuda for cuda, _ in group]
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        yield msgspec.structs.replace(seen, tool=f"ptxas {span}", answer=answer)
