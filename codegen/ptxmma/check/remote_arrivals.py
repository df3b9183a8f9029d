"""Arrivals on mbarriers of thread blocks that may have ended: nothing there waits for them before the end.

By such an mbarrier, readers tell that a stage of a ring is free.  What fills the ring waits before each copy, so that the arrivals of
the last rounds come when nothing waits any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.arrival_counts import is_remote
from ptxmma.check.stages import comes_again
from ptxmma.ptx.blocks import opposite
from ptxmma.ptx.graphs import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Set

    from ptxmma.check.mbarriers import Mbarriers, Used

#: Other instructions that reach thread blocks or tell them, so that they may not end before: by addresses of the cluster, or in memory.
_OTHERS = re.compile(
    rb"(?<![\w$%.])(?:(?:ld|st|atom|red)[\w.:]*\.(?:shared::cluster|async)|mapa\.u64|atom|ld\.(?:acquire|relaxed|volatile))\b"
)
#: A copy to several thread blocks, the bits of its mask, and what pairs of them share.
_SENT, _MOST_BLOCKS, _PAIR = b"multicast::cluster", 16, b"cta_group::2"
_BARRIER = re.compile(rb"barrier\.cluster\.")


def unheard(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The arrivals in other thread blocks for which nothing waits at the end, with the waits that come too early."""
    text = barriers.kernel.text
    remote = [each for each in barriers.arrivals if is_remote(barriers, each)] if b"barrier.cluster" in text else []
    met = {barriers.kernel.block_of(match.start()): match.start() for match in _BARRIER.finditer(text)} if remote else {}
    ends = any(met.get(each.block, -1) > each.use.offset for each in remote)
    if not remote or ends or not _after(barriers, {each.block for each in (*remote, *barriers.waits)}).isdisjoint(met):
        return
    copies = {each.block for each in barriers.fills if b"async" in each.use.opcode}
    waits = [barriers.waits_on(each.place) for each in remote]
    if any(each.place is None for each in remote) or not all(each and _fill(barriers, each, copies) for each in waits):
        return
    if _OTHERS.search(text):
        return
    sent = {each.block for each in barriers.fills if b"multicast" in each.use.opcode}
    for arrival, asked in zip(remote, waits, strict=True):
        if not _fill(barriers, [arrival], sent):  # a later copy to the other thread block may be what keeps it
            line = barriers.kernel.function.position(asked[0].use.offset)[0]
            yield arrival, f"what waits in line {line} fills a stage after it; meet at the end with barrier.cluster.arrive and .wait"


def unanswered(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The copies to several thread blocks that a loop repeats though no thread block can hear that the others have read."""
    kernel = barriers.kernel
    sent = [each for each in barriers.fills if _SENT in each.use.opcode]
    if not sent or _OTHERS.search(kernel.text) or _PAIR in kernel.text:
        return
    if any(each.place is None or is_remote(barriers, each) for each in barriers.arrivals):
        return
    if any(kernel.block_of(match.start()) in turn for match in _BARRIER.finditer(kernel.text) for turn in barriers.rounds):
        return
    for copy in sent:
        mask = kernel.bits.of(copy.use.operand).within(_MOST_BLOCKS)
        again = (comes_again(barriers, copy, turn) for turn in barriers.rounds if copy.block in turn)
        if mask.value.bit_count() > 1 and any(again):
            yield copy, "all arrivals are on mbarriers of the own thread block; let readers arrive on those of each that copies, by mapa"


def _fill(barriers: Mbarriers, before: Collection[Used], copies: Collection[int]) -> bool:
    """Return whether a thread copies after each of some instructions, before it ends: of a warp that elects a thread, this one."""
    return -1 not in _after(barriers, {each.block for each in before}, copies, barriers.kernel.registers.is_elected)


def _after(
    barriers: Mbarriers, begins: Iterable[int], ends: Collection[int] = (), is_elected: Callable[[bytes], bool] = lambda _: False
) -> Set[int]:
    """The blocks to which threads come from some, and not through others; -1: the end."""

    def following(number: int) -> Iterator[int]:
        ways = barriers.kernel.ways[number] if number >= 0 else ()
        return (way.after for way in ways if not (way.predicate and is_elected(opposite(way.predicate))))

    first = (after for number in begins for after in following(number))
    return reachable(first, lambda number: following(number) if number not in ends else ()).keys()
