"""Verifies the sightings of the errata: asks the pinned assemblers and the database again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import joblib

from ptxmma.catalog import evidence
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog
from ptxmma.check import legality
from ptxmma.model import Version
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import of_compact
from ptxmma_proof import bodies
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.line_legality import Legality
from ptxmma_proof.questions import Progress, quiet

#: The answer of a tool that accepts.
ACCEPTED = "accepted"
_RANGE = re.compile(r"ptxas (\d+\.\d+)(?: to (\d+\.\d+))?")


class Difference(NamedTuple):
    """A sighting that an assembler does not confirm on a target."""

    seen: Sighting
    target: str
    cuda: str
    answer: str

    def __str__(self) -> str:
        asked = self.seen.asked or "a module without instructions"
        return f"{self.seen.erratum}: CUDA {self.cuda} on {self.target} says {self.answer!r}, not {self.seen.answer!r}: {asked}"


def differences(
    catalog: Catalog, assemblers: Sequence[Assembler], jobs: int = -1, progress: Progress = quiet
) -> tuple[int, list[Difference]]:
    """Ask the assemblers about every sighting of the errata again, except whole examples of the manual.

    Returns:
        The number of answers, and the answers that differ.

    Raises:
        AssemblerError: an assembler failed without a message.
    """
    questions = [
        (seen, target, assembler)
        for seen in evidence.of(catalog.database).sightings
        if not seen.example
        for target in seen.targets
        for assembler in answering(seen, target, assemblers)
    ]
    calls = (joblib.delayed(ask)(*question) for question in questions)
    differing = []
    # Threads: each waits for a process of its own.
    answers = joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(calls)
    for number, ((seen, target, assembler), answer) in enumerate(zip(questions, answers, strict=True), 1):
        if answer != seen.answer:
            differing.append(Difference(seen, target, assembler.cuda, answer))
        progress(number, len(questions))
    return len(questions), differing


def answering(seen: Sighting, target: str, assemblers: Iterable[Assembler]) -> list[Assembler]:
    """The assemblers that a sighting on a target is about, oldest first; none if it is about a chip."""
    match = _RANGE.fullmatch(seen.tool)
    if match is None:
        return []
    first, last = Version(match[1]), Version(match[2] or match[1])
    chosen = [one for one in assemblers if first <= Version(one.cuda) <= last and _asks(seen, target, one)]
    return sorted(chosen, key=lambda one: Version(one.cuda))


def _asks(seen: Sighting, target: str, assembler: Assembler) -> bool:
    speaks = not seen.ptx or Version(seen.ptx) <= assembler.ptx
    return speaks and (seen.compiled_for or target) in assembler.targets


def line(seen: Sighting) -> str:
    """The line of a sighting as PTX; empty for a module without instructions."""
    return seen.asked if not seen.asked or seen.asked.endswith(";") else ptx.expanded(seen.asked)


def ask(seen: Sighting, target: str, assembler: Assembler) -> str:
    """An assembler's answer on a target: :data:`ACCEPTED`, or its first error.

    Raises:
        AssemblerError: the assembler failed without a message.
    """
    done = bodies.assemble(assembler, target, (), [line(seen)], seen.ptx, seen.compiled_for)
    return ACCEPTED if done.accepted else done.said[0].text


def misjudged(catalog: Catalog, sightings: Iterable[Sighting]) -> Iterator[tuple[Sighting, str]]:
    """The sightings that ``ptxmma check`` judges otherwise, with the target, each of the last release that knows the target."""
    checked = legality.Legality(catalog)
    ranges = {seen: _RANGE.fullmatch(seen.tool) for seen in sightings if seen.database}
    last = {seen: match[2] or match[1] for seen, match in ranges.items() if match}
    newest = max(last.values(), key=Version, default="")
    until = {target.name: target.until or newest for target in catalog.database.spec.targets}
    for seen, release in last.items():
        for target in seen.targets:
            if Version(release) >= until[target] and passes(checked, seen.asked, target, seen.ptx) != (seen.answer == ACCEPTED):
                yield seen, target


def passes(checked: legality.Legality, asked: str, target: str, version: str) -> bool:
    """Return whether ``ptxmma check``, which applies the rules of the errata, accepts an instruction in compact form."""
    spelling, *operands = asked.split(" ")
    known = checked.find(spelling, target)
    if known is None or not legality.accepted(known[0], target, version):
        return False
    return checked.accepts(known[0], list(map(of_compact, operands)), target, version)


def database(lines: Legality, seen: Sighting, target: str, version: str) -> str:
    """The verdict of the database on the instruction in a version, ``"accepts"`` or ``"refuses"``; empty without an instruction."""
    if not seen.asked or seen.asked.endswith(";"):
        return ""
    first = lines.accepted_by(line(seen)).get(target)
    return "accepts" if first is not None and first <= version else "refuses"
