"""Waits by which a thread cannot hear that other threads have read their last results from tensor memory.

Who has read tells others by an arrival or a barrier, and these tell others again.  A thread that multiplies waits for the readers of an
earlier result before it writes the next one: as that is read, too, such a wait comes before the last reads.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.kernels import threads_at
from ptxmma.ptx import thread_values
from ptxmma.ptx.blocks import opposite
from ptxmma.ptx.graphs import reachable, spread
from ptxmma.ptx.outline import opcodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from ptxmma.check.mbarriers import Mbarriers
    from ptxmma.ptx.addresses import Place

#: Instructions in the order of others that tell no thread.
_TELLS_NOBODY = (b"cp.async.bulk.wait_group", b"griddepcontrol")


class _Sign(NamedTuple):
    """An instruction by which threads tell others, or hear from them.

    Attributes:
        offset: its place.
        place: the mbarrier that it names; None if its address is not followed.
        name: the barrier of the thread block that it names; empty where it may be any, None for an mbarrier.
    """

    offset: int
    place: Place | None
    name: bytes | None = None

    def may_reach(self, other: _Sign) -> bool:
        """Return whether one thread may hear by the other sign what another tells by this one."""
        if self.name is None or other.name is None:
            return self.name == other.name and (self.place is None or other.place is None or self.place.meets(other.place))
        return not (self.name and other.name) or self.name == other.name


def silent_waits(barriers: Mbarriers) -> frozenset[int]:
    """The places of waits for mbarriers that say nothing of the last reads of others; none where one warp reads alone."""
    kernel, pairing = barriers.kernel, barriers.pairing
    reading = [each.offset for each in barriers.reached(pairing.reads)]
    readers = functools.reduce(int.__or__, (threads_at(kernel.executed, offset) for offset in reading), 0)
    if len(thread_values.warps_of(readers)) < 2:
        return frozenset()
    waits = [_Sign(each.use.offset, each.place) for each in barriers.waits]
    both = [_Sign(each.offset, None, each.name) for each in barriers.orders if not each.opcode.startswith(_TELLS_NOBODY)]
    telling = [*both, *(_Sign(each.use.offset, each.place) for each in {*barriers.arrivals, *barriers.fills})]
    flow = _Flow(barriers, [sign.offset for sign in (*waits, *telling)])
    tracked = opcodes_of(kernel.text, {word.encode() for word in pairing.tracked})
    multiplying = frozenset(kernel.block_of(each.start()) for each in tracked)
    last = [sign for sign in waits if flow.may_end(sign.offset, multiplying)]

    def is_heard(wait: _Sign) -> bool:
        """Return whether a thread may hear of the last reads by a wait, which their threads have not passed if they execute it, too."""
        stops = {wait.offset} if not readers & ~threads_at(kernel.executed, wait.offset) else set[int]()
        told, heard = flow.after(reading, {*stops, *reading}), set[int]()
        while True:
            signs = [sign for sign in telling if sign.offset in told]
            if any(each.may_reach(wait) for each in signs):
                return True
            fresh = {
                sign.offset for sign in (*last, *both) if sign.offset not in heard | stops and any(each.may_reach(sign) for each in signs)
            }
            if not fresh:
                return False
            heard |= fresh
            told |= flow.after(fresh, stops)

    return frozenset(sign.offset for sign in waits if sign not in last or not is_heard(sign))


class _Flow:
    """The signs that a thread may come to after an instruction.

    Args:
        barriers: the mbarriers of a kernel.
        signs: the places of the signs.
    """

    def __init__(self, barriers: Mbarriers, signs: Iterable[int]) -> None:
        self._kernel = barriers.kernel
        self._signs = self._by_block(signs)
        self._on, self._afters = functools.cache(self._ways_on), functools.cache(self._elected)

    def _by_block(self, places: Iterable[int]) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = {}
        for place in sorted(places):
            found.setdefault(self._kernel.block_of(place), []).append(place)
        return found

    def after(self, places: Iterable[int], stops: Set[int]) -> set[int]:
        """The signs to which a way leads from some instructions, not past others."""
        ends = self._by_block(stops)

        def end_of(node: tuple[int, int]) -> int | None:
            return next((each for each in ends.get(node[0], ()) if each > node[1]), None)

        def leaving(node: tuple[int, int]) -> Iterator[tuple[tuple[int, int], int]]:
            if end_of(node) is None:
                yield from (((after, -1), taking) for after, taking in self._kernel.takers[node[0]] if after >= 0)

        begins = {(self._kernel.block_of(place), place): threads_at(self._kernel.executed, place) for place in places}
        found = set[int]()
        for node in spread(begins, leaving):
            end = end_of(node)
            found |= {sign for sign in self._signs.get(node[0], ()) if sign > node[1] and (end is None or sign < end)}
        return found

    def may_end(self, place: int, blocks: frozenset[int]) -> bool:
        """Return whether a thread may end after an instruction without any of some blocks.

        Of a warp that elects a thread, this one is followed.  A loop of these blocks has a round.
        """
        return -1 in reachable(
            self._on(self._kernel.block_of(place), blocks), lambda number: self._on(number, blocks) if number not in blocks else ()
        )

    def _ways_on(self, number: int, blocks: frozenset[int]) -> Set[int]:
        afters = self._afters(number)
        return afters - self._kernel.graph.past(number, blocks, self._afters) if len(afters) > 1 else afters

    def _elected(self, number: int) -> Set[int]:
        is_elected = self._kernel.registers.is_elected
        ways = self._kernel.ways[number] if number >= 0 else ()
        return {way.after for way in ways if not (way.predicate and is_elected(opposite(way.predicate)))}
