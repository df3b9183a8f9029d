"""One mutant after the other: made, derived, and held against every independent fact, the cheapest first and the spec itself last.

Nothing here compares a mutant with the spec that it was made from: that would contradict every one of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence import assembler, reports
from ptxmma.evidence.silicon import Silicon
from ptxmma.generator import load
from ptxmma.generator.build import build
from ptxmma.generator.derive import derive
from ptxmma.generator.load import Document
from ptxmma.generator.problems import SpecError
from ptxmma.generator.rules import check
from ptxmma_proof import errata, peers
from ptxmma_proof.mutation import consistency, outputs, published
from ptxmma_proof.mutation.assembled import Assemblers
from ptxmma_proof.mutation.chip import Results
from ptxmma_proof.mutation.mutants import Mutant, applied

#: What a library raises that was not made for tables so wrong.
_STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        check: the check that contradicts it; "" where none does.
        fact: what it contradicts, in words.
        outputs: of a survivor, which outputs differ from those of the spec.
        reworded: of a survivor, whether each instruction has the same spellings, operands, layouts, targets, versions and arithmetic.
    """

    check: str
    fact: str = ""
    outputs: tuple[str, ...] = ()
    reworded: bool = False


class Evidence(NamedTuple):
    """The stored evidence; None for what there is none of."""

    assemblers: Path | None = None
    peers: Path | None = None
    silicon: Path | None = None


class Trial:
    """A spec and the evidence, ready for its mutants.

    Args:
        spec: the directory of the spec.
        evidence: what is stored.

    Raises:
        SpecError: the spec itself is refused.
        ValueError: the evidence contradicts the spec itself.
    """

    def __init__(self, spec: Path, evidence: Evidence) -> None:
        self.documents = load.load(spec)
        self.catalog = _catalog(self.documents)
        self._outputs: outputs.Texts | None = None
        self._answers: list[object] = []
        self.checks: dict[str, Callable[[Catalog], str]] = {
            "number formats": published.types,
            "C types": published.c_types,
            "worked examples": consistency.examples,
            "PyTorch": published.sparsity,
        }
        if evidence.peers is not None:
            self.checks["CuTe"] = _cute(evidence.peers, self.catalog)
        if evidence.assemblers is not None:
            self.checks["assemblers"] = Assemblers(assembler.load(evidence.assemblers), self.catalog).contradiction
        if evidence.silicon is not None:
            self.checks["chip"] = Results(reports.load(evidence.silicon, Silicon), self.catalog).contradiction
        self.checks["errata"] = _sighted(self.catalog)
        self.checks["said twice"] = consistency.contradiction  # last: it counts only what no witness knows
        for name, contradiction in self.checks.items():
            if fact := contradiction(self.catalog):
                raise ValueError(f"{name} contradicts the spec itself, so that mutants would prove nothing: {fact}")

    def judge(self, mutant: Mutant) -> Verdict:
        """Make a mutant and hold it against everything until something contradicts it."""
        documents = applied(self.documents, mutant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong table may overflow on its way to a wrong result
            stage, fact, catalog = _made(documents, mutant.number)
            if catalog is None:
                return Verdict(stage, fact)
            stumbled = ""
            for name, contradiction in self.checks.items():
                try:
                    if fact := contradiction(catalog):
                        return Verdict(name, fact)
                except _STUMBLES as error:
                    stumbled = stumbled or f"{name}: {type(error).__name__}: {error}"[:200]
            if stumbled:  # nobody contradicts it, but tables so wrong answer no question
                return Verdict("library stumbles", stumbled)
            if self._outputs is None:
                self._outputs, self._answers = outputs.texts(self.catalog), outputs.answers(self.catalog)
            reworded = mutant.is_wording and outputs.answers(catalog) == self._answers
            return Verdict("", outputs=outputs.different(self._outputs, catalog), reworded=reworded)


def _catalog(documents: Sequence[Document]) -> Catalog:
    model, positions = build(list(documents))
    check(model, positions)
    return Catalog(derive(model, positions))


def _made(documents: list[Document], changed: int) -> tuple[str, str, Catalog | None]:
    """The stage that refuses the documents and why, or their catalog."""
    problems = list(load.schema_problems(documents[changed]))
    if problems:
        return "schema", problems[0].message, None
    stage = "model"
    try:
        model, positions = build(documents)
        stage = "rules"
        check(model, positions)
        stage = "layouts"
        return "", "", Catalog(derive(model, positions))
    except SpecError as error:
        message = error.problems[0].message
        return ("stated formulas" if stage == "layouts" and message.startswith("section ") else stage), message, None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        return stage, f"{type(error).__name__}: {error}", None


def _sighted(catalog: Catalog) -> Callable[[Catalog], str]:
    known = set(errata.misjudged(catalog))

    def contradiction(other: Catalog) -> str:
        found = next((seen for seen in errata.misjudged(other) if seen not in known), None)
        return f"{found.answer} on {found.target} by {found.tool}: {found.asked}"[:200] if found is not None else ""

    return contradiction


def _cute(path: Path, catalog: Catalog) -> Callable[[Catalog], str]:
    told = peers.load(path)
    known = {(found.subject, found.operand, found.instruction, found.theirs) for found in peers.recorded(told, catalog)}

    def contradiction(other: Catalog) -> str:
        for found in peers.recorded(told, other):
            if (found.subject, found.operand, found.instruction, found.theirs) not in known:
                return f"{found.subject}, {found.operand or found.instruction}: {found.theirs}"[:200]
        return ""

    return contradiction
