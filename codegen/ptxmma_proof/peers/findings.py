"""The findings of one comparison with other projects, judged: in words, and as lines of evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line, Tally, Tool
from ptxmma_proof.peers.compared import Difference

#: Subjects of a difference that are printed.
_FEW = 3


class Agreed(Protocol):
    """The answers on which a peer and the database agree, for the proof to compare without the peer."""

    def write(self, folder: Path) -> None:
        """Write the files of a folder.

        Raises:
            OSError: one cannot be written.
        """


class Findings(NamedTuple):
    """The findings of a comparison.

    Attributes:
        tools: who was asked.
        rows: the number of definitions of each peer that were compared.
        differences: each between a definition of a peer and the database.
        lines: lines of evidence about what agrees.
        totals: further numbers, for the pages.
        agreed: the answers of peers on which they and the database agree.
    """

    tools: tuple[Tool, ...]
    rows: Mapping[str, int]
    differences: list[Difference]
    lines: Sequence[Line] = ()
    totals: Mapping[str, int] = MappingProxyType({})
    agreed: Agreed | None = None


class Judged(NamedTuple):
    """Findings with a verdict on every difference; differences that are alike are one line."""

    findings: Findings
    differences: list[witnesses.Difference]

    @property
    def agrees(self) -> bool:
        """True if every difference has a verdict."""
        return all(each.right for each in self.differences)

    @property
    def tallies(self) -> dict[str, Tally]:
        """The number of definitions of each peer that were compared, that differ, and whose difference is settled."""
        differing, unsettled = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for each in self.differences:
            differing[each.peer].update(each.subjects)
            if each.right in ("", "open"):
                unsettled[each.peer].update(each.subjects)
        return {
            peer: Tally(compared=rows, differing=len(differing[peer]), settled=len(differing[peer] - unsettled[peer]))
            for peer, rows in self.findings.rows.items()
        }

    def words(self) -> Iterator[str]:
        """The comparison in words."""
        for each in self.differences:
            more = f" and {len(each.subjects) - _FEW} more" if len(each.subjects) > _FEW else ""
            yield f"{each.peer}, {'; '.join(each.subjects[:_FEW])}{more}, {each.operand}: {each.theirs}; ours: {each.ours}"
            yield f"    right: {each.right}. {each.why}" if each.right else "    NO VERDICT"
        for peer, tally in self.tallies.items():
            yield f"{peer}: {tally.compared:,} compared, {tally.differing:,} differ, {tally.settled:,} of them settled"

    def record(self, date: str, spec: str) -> list[Line]:
        """The lines of a file in ``spec/evidence/``."""
        found = self.findings
        run = witnesses.Run(date=date, spec=spec, tools=found.tools, totals=dict(found.totals), peers=self.tallies)
        return [run, *found.lines, *self.differences]
