"""A run over a sample of the mutants of a spec, in several processes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import joblib

from ptxmma import paths
from ptxmma.evidence import reports
from ptxmma.generator.load import load
from ptxmma_proof.mutation import report
from ptxmma_proof.mutation.mutants import Mutant, mutants, sample
from ptxmma_proof.mutation.report import Mutation
from ptxmma_proof.mutation.trial import Evidence, Trial, Verdict

__all__ = ["COUNT", "STORED", "Mutation", "chosen", "run"]

#: The evidence that is checked in.
STORED = Evidence(reports.FOLDER / "assembler.json", reports.FOLDER / "peers.json", reports.FOLDER / "silicon.json")
#: Mutants of facts of a run, unless told otherwise.
COUNT = 1000
#: For so many of them one of what the manual prints.
_FACTS_PER_PRINTED = 5
#: Mutants that a process tries before it reports back.
_BATCH = 20


def run(
    date: str,
    *,
    spec: Path = paths.SPEC,
    evidence: Evidence = STORED,
    explained: Path | None = None,
    count: int = COUNT,
    seed: int = 0,
    jobs: int = -1,
    progress: Callable[[int, int], None] = lambda done, of: None,  # noqa: ARG005
) -> Mutation:
    """Try a sample of the mutants of a spec.

    Args:
        date: of the run, as it shall stand in the report.
        spec: the directory of the spec.
        evidence: the reports to hold mutants against.
        explained: why some mutants survive, as :func:`ptxmma_proof.mutation.report.explanations` reads it.
        count: how many mutants, as :func:`chosen` takes it.
        seed: of the samples.
        jobs: processes, as joblib counts them.
        progress: called with the number of mutants tried so far and of all.

    Raises:
        OSError: evidence that is not there.
        SpecError: the spec itself is refused.
        ValueError: the evidence is no such report, is about another spec, or contradicts the spec itself.
    """
    started = time.monotonic()
    documents = load(spec)
    everything = mutants(documents)
    tried = chosen(everything, count, seed)
    batches = [tried[start : start + _BATCH] for start in range(0, len(tried), _BATCH)]
    judged: list[tuple[Mutant, Verdict]] = []
    calls = (joblib.delayed(_judged)(spec, evidence, batch) for batch in batches)
    for batch, verdicts in zip(batches, joblib.Parallel(n_jobs=jobs, return_as="generator")(calls), strict=True):
        judged += zip(batch, verdicts, strict=True)
        progress(len(judged), len(tried))
    return report.compose(
        judged,
        report.explanations(explained) if explained is not None else [],
        everything,
        date=date,
        spec=next(document.data["version"] for document in documents if document.data["kind"] == "spec"),
        evidence=report.sources(path for path in (*evidence, explained) if path is not None),
        facts=report.facts_sha256(documents),
        seed=seed,
        processes=joblib.effective_n_jobs(jobs),
        seconds=round(time.monotonic() - started),
    )


def chosen(everything: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """The mutants of a run.

    Args:
        everything: all mutants of a spec.
        count: how many mutants of facts; 0 for all.  What the manual prints is drawn apart, a fifth as many.
        seed: of both samples.
    """
    facts = [mutant for mutant in everything if not mutant.is_printed]
    printed = [mutant for mutant in everything if mutant.is_printed]
    return [*sample(facts, count, seed), *sample(printed, -(-count // _FACTS_PER_PRINTED), seed)]


def _judged(spec: Path, evidence: Evidence, batch: Sequence[Mutant]) -> list[Verdict]:
    trial = _trial(spec, evidence)
    return [trial.judge(mutant) for mutant in batch]


@functools.lru_cache(maxsize=1)
def _trial(spec: Path, evidence: Evidence) -> Trial:
    """Made once in each process."""
    return Trial(spec, evidence)
