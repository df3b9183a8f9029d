"""Tries a sample of mutants: makes each, derives it, and asks the witnesses and then the spec's own rules."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import joblib

from ptxmma import paths
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import load
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.problems import SpecError
from ptxmma.generator.spec_rules import check
from ptxmma_proof.mutation import answers
from ptxmma_proof.mutation import number_formats as formats
from ptxmma_proof.mutation.answers import WITHOUT_LAYOUTS, Contradiction, parts
from ptxmma_proof.mutation.assembled import Assembled
from ptxmma_proof.mutation.described import Described
from ptxmma_proof.mutation.evaluated import Evaluated
from ptxmma_proof.mutation.facts import Mutant, applied, mutants, sample
from ptxmma_proof.mutation.replayed import Replayed
from ptxmma_proof.questions import Progress, quiet

#: Exceptions of the generator and the library for such wrong tables.
_STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, SpecError, StopIteration, TypeError, ValueError)
#: Mutants that a process tries before it reports back.
_BATCH = 20
#: The file that is counted apart: without one of its entries, few witnesses contradict anything.
_ERRATA = "errata.yaml"
INDEPENDENT, OWN = "independent: ", "own: "
SURVIVED = "survived"
#: The fate of a mutant that no independent witness contradicts, where the spec's own rules are not asked.
UNASKED = "unasked"


class Verdict(NamedTuple):
    """The fate of a mutant: its first contradictor, :data:`SURVIVED` or :data:`UNASKED`, and the fact that it contradicts."""

    by: str
    fact: str = ""


class Outcome(NamedTuple):
    """The fate of all mutants."""

    every: int
    judged: list[tuple[Mutant, Verdict]]
    spec: str  # version

    @property
    def totals(self) -> dict[str, int]:
        """The numbers of all mutants, of those tried, and of those that each contradicted first; independent witnesses first."""
        by = Counter(verdict.by for _, verdict in self.judged)
        fates = [UNASKED] if UNASKED in by else [SURVIVED]
        errata = [verdict for mutant, verdict in self.judged if mutant.file.endswith(_ERRATA)]
        counts = {
            "of": self.every,
            "tried": len(self.judged),
            **{fate: by.pop(fate, 0) for fate in fates},
            "errata_tried": len(errata),
            **{f"errata_{fate}": sum(verdict.by == fate for verdict in errata) for fate in fates},
        }
        return counts | dict(sorted(by.items(), key=lambda pair: (pair[0].startswith(OWN), -pair[1])))

    def words(self) -> Iterator[str]:
        """The run in words, the survivors first."""
        for mutant, verdict in self.judged:
            if verdict.by in (SURVIVED, UNASKED):
                yield f"{verdict.by}: {mutant.identity}"
        totals, tried = self.totals, max(1, len(self.judged))
        yield from (f"{name}: {count} ({count / tried:.1%})" for name, count in totals.items())
        for start in (INDEPENDENT, OWN):
            count = sum(count for name, count in totals.items() if name.startswith(start))
            yield f"contradicted, {start}{count} of {len(self.judged)} ({count / tried:.0%})"

    def record(self, date: str) -> list[Line]:
        """The run as lines of ``spec/evidence/mutation.jsonl``."""
        return [witnesses.Run(date=date, spec=self.spec, tools=(), totals=self.totals)]


def run(
    spec: Path = paths.SPEC,
    overlay: Path | None = None,
    *,
    count: int = 0,
    seed: int = 0,
    rules: bool = True,
    jobs: int = -1,
    progress: Progress = quiet,
) -> Outcome:
    """Try a sample of the mutants of a spec.

    Args:
        spec: the directory of the spec.
        overlay: more of it.
        count: the number of mutants; 0 for all.
        seed: the seed of the sample.
        rules: ask the spec's own rules about the mutants that no independent witness contradicts; they take half of the time.
        jobs: processes, as joblib counts them.
        progress: called with the number of mutants tried so far and of all.

    Raises:
        SpecError: the spec itself is refused.
        ValueError: a witness contradicts the spec itself.
    """
    documents = load.load(spec, overlay)
    every = mutants(documents)
    tried = sample(every, count, seed)
    batches = [tried[start : start + _BATCH] for start in range(0, len(tried), _BATCH)]
    judged: list[tuple[Mutant, Verdict]] = []
    calls = (joblib.delayed(_judged)(spec, overlay, rules, batch) for batch in batches)
    for batch, verdicts in zip(batches, joblib.Parallel(n_jobs=jobs, return_as="generator")(calls), strict=True):
        judged += zip(batch, verdicts, strict=True)
        progress(len(judged), len(tried))
    return Outcome(len(every), judged, next(document.data["version"] for document in documents if document.data["kind"] == "spec"))


def _judged(spec: Path, overlay: Path | None, rules: bool, batch: Sequence[Mutant]) -> list[Verdict]:
    trial = _trial(spec, overlay)
    return [trial.judge(mutant, rules=rules) for mutant in batch]


@functools.lru_cache(maxsize=1)
def _trial(spec: Path, overlay: Path | None) -> Trial:
    """Made once in each process."""
    return Trial(spec, overlay)


class Trial:
    """A spec and the witnesses, ready for its mutants.

    Raises:
        SpecError: the spec itself is refused.
        ValueError: a witness contradicts the spec itself, so that mutants would prove nothing.
    """

    def __init__(self, spec: Path, overlay: Path | None = None) -> None:
        self.documents = load.load(spec, overlay)
        model, positions = build(self.documents)
        check(model, positions)
        derived = derive(model, positions)
        derived.prove()
        self.catalog = Catalog(derived.database)
        self.formulas = Evaluated(self.catalog)
        self._laid = parts(model, *WITHOUT_LAYOUTS)
        self.witnesses: dict[str, Contradiction] = {
            "number formats": formats.types,
            "C types": formats.c_types,
            "PyTorch": formats.sparsity,
            "CuTe": answers.layouts(self.catalog),
            "assemblers": Assembled(self.catalog, spec / "evidence").contradiction,
            "chip": Replayed(self.catalog, spec / "evidence").contradiction,
            "driver": answers.tensor_maps(self.catalog),
            "peers on tensor memory": answers.tensor_memory(self.catalog),
            "peers on products": answers.products(self.catalog),
            "peers on descriptors": Described(self.catalog, spec / "evidence").contradiction,
            "assemblers on errata": answers.sightings(self.catalog, spec / "evidence"),
        }
        for name, contradiction in self.witnesses.items():
            if fact := contradiction(self.catalog):
                raise ValueError(f"{name}: contradicts the spec itself: {fact}")

    def judge(self, mutant: Mutant, *, rules: bool = True) -> Verdict:
        """Make a mutant, and find what contradicts it first; the spec's own rules, too, if asked."""
        documents = applied(self.documents, mutant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong table may overflow on its way to a wrong result
            try:
                spec, positions = build(documents)
            except _STUMBLES as error:
                return Verdict(f"{OWN}it cannot be built", str(error)[:200])
            witness, fact = self.formulas.contradiction(spec)
            if fact:
                return Verdict(INDEPENDENT + witness, fact)
            try:
                derived = derive(spec, positions)
                catalog = Catalog(derived.database)
            except _STUMBLES as error:
                return Verdict(f"{OWN}it cannot be built", str(error)[:200])
            stumbled = ""
            for name, contradiction in self.witnesses.items():
                try:
                    if fact := contradiction(catalog):
                        return Verdict(INDEPENDENT + name, fact)
                except _STUMBLES as error:
                    stumbled = stumbled or f"{name}: {type(error).__name__}: {error}"[:200]
            if not rules:
                return Verdict(UNASKED)
            if problems := list(load.schema_problems(documents[mutant.number])):
                return Verdict(f"{OWN}schema", problems[0].message)
            try:
                if parts(spec, *WITHOUT_LAYOUTS) != self._laid:
                    derived.prove()
                check(spec, positions)
            except _STUMBLES as error:
                return Verdict(f"{OWN}rules", str(error)[:200])
        return Verdict(f"{OWN}the library refuses its tables", stumbled) if stumbled else Verdict(SURVIVED)
