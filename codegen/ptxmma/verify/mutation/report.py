"""What became of the mutants, as data: ``spec/evidence/mutation.json``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ptxmma.evidence import reports
from ptxmma.evidence.reports import Entry, Report
from ptxmma.verify.mutation.mutants import Mutant
from ptxmma.verify.mutation.prose import LEFT_OUT
from ptxmma.verify.mutation.trial import Verdict


class Explanation(Entry, frozen=True, kw_only=True):
    """Why some mutants survive, written by a person."""

    mutants: tuple[str, ...]  # patterns of their identities, as of file names
    why: str


class Survivor(Entry, frozen=True, kw_only=True):
    """A mutant that nothing contradicts."""

    mutant: str  # "types.yaml: containers/0/shift: 2 -> 1"
    outputs: tuple[str, ...]  # generated files that differ
    explained: str = ""


class Mutation(Report, frozen=True, kw_only=True):
    """All mutants of a run.

    Attributes:
        evidence: the reports that mutants were held against, each with its date.
        all: how many mutants the spec has.
        seed: of the sample.
        tried: how many were tried; those that change nothing are among them.
        by_file: file -> what killed its mutants -> how many; "survived", "changed nothing" and "only reworded" beside them.
        by_kind: the same by what was changed: a number, an operator, a condition ….
        killed: check -> how many mutants it was the first to contradict.
        unchanged: mutants from which the same is generated, byte by byte.
        reworded: mutants that say the same in other words, in a condition, a rule or a formula: each instruction has the same spellings,
            operands, layouts, targets, versions and arithmetic.
        survivors: mutants that nothing contradicts.
        left_out: what is no fact, by key, with the reason.
        processes, seconds: how long it took.
    """

    evidence: dict[str, str]
    all: int
    seed: int
    tried: int
    by_file: dict[str, dict[str, int]]
    by_kind: dict[str, dict[str, int]]
    killed: dict[str, int]
    unchanged: tuple[str, ...]
    reworded: tuple[str, ...]
    survivors: tuple[Survivor, ...]
    left_out: dict[str, str]
    processes: int
    seconds: int

    @property
    def unexplained(self) -> list[Survivor]:
        """The survivors that nobody explains."""
        return [survivor for survivor in self.survivors if not survivor.explained]

    @property
    def rate(self) -> float:
        """The share of survivors among the mutants that change something."""
        return len(self.survivors) / max(1, self.tried - len(self.unchanged) - len(self.reworded))


def explanations(path: Path) -> list[Explanation]:
    """Read what a person wrote.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no list of explanations; the message names the path and the place in it.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Explanation])
    except msgspec.DecodeError as error:
        raise ValueError(f'{path}: {error}; it holds [{{"mutants": [patterns], "why": text}}, …]') from None


def compose(judged: Sequence[tuple[Mutant, Verdict]], explained: Iterable[Explanation], **about: Any) -> Mutation:
    """The report of a run; ``about`` has what the verdicts do not say."""
    written = list(explained)
    survivors = [(mutant, verdict) for mutant, verdict in judged if _fate(verdict) == "survived"]
    return Mutation(
        tried=len(judged),
        by_file=_counted((mutant.yaml, _fate(verdict)) for mutant, verdict in judged),
        by_kind=_counted((mutant.kind, _fate(verdict)) for mutant, verdict in judged),
        killed=dict(sorted(_counted(("", verdict.check) for _, verdict in judged if verdict.check).get("", {}).items())),
        unchanged=tuple(mutant.identity for mutant, verdict in judged if _fate(verdict) == "changed nothing"),
        reworded=tuple(mutant.identity for mutant, verdict in judged if _fate(verdict) == "only reworded"),
        survivors=tuple(
            Survivor(mutant=mutant.identity, outputs=verdict.outputs, explained=_explained(mutant.identity, written))
            for mutant, verdict in survivors
        ),
        left_out=LEFT_OUT,
        **about,
    )


def lines(found: Mutation) -> Iterable[str]:
    """A report in words."""
    killed = ", ".join(f"{count} by {check}" for check, count in found.killed.items())
    yield f"{found.tried} of {found.all} mutants in {found.seconds} s; killed: {killed}"
    yield f"{len(found.unchanged)} change nothing, {len(found.reworded)} say the same in other words"
    yield f"{len(found.survivors)} survive ({found.rate:.1%}), {len(found.unexplained)} of them unexplained"
    yield from (f"    {survivor.mutant}" for survivor in found.unexplained)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return reports.schema(Mutation, "What became of the mutants of the spec")


def _fate(verdict: Verdict) -> str:
    if verdict.check:
        return verdict.check
    if not verdict.outputs:
        return "changed nothing"
    return "only reworded" if verdict.reworded else "survived"


def _counted(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for first, second in sorted(pairs):
        inner = found.setdefault(first, {})
        inner[second] = inner.get(second, 0) + 1
    return found


def _explained(identity: str, written: Sequence[Explanation]) -> str:
    for explanation in written:
        if any(fnmatch.fnmatchcase(identity, pattern) for pattern in explanation.mutants):
            return explanation.why
    return ""


def sources(paths: Mapping[str, Path]) -> dict[str, str]:
    """The dates of the reports that mutants are held against."""
    return {name: str(msgspec.json.decode(path.read_bytes())["date"]) for name, path in paths.items()}
