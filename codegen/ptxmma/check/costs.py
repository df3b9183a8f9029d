"""What is right but costs time: advice about the loops of asynchronous instructions, and about instructions that a chip emulates."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxmma.catalog.target_names import target_named
from ptxmma.check.remarks import Remark
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.check.async_protocol import Protocol
    from ptxmma.ptx.flow_events import Issue
    from ptxmma.ptx.outline import Outline

#: An arrival that orders all memory of the cluster: ptxas 12.9 and 13.5 make MEMBAR.ALL.GPU and ERRBAR of it, and neither without it.
_RELEASE = re.compile(rb"mbarrier\.arrive(?:\.expect_tx)?\.release\.cluster\b")


def of_loops(outline: Outline, protocol: Protocol) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the innermost loops that issue asynchronous instructions, each with the opcode that it is about."""
    code, opcode = outline.text, protocol.opcodes.fence
    fence = opcode.decode()
    for start, stop, first in _innermost(outline):
        if code.find(opcode, start, stop) < 0 and code.find(opcode, 0, start) >= 0:
            text = f"the loop repeats it, and {fence} is before the loop: ptxas may add one in each round (C7519); write it inside"
            yield Remark(Token(first.opcode, first.offset), "note", "fence-outside-loop", text), first.opcode
        if release := _RELEASE.search(code, start, stop):
            text = "it waits for all memory accesses of the thread: leave out .release.cluster if it says that operands were read"
            yield Remark(Token(release[0], release.start()), "note", "release-in-loop", text), release[0]


def _innermost(outline: Outline) -> list[tuple[int, int, Issue]]:
    """The smallest loops, from their label to the branch back, that issue asynchronous instructions, with the first of these."""
    issues = outline.issues
    labels: dict[bytes, list[int]] = {}
    for name, place in outline.labels:
        labels.setdefault(name, []).append(place)
    offsets = [issue.offset for issue in issues]
    loops: list[tuple[int, int, Issue]] = []
    for name, stop in outline.branches:
        places = labels.get(name, [])
        before = bisect.bisect_left(places, stop)
        number = bisect.bisect_left(offsets, places[before - 1]) if before else len(issues)
        inside = number < len(issues) and offsets[number] < stop
        if inside and not any(places[before - 1] <= other for other, _, _ in loops):
            loops.append((places[before - 1], stop, issues[number]))
    return loops


class Emulation:
    """Which instructions a chip executes as several."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._spec = catalog.database.spec
        self.remark = functools.lru_cache(maxsize=1 << 10)(self._remark)

    def _remark(self, instruction: Instruction, target: str) -> str:
        """What to say of an instruction on a target; ``""`` if nothing is known, or the chip has it."""
        if not target or self._loads_itself(instruction):
            return ""
        for run in instruction.evidence.executed:
            if run.native is False and self._same(run.chip, target):
                how = "ordinary code" if run.machine == ("none",) else " and ".join(run.machine)
                return f"{run.chip} executes it as {how}; {self._instead(instruction, run.chip)}"
        return ""

    def _loads_itself(self, instruction: Instruction) -> bool:
        """Whether its family loads its fragments itself: its shapes are several instructions on every chip."""
        family = instruction.family
        return any(entry.operation == "load" for entry in self._spec.instructions if entry.family == family)

    def _same(self, chip: str, target: str) -> bool:
        """Whether a target is the one of a chip, with or without its own features."""
        try:
            return target_named(self._spec, chip).rstrip("af") == target.rstrip("af")
        except ValueError:
            return False

    def _instead(self, instruction: Instruction, chip: str) -> str:
        """What multiplies the same types on the chip."""
        types = {key: value for key, value in instruction.qualifiers.items() if key in ("atype", "btype", "dtype")}
        for other in self._catalog.all():
            runs = (run.native for run in other.evidence.executed if run.chip == chip)
            if other.sparse == instruction.sparse and types.items() <= other.qualifiers.items() and any(runs):
                return f"{other.canonical} is one instruction there"
        return "no other instruction multiplies these types there"
