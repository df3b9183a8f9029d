"""What the assemblers said, looked up in a report instead of asked again."""

from __future__ import annotations

import functools
from typing import Literal

from ptxmma import ptx
from ptxmma.evidence import facts
from ptxmma.instructions import Catalog
from ptxmma.requirements import version_key
from ptxmma.verify import negative
from ptxmma.verify.legality import Legality
from ptxmma.verify.report import Report

Answer = Literal["accepted", "refused", "never asked"]


class Answers:
    """The stored answers.

    Args:
        told: the report.
        catalog: the database that the report was made with: the negative space, of which the report holds only hashes, is made from
            it again.
    """

    def __init__(self, told: Report, catalog: Catalog) -> None:
        self._told = told
        self._catalog = catalog
        self._legality = Legality(catalog)
        self._asked = {entry["cuda"]: entry for entry in told["assemblers"]}
        self._accepted = {line: entry["accepted"] for entry in told["answers"] for line in entry["lines"]}
        contradictions = [*told["negative"]["explained"], *told["negative"]["disagreements"]]
        self._contradicted = {(line, target) for entry in contradictions for line in entry["lines"] for target in entry["targets"].split()}

    def answer(self, line: str, target: str, version: str, release: str) -> Answer:
        """What the assembler of a CUDA release said of a line on a target in a version.

        ``line`` is PTX, or the same without the names of its registers (:func:`ptxmma.ptx.compact`).
        """
        asked = self._asked.get(release)
        if asked is None or target not in asked["targets"] or version not in self._told["versions"]:
            return "never asked"
        if version_key(version) > version_key(asked["ptx"]):
            return "never asked"
        text = ptx.compact(line) if line.endswith(";") else line
        if text in self._accepted:
            accepted = self._accepted[text].get(release, {}).get(target, "").split()
            later = len(accepted) == 1 and version_key(version) >= version_key(accepted[0])
            return "accepted" if later or version in accepted else "refused"
        if version == asked["ptx"]:
            return self._of_neighbour(text, target, version, release)
        return "never asked"

    def _of_neighbour(self, text: str, target: str, version: str, release: str) -> Answer:
        """Of a line of the negative space the assembler said what the database said then, except where they disagreed."""
        line = ptx.expanded(text)
        family = self.neighbours.get(line)
        if family is None or self._told["negative"]["families"][family]["assemblers"].get(target) != release:
            return "never asked"
        first = self._legality.accepted_by(line).get(target)
        accepted = first is not None and version_key(first) <= version_key(version)
        return "accepted" if accepted != ((text, target) in self._contradicted) else "refused"

    @functools.cached_property
    def neighbours(self) -> dict[str, str]:
        """The lines of the negative space that were asked, with their families: those whose hash in the report fits."""
        asked = self._told["negative"]["families"]
        found = negative.neighbours(self._catalog, list(asked))
        return {line: family for family, lines in found.items() if facts.of_lines(lines) == asked[family]["sha256"] for line in lines}
