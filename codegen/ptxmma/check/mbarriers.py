"""The instructions on mbarriers of a kernel, the loops that repeat them, and the threads that execute them."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.counterparts import uses_of
from ptxmma.check.kernels import threads_at
from ptxmma.ptx import thread_values
from ptxmma.ptx.outline import is_any, opcodes_of
from ptxmma.ptx.thread_masks import ALL_THREADS

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from ptxmma.check.counterparts import Use
    from ptxmma.check.kernels import Kernel, Reached
    from ptxmma.model import Pairing
    from ptxmma.ptx.addresses import Place
    from ptxmma.ptx.sums import Sum

#: Parts of opcodes on mbarriers that count bytes: a copy, and an arrival that expects it.
_COUNTS = (b"complete_tx", b"expect_tx")
#: Parts of a kernel's text with which thread blocks arrive on each other's mbarriers in pairs, or ``%tid.x`` does not count the threads.
UNCOUNTED = (b"cta_group::2", b"%tid.y", b"%tid.z")
#: The number of a barrier of the thread block.
_NAMED = re.compile(rb"\s*(\d+)\s*[,;]")


class Used(NamedTuple):
    """An instruction on an mbarrier.

    Attributes:
        use: the instruction.
        block: the number of its block.
    """

    use: Use
    block: int

    @property
    def place(self) -> Place | None:
        """The mbarrier; None if its address is not followed."""
        return self.use.place

    def may_be_of(self, place: Place | None) -> bool:
        """Return whether the instruction may be on an mbarrier at a place, or at any if its address is not followed."""
        return self.use.place is None or place is None or self.use.place.meets(place)


class Ring(NamedTuple):
    """Stages of shared memory that loops fill.

    Attributes:
        full: the mbarriers that count the bytes of copies to them.
        free: the mbarriers for which the loops wait before they copy.
        stages: the places to which they copy.
    """

    full: set[Place]
    free: set[Place]
    stages: set[Place]


class Order(NamedTuple):
    """An instruction by which threads may tell each other that a stage is free.

    Attributes:
        offset: its place.
        block: the number of its block.
        opcode: its opcode.
        name: the number of the barrier of the thread block that it names; empty for any other instruction.
        threads: a mask of the threads that may execute it.
    """

    offset: int
    block: int
    opcode: bytes
    name: bytes
    threads: int


class Mbarriers:
    """The mbarriers of a kernel.

    Args:
        kernel: the kernel.
        pairing: the spec's facts on mbarriers.

    Attributes:
        kernel, pairing: as given.
        made: the instructions that initialise one.
        arrivals: the instructions that arrive on one.
        fills: the copies that bring bytes, and the instructions that expect these.
        stores: the stores to other thread blocks that bring bytes.
        waits: the waits for a phase by its parity.

    Raises:
        NotFollowedError: the kernel cannot be followed.
    """

    def __init__(self, kernel: Kernel, pairing: Pairing) -> None:
        self.kernel, self.pairing = kernel, pairing
        uses = [Used(use, kernel.block_of(use.offset)) for use in uses_of(kernel.addresses, words_of_phases(pairing))]
        self.made, self.arrivals, self.waits = (
            [each for each in uses if is_any(each.use.opcode, named)] for named in (pairing.made, pairing.arrives, pairing.waits)
        )
        counted = [each for each in uses if any(counts in each.use.opcode for counts in _COUNTS)]
        words = tuple(word.encode() for count in pairing.counts for word in count.stores)
        self.fills = [each for each in counted if not each.use.opcode.startswith(words)]
        self.stores = [each for each in counted if each.use.opcode.startswith(words)]
        # The same that may be on an mbarrier at a place: several rules ask for the same ones.
        self.made_on, self.arrivals_on, self.fills_on, self.waits_on = (
            functools.cache(functools.partial(_may_be_on, each)) for each in (self.made, self.arrivals, self.fills, self.waits)
        )
        self.turns_of, self.arrivals_of_a_phase = functools.cache(self._turns_of), functools.cache(self._arrivals_of_a_phase)

    @functools.cached_property
    def are_counted(self) -> bool:
        """True if arrivals can be counted: the kernel says how many threads it has, and ``%tid.x`` tells them apart."""
        text = self.kernel.text
        return thread_values.is_limited(text) and not any(word in text for word in UNCOUNTED)

    @functools.cached_property
    def rounds(self) -> list[frozenset[int]]:
        """The blocks of each loop that does more than repeat a wait, the smallest loop first.

        Where an index chooses what a round does, nothing says that another round does the same.
        """
        waiting = {each.use.offset for each in self.waits}
        working = {number for number, events in enumerate(self.kernel.instructions) if any(event.offset not in waiting for event in events)}
        choosing = {number for number, ways in enumerate(self.kernel.ways) if len(ways) > 1 and not any(way.predicate for way in ways)}
        return [loop for loop in self.kernel.graph.loops if not working.isdisjoint(loop) and choosing.isdisjoint(loop)]

    def round_of(self, used: Used) -> frozenset[int]:
        """The blocks of the smallest loop that repeats an instruction; empty where none does."""
        return next((loop for loop in self.rounds if used.block in loop), frozenset())

    @functools.cached_property
    def orders(self) -> list[Order]:
        """The other instructions than waits by parity by which threads may tell each other that a stage is free."""
        text = self.kernel.text
        waits = {each.use.offset for each in self.waits}
        found = [each for each in opcodes_of(text, {word.encode() for word in self.pairing.orders}) if each.start() not in waits]
        threads = dict.fromkeys((each.start() for each in found), ALL_THREADS) | {
            each.offset: each.threads for each in self.kernel.executed.values()
        }
        names = [_NAMED.match(text, each.end()) if each[0].startswith(b"bar") else None for each in found]
        return [
            Order(each.start(), self.kernel.block_of(each.start()), each[0], name[1] if name else b"", threads[each.start()])
            for each, name in zip(found, names, strict=True)
        ]

    @functools.cached_property
    def tracking(self) -> set[int]:
        """The blocks with asynchronous instructions that read stages, of which only an arrival tells that they have."""
        named = any(map(self.kernel.mentions, self.pairing.tracked))
        words = {word.encode() for word in self.pairing.tracked if named}
        return {self.kernel.block_of(each.start()) for each in opcodes_of(self.kernel.text, words)}

    @functools.cached_property
    def _rings(self) -> list[Ring]:
        """The rings of stages: rounds of loops that copy, and wait before; rounds whose copies count on one mbarrier fill one ring."""
        rings: list[Ring] = []
        copies = [each for each in self.fills if b"async" in each.use.opcode]
        targets = {use.offset: use.place for use in uses_of(self.kernel.addresses, _words_of(copies), first=True)}
        for turn in dict.fromkeys(map(self.round_of, self.waits)):
            filling = [each for each in copies if each.block in turn]
            full = {each.place for each in filling if each.place}
            ring = next((ring for ring in rings if any(_is_one_of(place, ring.full) for place in full)), None)
            if ring is None and full:
                rings.append(ring := Ring(set(), set(), set()))
            if ring is not None:
                ring.full.update(full)
                ring.free.update(each.place for each in self.waits if each.place and each.block in turn)
                ring.stages.update(place for each in filling if (place := targets.get(each.use.offset)))
        return rings

    def ring_of(self, use: Use) -> int | None:
        """The number of the ring whose stage an instruction fills, waits for, frees or copies; None where it is of no ring, or not known.

        An arrival that expects bytes comes before a copy, and frees nothing.
        """
        if use.place is None or b"expect_tx" in use.opcode:
            return None
        for number, ring in enumerate(self._rings):
            if is_any(use.opcode, self.pairing.waits):
                places = ring.full
            elif is_any(use.opcode, self.pairing.arrives):
                places = ring.free
            else:
                places = ring.stages
            if _is_one_of(use.place, places):
                return number
        return None

    def tells_copies_alone(self, use: Use) -> bool:
        """Return whether only loops that copy wait for the mbarrier of an instruction."""
        copies = {each.block for each in self.fills}
        return all(not self.round_of(each).isdisjoint(copies) for each in self.waits_on(use.place))

    @functools.cached_property
    def _counts(self) -> list[tuple[Used, Sum]]:
        """The instructions that initialise an mbarrier, each with its count of arrivals."""
        return [(self._by_threads(each), self.kernel.addresses.of(each.use.operand, each.use.offset)) for each in self.made]

    def _by_threads(self, used: Used) -> Used:
        """An instruction with as many places as threads execute it, where ``%tid.x`` is the index."""
        place, offset = used.place, used.use.offset
        if place is None or not place.step or place.places:
            return used
        places = threads_at(self.kernel.executed, offset).bit_length() if self.kernel.addresses.is_by_thread(offset) else 0
        return used._replace(use=used.use._replace(place=place._replace(places=places)))

    def _turns_of(self, place: Place) -> set[frozenset[int]]:
        """The loops whose rounds arrive on an mbarrier, or fill it."""
        return {self.round_of(each) for each in (*self.arrivals_on(place), *self.fills_on(place)) if each.place is not None}

    def _arrivals_of_a_phase(self, place: Place) -> int | None:
        """The number of arrivals that complete a phase of an mbarrier; None where it is not known."""
        numbers = {None if count.terms else count.constant for each, count in self._counts if each.may_be_of(place)}
        return numbers.pop() if len(numbers) == 1 else None

    @functools.cached_property
    def own_waits(self) -> frozenset[int]:
        """The places of the waits of one warp for mbarriers on which no other warp arrives: they say nothing of others."""
        found = set[int]()
        for wait in self.waits:
            warps = thread_values.warps_of(threads_at(self.kernel.executed, wait.use.offset))
            arrivals = self.arrivals_on(wait.place) if len(warps) == 1 and wait.place is not None else []
            if arrivals and all(thread_values.warps_of(threads_at(self.kernel.executed, each.use.offset)) == warps for each in arrivals):
                found.add(wait.use.offset)
        return frozenset(found)

    @functools.cached_property
    def blocks(self) -> int:
        """The thread blocks of a cluster; 0 where a kernel that reaches others does not say."""
        text = self.kernel.text
        return self.kernel.cluster if b".reqnctapercluster" in text[: text.find(b"{")] else int(b"mapa" not in text)

    @functools.cached_property
    def sure(self) -> int:
        """A mask of threads that exist in every launch in which a thread executes each arrival, copy and wait."""
        named = (threads_at(self.kernel.executed, each.use.offset) for each in (*self.arrivals, *self.fills, *self.waits))
        return max((1, *(mask & -mask for mask in named))) * 2 - 1

    @property
    def existing(self) -> int | None:
        """A mask of threads that exist in every launch; None if the kernel says how many there are."""
        text = self.kernel.text
        return None if b".reqntid" in text[: text.find(b"{")] else self.sure

    def reached(self, words: tuple[str, ...]) -> list[Reached]:
        """The instructions with some opcodes, with the threads of the block that may execute them."""
        executed = self.kernel.executed
        return [executed[each.offset] for _, each in self.kernel.named(lambda opcode: is_any(opcode, words)) if each.offset in executed]


def _may_be_on(uses: Sequence[Used], place: Place | None) -> list[Used]:
    return [each for each in uses if each.may_be_of(place)]


def words_of_phases(pairing: Pairing) -> set[str]:
    """The opcodes of a pairing that make objects, arrive on them, wait for phases, or bring bytes."""
    counted = (word for count in pairing.counts for word in (*count.expects, *count.brings, *count.stores))
    return {*pairing.made, *pairing.waits, *pairing.arrives, *counted}


def _words_of(uses: Sequence[Used]) -> set[str]:
    return {each.use.opcode.decode() for each in uses}


def _is_one_of(place: Place, places: Set[Place]) -> bool:
    return any(are_alike(place, other) for other in places)


def are_alike(one: Place, other: Place) -> bool:
    """Return whether two places are of one mbarrier, or of one array of them, whatever their indices are."""
    return one[:3] == other[:3] or bool(one.places and other.places and one.meets(other))
