"""Advice on correct but slow code: loops of asynchronous instructions, and instructions that a chip emulates."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.check.flow import Protocol
    from ptxmma.ptx.flow_events import Issue
    from ptxmma.ptx.outline import Outline

_FP8 = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"
)
_NATIVE = f"{examples.ISSUED.replace('k16.f32.f16.f16', 'k32.f32.e4m3.e4m3').replace(', 0, 0;', ';')}\n{examples.WAIT}"
_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];"


def _loop(*lines: str) -> str:
    return "\n".join([".reg .pred %p;", "setp.ne.b32 %p, %r1, 0;", *lines, "@%p bra loop;"])


RULES: Mapping[str, Rule] = {
    "emulated": Rule(
        "The target has the instruction.",
        "Some targets accept instructions that they do not have, and the assembler makes several of each. On sm_90, FP8 mma runs as "
        "f16, and 4-bit mma as 8-bit.",
        "Write the instruction that the message names, or convert to a type that the target has.",
        _FP8,
        _NATIVE,
    ),
    "fence-outside-loop": Rule(
        "A loop that issues wgmma.mma_async has its wgmma.fence inside.",
        "The registers of one round are those of the next. Some assemblers see an access between the two and add a fence themselves: "
        "ptxas 12.9 says so with C7519.",
        "Write wgmma.fence.sync.aligned before the first wgmma.mma_async of each round. It costs next to nothing.",
        _loop(examples.FENCE, "loop:", examples.WGMMA, examples.COMMIT, examples.WAIT),
        _loop("loop:", examples.FENCE, examples.WGMMA, examples.COMMIT, examples.WAIT),
    ),
    "release-in-loop": Rule(
        "An arrival in a loop of wgmma.mma_async does not release the whole cluster.",
        "Of .release.cluster, ptxas makes MEMBAR.ALL.GPU, which waits for every memory access of the thread. In a matrix product that may "
        "cost a quarter of the time. An arrival that says that wgmma has read its operands has no stores to order.",
        "Leave out .release.cluster: mbarrier.arrive.shared::cluster.b64.",
        _loop("loop:", examples.FENCE, examples.WGMMA, examples.COMMIT, examples.WAIT, _ARRIVE),
        _loop("loop:", examples.FENCE, examples.WGMMA, examples.COMMIT, examples.WAIT, _ARRIVE.replace(".release.cluster", "")),
    ),
}

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
    """The instructions that a chip executes as several."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._spec = catalog.database.spec
        self.remark = functools.lru_cache(maxsize=1 << 10)(self._remark)

    def _remark(self, instruction: Instruction, target: str) -> str:
        """The remark on an instruction for a target; ``""`` if nothing is known, or the chip has the instruction."""
        if not target or self._loads_itself(instruction):
            return ""
        for run in instruction.evidence.executed:
            if run.native is False and self._same(run.chip, target):
                how = "ordinary code" if run.machine == ("none",) else " and ".join(run.machine)
                return f"{run.chip} executes it as {how}; {self._instead(instruction, run.chip)}"
        return ""

    def _loads_itself(self, instruction: Instruction) -> bool:
        """Return whether its family loads its fragments itself: its shapes are several instructions on every chip."""
        family = instruction.family
        return any(entry.operation == "load" for entry in self._spec.instructions if entry.family == family)

    def _same(self, chip: str, target: str) -> bool:
        """Return whether a target is the one of a chip, with or without its own features."""
        try:
            return target_named(self._spec, chip).rstrip("af") == target.rstrip("af")
        except ValueError:
            return False

    def _instead(self, instruction: Instruction, chip: str) -> str:
        """An instruction that multiplies the same types on the chip."""
        types = {key: value for key, value in instruction.qualifiers.items() if key in ("atype", "btype", "dtype")}
        for other in self._catalog.all():
            runs = (run.native for run in other.evidence.executed if run.chip == chip)
            if other.sparse == instruction.sparse and types.items() <= other.qualifiers.items() and any(runs):
                return f"{other.canonical} is one instruction there"
        return "no other instruction multiplies these types there"
