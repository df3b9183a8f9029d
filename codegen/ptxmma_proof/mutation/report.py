"""What became of the mutants, as data: ``spec/evidence/mutation.json``."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ptxmma.evidence import reports
from ptxmma.evidence.reports import Count, Entry, Positive, Report, Sha256
from ptxmma.generator.load import Document
from ptxmma_proof.mutation.mutants import Mutant
from ptxmma_proof.mutation.prose import LEFT_OUT, holds_facts, left_out

if TYPE_CHECKING:  # who only reads a report needs nothing of what made it
    from ptxmma_proof.mutation.trial import Verdict

#: Who contradicts mutants: whether this witness knows nothing of the spec, and its checks.  The others find the spec at odds with itself.
WITNESSES: dict[str, tuple[bool, tuple[str, ...]]] = {
    "assemblers": (True, ("assemblers", "errata")),  # errata hold their exact answers
    "chip": (True, ("chip",)),
    "peers": (True, ("CuTe", "PyTorch", "number formats", "C types")),
    "formulas and examples of the manual": (True, ("stated formulas", "worked examples")),
    "coverage and bijectivity": (False, ("layouts",)),
    "rules": (False, ("schema", "model", "rules")),
    "said twice": (False, ("said twice",)),
    "no answer": (False, ("library stumbles",)),
}


class Explanation(Entry, frozen=True, kw_only=True):
    """Why some mutants survive, written by a person."""

    mutants: tuple[str, ...]  # patterns of their identities, as of file names
    why: str


class Explained(Explanation, frozen=True, kw_only=True):
    """An explanation, and how much it explains.

    Attributes:
        covers: mutants of the spec of which it speaks, those among them that something contradicts included.
        survived: of those that were tried.
    """

    covers: int
    survived: int


class Witness(Entry, frozen=True, kw_only=True):
    """Who contradicted how many mutants.

    Attributes:
        name: "assemblers".
        independent: whether it knows nothing of the spec; others find that the spec contradicts itself.
        killed: check -> how many mutants it was the first to contradict.
    """

    name: str
    independent: bool
    killed: dict[str, int]


class Survivor(Entry, frozen=True, kw_only=True):
    """A mutant that nothing contradicts."""

    mutant: str  # "types.yaml: containers/0/shift: 2 -> 1"
    outputs: tuple[str, ...]  # generated files that differ
    explained: str = ""


class Printed(Entry, frozen=True, kw_only=True):
    """Mutants of the formulas and worked examples that the manual prints.

    The spec has copies of these, which its own facts are held against.  That such a mutant is contradicted shows that the copy is right
    and that somebody looks at it, and nothing else, so that it counts for no fact.

    Attributes:
        all, tried, killed, unchanged, reworded, survivors: as in :class:`Mutation`.
    """

    all: Count
    tried: Count
    killed: dict[str, Positive]
    unchanged: tuple[str, ...]
    reworded: tuple[str, ...]
    survivors: tuple[Survivor, ...]


class Mutation(Report, frozen=True, kw_only=True):
    """All mutants of a run.

    Attributes:
        facts: SHA-256 of the facts that mutants were made of, see :func:`facts_sha256`.
        evidence: SHA-256 of the reports that mutants were held against, and of the explanations, by the files' names.
        all: how many mutants of its facts the spec has.
        seed: of the samples.
        tried: how many were tried; those that change nothing are among them.
        by_file: file -> what killed its mutants -> how many; "survived", "changed nothing" and "only reworded" beside them.
        by_kind: the same by what was changed: a number, an operator, a condition ….
        killed: check -> how many mutants it was the first to contradict.
        witnesses: the same by who knows it, independent witnesses first.  A mutant that breaks a rule has no instructions about which
            another witness could be asked; "said twice" has only what no other contradicts.
        unchanged: mutants from which the same is generated, byte by byte.
        reworded: mutants that say the same in other words, in a condition, a rule or a formula: each instruction has the same spellings,
            operands, layouts, targets, versions and arithmetic.
        survivors: mutants that nothing contradicts.
        printed: the mutants of what the manual prints, which are in no other number here.
        explanations: why some survive, each with the mutants that it is about.
        left_out: what is no fact, by key, with the reason.
        processes, seconds: how long it took.
    """

    facts: str
    evidence: dict[str, Sha256]
    all: Count
    seed: int
    tried: Count
    by_file: dict[str, dict[str, Positive]]
    by_kind: dict[str, dict[str, Positive]]
    killed: dict[str, Positive]
    witnesses: tuple[Witness, ...]
    unchanged: tuple[str, ...]
    reworded: tuple[str, ...]
    survivors: tuple[Survivor, ...]
    printed: Printed
    explanations: tuple[Explained, ...]
    left_out: dict[str, str]
    processes: int
    seconds: int

    @property
    def independent(self) -> int:
        """How many mutants an independent witness contradicts."""
        return sum(sum(witness.killed.values()) for witness in self.witnesses if witness.independent)

    @property
    def unexplained(self) -> list[Survivor]:
        """The survivors that nobody explains, mutants of what the manual prints among them."""
        return [survivor for survivor in (*self.survivors, *self.printed.survivors) if not survivor.explained]

    @property
    def rate(self) -> float:
        """The share of survivors among the mutants of facts that change something."""
        return len(self.survivors) / max(1, self.tried - len(self.unchanged) - len(self.reworded))


def explanations(path: Path) -> list[Explanation]:
    """Read what a person wrote.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no list of explanations; the message names the path and the place in it.
    """
    return reports.written(path, Explanation, '{"mutants": [patterns], "why": text}')


def facts_sha256(documents: Sequence[Document]) -> str:
    """The SHA-256 of all facts of a spec: of its documents without what :data:`ptxmma_proof.mutation.prose.LEFT_OUT` leaves out."""
    told = sorted(msgspec.json.encode([document.data["kind"], _facts(document.data, ())], order="sorted") for document in documents)
    return hashlib.sha256(b"\n".join(told)).hexdigest()


def sources(paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of files, by their names."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def changed(evidence: Mapping[str, str], folder: Path) -> list[str]:
    """The files of a report's evidence that are others now, or are no longer in a folder."""
    now = sources(folder / name for name in evidence if (folder / name).is_file())
    return [name for name, digest in evidence.items() if now.get(name) != digest]


