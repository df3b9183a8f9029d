"""The evidence of each instruction, layout and erratum: ``evidence.json`` beside ``ptxmma.json``.

A witness covers the facts that the database had when the witness was run.  Evidence is outdated where one of these facts has changed since.
An instruction that no witness covers is unproven.  Neither is an error.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ptxmma.catalog.evidence.witnesses import Intrinsic, Sighting, Tool
from ptxmma.model import Database, Entry

#: Beside ``ptxmma.json``.
FILE = "evidence.json"


class Executed(Entry, frozen=True, kw_only=True):
    """The execution of an instruction on a chip.

    Attributes:
        chip: name.
        launches: with random whole numbers, against the product of the matrices.
        wrong: launches in which an element was wrong.
        machine: matrix instructions of the chip that the assembler emitted for it: ``("1 HMMA.16816.F32",)``; ``("none",)`` where it made
            ordinary instructions, such as loads or a function; empty for an instruction without matrices, which ran beside the products
            of others.
    """

    chip: str
    launches: int
    wrong: int = 0
    machine: tuple[str, ...]

    @property
    def native(self) -> bool | None:
        """True if it is one matrix instruction of the chip, and not several or ordinary ones; None without matrices."""
        return all(each.startswith("1 ") and "+" not in each for each in self.machine) if self.machine else None

    @property
    def how(self) -> str:
        """``"as one instruction"``, ``"as several"``, ``"as ordinary code"``, or, without matrices, ``"beside products"``."""
        if not self.machine:
            return "beside products"
        return "as one instruction" if self.native else "as ordinary code" if self.machine == ("none",) else "as several"


class Evidence(Entry, frozen=True, kw_only=True):
    """The evidence of one instruction.

    Attributes:
        assembled: the targets on which the assembler of a CUDA release accepts it, by release.
        executed: its executions on chips; empty where no tested chip can run it.
        peers: definitions of other projects that lay its operands out in the same way.
        differing: definitions of other projects that lay them out otherwise.
        atoms: CuTe's names of an instruction whose atoms lay nothing out.
        intrinsics: LLVM's intrinsics of it.
        stale: the answers among these that are outdated, because a fact that they cover has changed: ``("silicon",)``.
    """

    assembled: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    executed: tuple[Executed, ...] = ()
    peers: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    intrinsics: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """Its executions on chips, in words: ``"NVIDIA H200: 4 launches"``, or ``"not executed"``."""
        return _status(self.executed)


class LayoutRuns(Entry, frozen=True, kw_only=True):
    """The number of times that a chip confirmed or contradicted a layout.

    Attributes:
        chip: name.
        launches: the launches of instructions with an operand in this layout.
        wrong: launches in which an element was wrong.
        instructions: the number of such instructions.
    """

    chip: str
    launches: int
    wrong: int = 0
    instructions: int


class LayoutEvidence(Entry, frozen=True, kw_only=True):
    """The evidence of one layout.

    Attributes:
        executed: the runs on each chip; empty where no tested chip runs an instruction with it.
        agreeing: peer -> how many of its definitions lay an operand out in the same way: ``{"CuTe": 12}``.
        differing: the definitions that do not.
        stale: the answers among these that are outdated.
        origin: the only source of a layout that no chip has run: ``"the manual"`` or a project; empty where several agree.
    """

    executed: tuple[LayoutRuns, ...] = ()
    agreeing: dict[str, int] = msgspec.field(default_factory=dict)
    differing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    origin: str = ""

    @property
    def status(self) -> str:
        """Its executions on chips, in words: ``"NVIDIA H200: 4 launches"``, or ``"not executed"``."""
        return _status(self.executed)


def _status(executed: Iterable[Executed | LayoutRuns]) -> str:
    texts = [f"{ran.chip}: {ran.launches} launches" + (f", {ran.wrong} wrong" if ran.wrong else "") for ran in executed]
    return "; ".join(texts) or "not executed"


class Row(Entry, frozen=True, kw_only=True):
    """One instruction; ``assembled`` is an index into :attr:`Summary.answers`."""

    assembled: int | None = None  # None: no assembler was run on it
    executed: tuple[Executed, ...] = ()
    peers: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


class Summary(Entry, frozen=True, kw_only=True, dict=True):
    """The evidence of all instructions, layouts and errata."""

    generated: str = ""  # the generator that made the file, and its input
    tools: tuple[Tool, ...]
    answers: tuple[dict[str, tuple[str, ...]], ...]  # CUDA release -> targets
    by_layout: dict[str, LayoutEvidence]  # the key is the layout's name; layouts without evidence are left out
    instructions: dict[str, Row]
    intrinsics: tuple[Intrinsic, ...] = ()
    sightings: tuple[Sighting, ...] = ()

    @property
    def layouts(self) -> dict[str, int]:
        """The launches of each layout that a chip has run."""
        return {name: sum(each.launches for each in proof.executed) for name, proof in self.by_layout.items() if proof.executed}

    def of_layout(self, name: str) -> LayoutEvidence:
        """The evidence for a layout; empty where there is none."""
        return self.by_layout.get(name, LayoutEvidence())

    def of_erratum(self, erratum: str) -> tuple[Sighting, ...]:
        """The questions to tools about an erratum, by its id, and their answers; empty where there is none."""
        return tuple(sighting for sighting in self.sightings if sighting.erratum == erratum)

    def of(self, canonical: str) -> Evidence:
        """The evidence for an instruction; empty where there is none."""
        row = self.instructions.get(canonical, Row())
        rest: dict[str, Any] = {name: getattr(row, name) for name in ("executed", "peers", "differing", "atoms", "stale")}
        rest["intrinsics"] = tuple(self._intrinsics.get(canonical, ()))
        return Evidence(assembled=self.answers[row.assembled] if row.assembled is not None else {}, **rest)

    @functools.cached_property
    def _intrinsics(self) -> Mapping[str, list[str]]:
        """LLVM's intrinsics of each instruction."""
        named: dict[str, list[str]] = defaultdict(list)
        for intrinsic in self.intrinsics:
            for canonical in intrinsic.instructions:
                named[canonical].append(intrinsic.name)
        return named


NOTHING = Summary(tools=(), answers=(), by_layout={}, instructions={})


def of(database: Database) -> Summary:
    """The summary of a database: from the file beside it or from its ``spec/evidence/``; empty without either.

    Raises:
        ValueError: the file beside it is not a summary.
    """
    summary: Any = database.memo.get("evidence")
    if summary is None:
        path = database.memo.get("path")
        summary = _load(Path(path).with_name(FILE)) if path else NOTHING
    elif callable(summary):  # the generator computes it on first use
        summary = summary()
    database.memo["evidence"] = summary
    return cast(Summary, summary)


def _load(path: Path) -> Summary:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except FileNotFoundError:
        return NOTHING
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: no evidence of this version of ptxmma: {error}") from None
