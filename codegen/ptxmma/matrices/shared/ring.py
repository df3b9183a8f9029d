"""Rings of stages in shared memory: the stage of each round, and the parities that its waits name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ptxmma.arguments import integer
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.matrices.shared.readable_types import capacity
from ptxmma.model import formula

#: Bytes of the two mbarriers of a stage.
_BARRIERS = 2 * 8


class Round(NamedTuple):
    """One use of a ring: a stage is filled, then read.

    Attributes:
        stage: the stage, from 0 on.
        phase: the phase of its mbarriers, from 0 on: how often the stage was used before.
        empty: the parity for which the thread that fills it waits at ``empty``; in phase 0 it passes at once.
        full: the parity for which the threads that read it wait at ``full``.
    """

    stage: int
    phase: int
    empty: int
    full: int


class Ring:
    """Stages of shared memory that are filled and read in turn, each with two mbarriers.

    ``full`` completes a phase when the stage is filled, ``empty`` when it is read.  A wait by parity returns if the phase with that parity
    is complete, the current one or the one before it, and the phase before the first counts as complete (PTX ISA 9.7.13.15.16).

    >>> Ring(4).round(9)
    Round(stage=1, phase=2, empty=1, full=0)

    Attributes:
        stages: their number, 1 or more; their mbarriers fit the shared memory of a thread block.
        transaction_bytes: bytes that ``full`` counts in each phase.
        stage_bytes: bytes of shared memory of a stage: those that are copied, and the mbarriers.
    """

    def __init__(self, stages: int, copies: Iterable[int] = (), *, database: DatabaseLike = None) -> None:
        """A ring of stages that several copies fill, each with its ``transaction_bytes``.

        Raises:
            TypeError: a number that is not an integer.
            ValueError: no stage, more than shared memory has room for, a copy without bytes, more bytes than a phase counts, or a database
                without the parity of an mbarrier.
        """
        self.stages = integer("stages", stages)
        if self.stages < 1:
            raise ValueError(f"stages = {stages}: a ring has 1 stage or more")
        spec = catalog(database).database.spec
        most = max((entry.block for entry in spec.capacities), default=0)
        if most and self.stages * _BARRIERS > most:
            room = f"a thread block has at most {most} bytes of shared memory, and the mbarriers of a stage take {_BARRIERS}"
            raise ValueError(f"stages = {stages}: {room}; the maximum is {most // _BARRIERS}")
        sizes = [integer("copies", number) for number in copies]
        if wrong := [number for number in sizes if number < 1]:
            raise ValueError(f"copies = {wrong[0]}: a copy counts 1 byte or more")
        self.transaction_bytes = sum(sizes)
        self.stage_bytes = self.transaction_bytes + _BARRIERS
        terms = [term for protocol in spec.protocols for term in protocol.definitions]
        formulas = {term.name: term.formula for term in terms}
        if "parity" not in formulas:
            raise ValueError("the database says nothing about the parity of an mbarrier")
        self._parity = formula.parse(formulas["parity"])
        counted = formulas.get("transaction count", "")
        if counted and not formula.evaluate(formula.parse(counted), {"bytes": self.transaction_bytes}):
            raise ValueError(f"copies of {self.transaction_bytes} bytes: an mbarrier cannot count them in a phase: {counted}")

    @classmethod
    def fitting(cls, target: str, copies: Iterable[int], reserved: int = 0, *, database: DatabaseLike = None) -> Ring:
        """The ring of as many stages as a thread block has shared memory for.

        Args:
            target: any name of a target: ``"sm_90a"``, ``"H100"``.
            copies: bytes of shared memory that each copy into a stage fills.
            reserved: bytes of shared memory for other data, such as a tile of the epilogue; and for alignment.
            database: another than the packaged one.

        Raises:
            TypeError: a number that is not an integer.
            ValueError: an unknown target, one whose shared memory no source gives, fewer bytes than 0, or no room for a stage.

        >>> Ring.fitting("H100", (16384, 22528), 32768).stages
        5
        """
        sizes, room = list(copies), capacity(target, database=database).block
        if integer("reserved", reserved) < 0:
            raise ValueError(f"reserved = {reserved}: 0 bytes or more")
        needed = cls(1, sizes, database=database).stage_bytes
        if needed + reserved > room:
            raise ValueError(
                f"no stage fits: it takes {needed} bytes with its mbarriers, {reserved} are reserved, "
                f"and a thread block of {target} has {room} bytes of shared memory"
            )
        return cls((room - reserved) // needed, sizes, database=database)

    def round(self, number: int) -> Round:
        """A use of the ring, counted from 0 on over all stages.

        Raises:
            ValueError: a negative number.
        """
        if integer("number", number) < 0:
            raise ValueError(f"number = {number}: rounds count from 0 on")
        phase, stage = divmod(number, self.stages)
        return Round(stage, phase, self._parity_of(phase - 1), self._parity_of(phase))

    def _parity_of(self, phase: int) -> int:
        parity: Any = formula.evaluate(self._parity, {"phase": phase})
        return int(parity)