def compose(
    judged: Sequence[tuple[Mutant, Verdict]], explained: Iterable[Explanation], everything: Sequence[Mutant], **about: Any
) -> Mutation:
    """The report of a run.

    Args:
        judged: the mutants that were tried.
        explained: why some survive.
        everything: all mutants of the spec.
        about: what the verdicts do not say.
    """
    written = list(explained)
    facts = [(mutant, verdict) for mutant, verdict in judged if not mutant.is_printed]
    common = _common(facts, everything, written, printed=False)
    killed = common["killed"]
    return Mutation(
        **common,
        by_file=_counted((mutant.yaml, _fate(verdict)) for mutant, verdict in facts),
        by_kind=_counted((mutant.kind, _fate(verdict)) for mutant, verdict in facts),
        witnesses=tuple(
            Witness(name=name, independent=independent, killed={check: killed[check] for check in checks if check in killed})
            for name, (independent, checks) in WITNESSES.items()
        ),
        printed=Printed(**_common([pair for pair in judged if pair[0].is_printed], everything, written, printed=True)),
        explanations=tuple(
            Explained(
                mutants=entry.mutants,
                why=entry.why,
                covers=sum(_speaks(entry, mutant) for mutant in everything),
                survived=sum(_speaks(entry, mutant) for mutant, verdict in judged if _fate(verdict) == "survived"),
            )
            for entry in written
        ),
        left_out=LEFT_OUT,
        **about,
    )


def lines(found: Mutation) -> Iterable[str]:
    """A report in words."""
    yield f"{found.tried} of {found.all} mutants in {found.seconds} s"
    for witness in found.witnesses:
        checks = ", ".join(f"{count} by {check}" for check, count in witness.killed.items())
        yield f"    {witness.name}{'' if witness.independent else ' (of the spec itself)'}: {checks or 'none'}"
    inside = sum(found.killed.values()) - found.independent
    yield f"{found.independent} are contradicted by what knows nothing of the spec, {inside} by the spec itself"
    yield f"{len(found.unchanged)} change nothing, {len(found.reworded)} say the same in other words"
    yield f"{len(found.survivors)} survive ({found.rate:.1%})"
    printed = found.printed
    yield (
        f"{printed.tried} of {printed.all} mutants of what the manual prints: {sum(printed.killed.values())} are contradicted, "
        f"{len(printed.unchanged) + len(printed.reworded)} change nothing or only words, {len(printed.survivors)} survive"
    )
    yield f"{len(found.unexplained)} survivors are unexplained"
    yield from (f"    {survivor.mutant}" for survivor in found.unexplained)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return reports.schema(Mutation, "What became of the mutants of the spec")


def _common(
    judged: Sequence[tuple[Mutant, Verdict]], everything: Sequence[Mutant], explained: Sequence[Explanation], *, printed: bool
) -> dict[str, Any]:
    """What is told alike of the mutants of facts and of those of what the manual prints."""
    fates: dict[str, list[str]] = {}
    for mutant, verdict in judged:
        fates.setdefault(_fate(verdict), []).append(mutant.identity)
    return {
        "all": sum(mutant.is_printed == printed for mutant in everything),
        "tried": len(judged),
        "killed": _counted(("", verdict.check) for _, verdict in judged if verdict.check).get("", {}),
        "unchanged": tuple(fates.get("changed nothing", ())),
        "reworded": tuple(fates.get("only reworded", ())),
        "survivors": tuple(
            Survivor(
                mutant=mutant.identity,
                outputs=verdict.outputs,
                explained=next((entry.why for entry in explained if _speaks(entry, mutant)), ""),
            )
            for mutant, verdict in judged
            if _fate(verdict) == "survived"
        ),
    }


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


def _speaks(explanation: Explanation, mutant: Mutant) -> bool:
    return any(fnmatch.fnmatchcase(mutant.identity, pattern) for pattern in explanation.mutants)


def _facts(value: Any, keys: tuple[str, ...]) -> Any:
    """What of a part of a document is a fact."""
    if isinstance(value, dict):
        inside = {key: (*keys, key) for key in value}
        return {key: _facts(value[key], path) for key, path in inside.items() if not left_out(path) or holds_facts(path)}
    return [_facts(part, keys) for part in value] if isinstance(value, list) else value
