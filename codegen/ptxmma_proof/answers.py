"""What the assemblers said, looked up in a report instead of asked again."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.requirements import version_key
from ptxmma.evidence import facts
from ptxmma.evidence.assembler import Assembler, unpacked
from ptxmma.ptx import lines as ptx
from ptxmma_proof import negative

Answer = Literal["accepted", "refused", "never asked"]


class Verdict(NamedTuple):
    """What the assembler of a CUDA release said of a neighbour on a target, in its newest version."""

    target: str
    release: str
    version: str
    accepted: bool


class Answers:
    """The stored answers, and nothing else: what was never asked has none.

    Args:
        told: the report.
        catalog: the database that it was made with.  Of the negative space the report holds the answers in the order of its lines, and
            a hash of these: they are made from the catalog again, and a family whose lines have another hash was never asked.
    """

    def __init__(self, told: Assembler, catalog: Catalog) -> None:
        self._told = told
        self._catalog = catalog
        self._assemblers = {entry.cuda: entry for entry in told.assemblers}
        self._instructions = {line: entry.accepted for entry in told.answers for line in entry.lines}

    def answer(self, line: str, target: str, version: str, release: str) -> Answer:
        """What the assembler of a CUDA release said of a line on a target in a version.

        ``line`` is PTX, or the same without the names of its registers (:func:`ptxmma.ptx.lines.compact`).
        """
        asked = self._assemblers.get(release)
        if asked is None or target not in asked.targets or version not in self._told.versions:
            return "never asked"
        if version_key(version) > version_key(asked.ptx):
            return "never asked"
        if (accepted := self.of_instruction(line)) is not None:
            versions = accepted.get(release, {}).get(target, "").split()
            later = len(versions) == 1 and version_key(version) >= version_key(versions[0])
            return "accepted" if later or version in versions else "refused"
        for verdict in self.of_neighbour(line):
            if (verdict.target, verdict.release, verdict.version) == (target, release, version):
                return "accepted" if verdict.accepted else "refused"
        return "never asked"

    def of_instruction(self, line: str) -> Mapping[str, Mapping[str, str]] | None:
        """CUDA release -> target -> first version, as :class:`ptxmma.evidence.assembler.Alike` has it; None for a line that is none."""
        return self._instructions.get(ptx.compact(line) if line.endswith(";") else line)

    def of_neighbour(self, line: str) -> list[Verdict]:
        """Everything that was said of a line of the negative space; nothing for a line that nobody was asked about."""
        family, number = self._places.get(line if line.endswith(";") else ptx.expanded(line), ("", 0))
        return [
            Verdict(target, release, self._assemblers[release].ptx, accepted[number])
            for target, release, accepted in self._spaces.get(family, ())
        ]

    @functools.cached_property
    def _spaces(self) -> dict[str, list[tuple[str, str, list[bool]]]]:
        """Family -> target, CUDA release and whether each of the lines is accepted."""
        return {
            space.family: [(bits.target, bits.cuda, unpacked(bits.accepted, space.lines)) for bits in space.answers]
            for space in self._told.negative
        }

    @functools.cached_property
    def asked(self) -> dict[str, negative.Neighbours]:
        """The negative space that was asked, by family: those families whose lines still have the hash that the report has."""
        hashes = {space.family: space.sha256 for space in self._told.negative}
        made = negative.neighbours(self._catalog)
        return {family: lines for family, lines in made.items() if hashes.get(family) == facts.of_lines(lines)}

    @functools.cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        """The family of each line that was asked, and its number there."""
        return {line: (family, number) for family, lines in self.asked.items() for number, line in enumerate(lines)}
