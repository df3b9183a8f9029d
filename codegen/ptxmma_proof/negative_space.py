"""The negative space: compares assemblers and database on the neighbours of instructions.

Assemblers deviate from the manual here and there.  A difference is explained if the rules of the spec, which ``ptxmma check`` applies, give
the assembler's answer, or if an entry of the errata has a neighbour with the same change in the same family, on the same target, with the
same answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.instructions.spellings import has_opcode
from ptxmma.check import legality
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma_proof import errata, matrix, questions
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.line_legality import Legality
from ptxmma_proof.neighbours import Neighbours
from ptxmma_proof.questions import Lines, Progress, Refusals, quiet

#: The explanation of a line on which the spec's rules agree with the assembler.
RULES = "the spec's rules"
#: Lines for one process of an assembler.
_BATCH = 5000


class Disagreement(NamedTuple):
    """A line on which the database and the newest assembler that knows a target differ."""

    line: str
    cuda: str
    version: str
    targets: tuple[str, ...]
    answer: str  # "accepted", or why it is refused
    explanation: str  # RULES or an entry of the errata; "" for none

    def __str__(self) -> str:
        accepted = self.answer == errata.ACCEPTED
        assembler, database = ("accepts", "refuses") if accepted else (f"refuses ({self.answer})", "accepts")
        return f"CUDA {self.cuda} {assembler} in {self.version} on {', '.join(self.targets)}, the database {database}: {self.line}"


class Batch(NamedTuple):
    """Some neighbours of a family, and the ones that an assembler refuses on a target in its newest version."""

    family: str
    target: str
    assembler: Assembler
    lines: Lines
    refusals: Refusals


def sweep(
    catalog: Catalog,
    space: Mapping[str, Neighbours],
    assemblers: Sequence[Assembler],
    targets: Sequence[str],
    cache: Path,
    jobs: int,
    progress: Progress = quiet,
) -> list[Batch]:
    """Ask about a negative space: family by family, target by target, the lines in their order."""
    banks = matrix.banks(catalog)
    everything = Lines.of((line for neighbours in space.values() for line in neighbours), banks)
    speakers = speaking(catalog, assemblers, targets)
    unreadable = {assembler: questions.unreadable(assembler, everything) for assembler in set(speakers.values())}
    places = []
    for family, neighbours in space.items():
        texts = list(neighbours)
        batches = [Lines.of(texts[start : start + _BATCH], banks) for start in range(0, len(texts), _BATCH)]
        places += [(family, target, assembler, batch) for target, assembler in speakers.items() for batch in batches]
    asked = [matrix.question(assembler, target, assembler.ptx, batch, unreadable[assembler]) for _, target, assembler, batch in places]
    return [Batch(*place, answer) for place, answer in zip(places, questions.ask(asked, cache, jobs, progress), strict=True)]


def speaking(catalog: Catalog, assemblers: Sequence[Assembler], targets: Sequence[str]) -> dict[str, Assembler]:
    """The targets that are asked about, each with the newest assembler that knows it.

    Of each generation of chips (``sm_12x``), only the last target of each suffix is asked about.
    """
    newest = matrix.newest(catalog, assemblers)
    last = {
        (target.number // 10, target.suffix): target.name
        for target in catalog.database.spec.targets
        if target.name in newest and target.name in targets
    }
    return {target: newest[target] for target in last.values()}


def disagreements(catalog: Catalog, batches: Iterable[Batch], explained: Explanations) -> list[Disagreement]:
    """The differences between the database and the assemblers, targets with the same answer together.

    The database says nothing about a line without an opcode of its instructions: ``st.async`` without ``.async`` is ``st``.
    """
    accepted_by = functools.cache(Legality(catalog).accepted_by)
    groups: dict[tuple[str, Assembler, str, str], list[str]] = {}
    for batch in batches:
        refused = questions.by_line(batch.refusals)
        spoken = Version(batch.assembler.ptx)
        for number, line in enumerate(batch.lines.texts):
            if not any(has_opcode(entry, ptx.split(line)[0]) for entry in catalog.database.spec.instructions):
                continue
            first = accepted_by(line).get(batch.target)
            if (first is not None and first <= spoken) == (number in refused):
                said = refused.get(number, errata.ACCEPTED)
                explanation = explained.of_line(line, batch.target, batch.assembler, said)
                groups.setdefault((line, batch.assembler, said, explanation), []).append(batch.target)
    return [
        Disagreement(line, assembler.cuda, assembler.ptx, tuple(targets), said, explanation)
        for (line, assembler, said, explanation), targets in sorted(groups.items(), key=lambda pair: (pair[0][0], pair[0][1].cuda))
    ]


class Explanations:
    """Explains the lines on which assemblers and database differ.

    An entry of the errata explains a line if it has a sighting of the same change in the same family, on the same target, by a range of
    releases that includes the assembler, with the same answer: accepted, or refused in the same words.

    Args:
        catalog: with the rules and the errata.
        space: its negative space.
    """

    def __init__(self, catalog: Catalog, space: Mapping[str, Neighbours]) -> None:
        self._rules = legality.Legality(catalog)
        self._changes = {line: (family, change) for family, neighbours in space.items() for line, change in neighbours.items()}
        self._known: dict[tuple[object, str, str], list[Sighting]] = {}
        for seen in evidence.of(catalog.database).sightings:
            if seen.database == ("refuses" if seen.answer == errata.ACCEPTED else "accepts") and not seen.compiled_for:
                line = errata.line(seen)
                for target in seen.targets:
                    self._known.setdefault((self._changes.get(line, line), target, seen.answer), []).append(seen)

    def of_line(self, line: str, target: str, assembler: Assembler, said: str) -> str:
        """The explanation of an assembler's answer to a line on a target in its newest version; ``""`` for none."""
        if erratum := self._of(self._changes.get(line, line), target, assembler, said):
            return erratum
        passes = errata.passes(self._rules, ptx.compact(line), target, assembler.ptx)
        return RULES if passes == (said == errata.ACCEPTED) else ""

    def of_change(self, family: str, change: str, target: str, assembler: Assembler, said: str) -> str:
        """The entry of the errata that explains a change in any line of a family; ``""`` for none."""
        return self._of((family, change), target, assembler, said)

    def _of(self, what: object, target: str, assembler: Assembler, said: str) -> str:
        for seen in self._known.get((what, target, said), ()):
            if seen.ptx in ("", assembler.ptx) and errata.answering(seen, target, [assembler]):
                return seen.erratum
        return ""
