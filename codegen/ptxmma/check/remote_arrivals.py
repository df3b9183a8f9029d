"""Arrivals on mbarriers of thread blocks that may have ended: nothing there waits for them before the end.

By such an mbarrier, readers tell that a stage of a ring is free.  What fills the ring waits before each copy, so that the arrivals of
the last rounds come when nothing waits any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.arrival_counts import is_remote
from ptxmma.ptx.blocks import opposite
from ptxmma.ptx.outline import opcodes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ptxmma.check.mbarriers import Mbarriers, Used

#: Other instructions that reach thread blocks or tell them, so that they may not end before: by addresses of the cluster, or in memory.
_OTHERS = re.compile(
    rb"(?<![\w$%.])(?:(?:ld|st|atom|red)[\w.:]*\.(?:shared::cluster|async)|mapa\.u64|atom|ld\.(?:acquire|relaxed|volatile))\b"
)
_BARRIER = {b"barrier.cluster"}


def unheard(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The arrivals in other thread blocks for which nothing waits at the end, with the waits that come too early."""
    text = barriers.function.text
    remote = [each for each in barriers.arrivals if is_remote(barriers, each)]
    if not remote or b"barrier.cluster" not in text or _OTHERS.search(text):
        return
    copies = {each.block for each in barriers.fills if b"async" in each.use.opcode}
    waits = [[wait for wait in barriers.waits if each.place is None or wait.may_be_of(each.place)] for each in remote]
    if any(each.place is None for each in remote) or not all(each and _fill(barriers, each, copies) for each in waits):
        return
    met = {barriers.block_of(match.start()): match.start() for match in opcodes_of(text, _BARRIER)}  # the last of each block
    for arrival, asked in zip(remote, waits, strict=True):
        later = _from(barriers, arrival.block, ())
        copied = any(b"multicast" in each.use.opcode and each.block in later for each in barriers.fills)
        after = later.union(*(_from(barriers, wait.block, ()) for wait in barriers.waits))
        if not copied and after.isdisjoint(met) and met.get(arrival.block, -1) < arrival.use.offset:
            line = barriers.function.position(asked[0].use.offset)[0]
            yield arrival, f"what waits in line {line} fills a stage after it; meet at the end with barrier.cluster.arrive and .wait"


def _fill(barriers: Mbarriers, waits: Collection[Used], copies: Collection[int]) -> bool:
    """Return whether a thread copies after each of some waits, before it ends."""
    return all(-1 not in _from(barriers, wait.block, copies) for wait in waits)


def _from(barriers: Mbarriers, start: int, ends: Collection[int]) -> set[int]:
    """The blocks to which threads come from one, not through some; -1: the end.  Of a warp that elects a thread, this one is followed."""
    found, waiting = set[int](), [start]
    while waiting:
        for after, predicate, _ in barriers.paths.ways[waiting.pop()]:
            if after not in found and not (predicate and barriers.paths.registers.is_elected(opposite(predicate))):
                found.add(after)
                waiting += [after] if after >= 0 and after not in ends else []
    return found
