"""The answers of assemblers and checker to a corpus: for each line, and in total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Line
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import sweep
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.corpus import extraction, makers

#: The kinds of unchanged instructions: on their own target, and on others.
UNCHANGED = "unchanged"
ELSEWHERE = "other target or version"
#: The end of the checker's errors about operand lists.
_OF_LISTS = "[list]"


class CorpusFile(NamedTuple):
    """A module of the corpus."""

    source: str
    path: Path
    text: str
    module: extraction.Module


class Asked(NamedTuple):
    """A target and a version, the assembler that decides, and lines with the kind of change of each."""

    assembler: Assembler
    target: str
    version: str
    source: str
    kinds: Mapping[str, str]


class Verdict(NamedTuple):
    """The answers of assembler and checker to one line."""

    asked: Asked
    line: str
    refused: str | None  # the assembler's message; None if it accepts
    error: str | None  # the checker's error; None if it accepts

    @property
    def agrees(self) -> bool:
        """True if both accept the line or both refuse it.

        An operand list that the manual does not allow may be an error of the checker alone.
        """
        if self.refused is None and self.error is not None:
            return self.error.endswith(_OF_LISTS)
        return self.refused is None or self.error is not None


class Outcome(NamedTuple):
    """The outcome for a corpus."""

    modules: list[CorpusFile]
    distinct: int  # instructions that differ in more than register names, on each module's target and version
    counted: int  # instructions that the checker found
    refused: int  # unchanged instructions that the assembler refuses
    false_alarms: int  # unchanged instructions that the assembler accepts and the checker does not
    mutants: int  # instructions with one change, and those asked on other targets and in other versions
    in_place: int  # mutants that were also put back into their modules
    disagreements: list[Verdict]
    judges: list[Assembler]

    @property
    def instructions(self) -> int:
        """Matrix instructions in all modules."""
        return sum(len(file.module.instructions) for file in self.modules)

    @property
    def agrees(self) -> bool:
        """True if the checker and the assemblers agree on everything."""
        return not self.disagreements and self.counted == self.instructions

    def words(self) -> Iterator[str]:
        """The run in words."""
        for verdict in self.disagreements:
            asked = verdict.asked
            answer = "accepted" if verdict.refused is None else "refused"
            kind = asked.kinds.get(verdict.line, UNCHANGED)
            yield f"{asked.target}, PTX ISA {asked.version}, {kind}: {answer} by ptxas: {verdict.line} ({verdict.refused or verdict.error})"
        yield (
            f"{len(self.modules)} modules, {self.instructions} instructions, {self.counted} found, {self.false_alarms} false alarms; "
            f"{self.mutants} mutants, {self.in_place} in place; {len(self.disagreements)} disagreements"
        )

    def record(self, catalog: Catalog, folder: Path, date: str) -> list[Line]:
        """The run as lines of ``spec/evidence/corpus.jsonl``."""
        tools = [*makers.recorded(folder, date), *(sweep.tool(each, date) for each in self.judges)]
        totals = {
            "modules": len(self.modules),
            "bytes": sum(len(file.text.encode()) for file in self.modules),
            "instructions": self.instructions,
            "counted": self.counted,
            "distinct": self.distinct,
            "refused": self.refused,
            "false_alarms": self.false_alarms,
            "mutants": self.mutants,
            "in_place": self.in_place,
            "disagreements": len(self.disagreements),
        }
        return [witnesses.Run(date=date, spec=catalog.database.spec.version, tools=tuple(tools), totals=totals)]
