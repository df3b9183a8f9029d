"""What the checker and the assemblers said of PTX that nobody here wrote: ``spec/evidence/corpus.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ptxmma.evidence import reports
from ptxmma.evidence.reports import Entry

PATH = reports.FOLDER / "corpus.json"


class Tool(Entry, frozen=True, kw_only=True):
    """A program that wrote or judged PTX.

    Attributes:
        name: ``"CUTLASS"``, ``"ptxas"``.
        version: release, or build.
        sha256: of the binary, where it is one.
    """

    name: str
    version: str
    sha256: str = ""


class Source(Entry, frozen=True, kw_only=True):
    """The modules of one origin for one target.

    Attributes:
        name: ``"cutlass"``, ``"triton"``, ``"llvm"`` or ``"llvm-tests"``.
        target: that the modules declare.
        files: modules.
        bytes: of all of them.
        instructions: matrix instructions in them.
        distinct: of these, those that differ in more than the names of registers.
        refused: instructions that the assembler refuses as they stand.
        mutants: made of the distinct ones, each judged once.
        in_place: mutants that were also put back into their modules, among all that surrounds them there.
    """

    name: str
    target: str
    files: int
    bytes: int
    instructions: int
    distinct: int
    refused: int
    mutants: int
    in_place: int


class Change(Entry, frozen=True, kw_only=True):
    """What became of the mutants of one kind."""

    kind: str  # "modifier dropped"
    mutants: int
    refused: int  # by the assembler


class Disagreement(Entry, frozen=True, kw_only=True):
    """An instruction of which the checker says something else than the assembler.

    Attributes:
        line: the instruction, its registers named by their types, see :mod:`ptxmma.ptx.lines`.
        kind: of the change that made it; ``"unchanged"`` for one that stands so in a module.
        target, version: of the module.
        answer: the assembler's.
        said: by whichever of the two refuses.
    """

    line: str
    kind: str
    target: str
    version: str
    answer: Literal["accepted", "refused"]
    said: str


class Corpus(reports.Report, frozen=True, kw_only=True):
    """A run over a corpus.

    Attributes:
        facts: digests of what the database says, by family, see :func:`ptxmma.evidence.facts.accepted`.
        makers: what wrote the modules.
        judges: the assemblers that decided: for each target the newest that knows it.
        sources: what the modules have.
        instructions: matrix instructions in all modules.
        counted: as many the checker found.
        false_alarms: instructions that stand in a module, that the assembler takes and that the checker calls errors.
        mutants: instructions with one thing changed, with those asked on other targets and in other versions.
        changes: the same by kind.
        disagreements: instructions and mutants of which the checker and the assembler say different things.
    """

    facts: dict[str, str]
    makers: tuple[Tool, ...]
    judges: tuple[Tool, ...]
    sources: tuple[Source, ...]
    instructions: int
    counted: int
    false_alarms: int
    mutants: int
    changes: tuple[Change, ...]
    disagreements: tuple[Disagreement, ...]


def load(path: Path = PATH) -> Corpus:
    """Read a report.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no report of this version of ptxmma; the message names the path.
    """
    return reports.load(path, Corpus)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return reports.schema(Corpus, "The checker and the assemblers on PTX that nobody here wrote")
