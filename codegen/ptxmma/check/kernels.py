"""A kernel as rules see it: its instructions in blocks, the ways between them, and the threads and thread blocks that execute them."""

from __future__ import annotations

import bisect
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.transitions import ALIGNED, EXIT, Machine, machine_of
from ptxmma.ptx import thread_values
from ptxmma.ptx.addresses import Addresses
from ptxmma.ptx.blocks import Blocked, NotFollowedError, blocks, opposite
from ptxmma.ptx.flow_events import Asynchronous, Event, Stretch
from ptxmma.ptx.graphs import Graph, reachable, spread
from ptxmma.ptx.known_bits import KnownBits
from ptxmma.ptx.outline import Outline, is_any, starts
from ptxmma.ptx.thread_masks import ALL_THREADS, ThreadMasks
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand
    from ptxmma.model import Lifecycle, Transition
    from ptxmma.ptx.statements import Function, Statement

_ENDS = (b"ret", b"exit")
_SIZE = re.compile(rb"\.(?:reqnctapercluster|maxclusterrank)\s+([\d\s,]+)")
#: Thread blocks of a cluster: no chip runs more together, and a mistake makes no large masks.
_MOST_BLOCKS = 1024
#: The rank of a thread block in its cluster, and the special registers that differ between thread blocks.
OWN_RANK, OF_BLOCKS = b"%cluster_ctarank", re.compile(rb"%(?:n?cluster|ctaid|smid|gridid|globaltimer|clock)")
#: Thread blocks of a pair.
PAIR = 2


_start_of = operator.attrgetter("start")


class Way(NamedTuple):
    """A way out of a block: the next one (-1: the end of the kernel), the predicate that must hold, and the place of the branch."""

    after: int
    predicate: bytes
    offset: int


class Reached(NamedTuple):
    """An instruction of a kernel's words, and the threads, or thread blocks, that come to it.

    Attributes:
        offset: its place.
        opcode: its opcode.
        threads: a mask of the threads, or thread blocks of a cluster, that execute it.
    """

    offset: int
    opcode: bytes
    threads: int


#: The instructions by their places, in the order of the text; none where the kernel is not followed.
Executed = Mapping[int, Reached]


def threads_at(executed: Executed, place: int) -> int:
    """A mask of the threads, or thread blocks, that execute the instruction at a place; 0 where it is none of the words' or not reached."""
    return executed[place].threads if place in executed else 0


class Kernel:
    """A function, and what rules ask of it, found out when it is asked for.

    Args:
        function: the function.
        opcodes: the opcodes of its matrix instructions.
        target: the target that it is for; empty where that is not known.
        lifecycles: the lifecycles that may be asked for.
        words: the first words of further opcodes.
        own_waits: the places of waits that say nothing of other warps, found out when it matters.

    Attributes:
        function, opcodes, target: as given.
        text: the function's text.
        registers: its registers.
        unfollowed: the names of the lifecycles that were asked for and are not followed.
    """

    def __init__(
        self,
        function: Function,
        opcodes: Set[bytes],
        target: str,
        lifecycles: Iterable[Lifecycle],
        words: Set[bytes],
        own_waits: Callable[[], Set[int]] = frozenset,
    ) -> None:
        self.function, self.opcodes, self.target = function, opcodes, target
        self.text, self.registers = function.text, function.predicates
        self._lifecycles, self._words, self.own_waits = lifecycles, words, functools.cache(own_waits)
        self.mentions: Callable[[str], bool] = functools.cache(lambda word: word.encode() in self.text)  # many rules ask for the same ones
        self.unfollowed: set[str] = set()
        self._statements_of = functools.cache(function.statements_of)

    @functools.cached_property
    def blocks(self) -> list[Blocked]:
        """The kernel's blocks, with the instructions that lifecycles name."""
        named = {word.encode() for machine in self._machines for each in machine.life.transitions for word in each.on}
        named |= self._apart
        return blocks(Outline(self.text, Asynchronous({}, others=tuple(sorted({*self._words, *named} - {EXIT})), counts=self._counts)))

    @functools.cached_property
    def instructions(self) -> list[list[Event]]:
        """The instructions of each block that lifecycles name."""
        return [[event for event in block.events if isinstance(event, Event)] for block in self.blocks]

    @functools.cached_property
    def _by_opcode(self) -> dict[bytes, list[tuple[int, Event]]]:
        """These instructions by their opcodes, each with the number of its block."""
        by_opcode: dict[bytes, list[tuple[int, Event]]] = {}
        for number, events in enumerate(self.instructions):
            for event in events:
                by_opcode.setdefault(event.opcode, []).append((number, event))
        return by_opcode

    def named(self, is_named: Callable[[bytes], object]) -> list[tuple[int, Event]]:
        """The instructions with some opcodes, each with the number of its block, in the order of the text.

        Args:
            is_named: whether to take the instructions of an opcode; it is asked once for each.
        """
        found = [each for opcode, instructions in self._by_opcode.items() if is_named(opcode) for each in instructions]
        return sorted(found, key=lambda each: each[1].offset)

    @functools.cached_property
    def _machines(self) -> list[Machine]:
        """The lifecycles that may begin."""
        return [machine_of(life) for life in self._lifecycles if self.may_begin(life)]

    def may_begin(self, life: Lifecycle) -> bool:
        """Return whether a lifecycle counts here: an instruction leads from its first state, and one is wrong in some state."""
        parts = ([each for each in life.transitions if life.start in each.states], [each for each in life.transitions if each.rule])
        return all(map(self.mentions, life.where)) and all(any(map(self.has, part)) for part in parts)

    def has(self, transition: Transition) -> bool:
        """Return whether the kernel has an instruction of a transition, with its modifiers anywhere."""
        named = any(map(self.mentions, transition.on)) or EXIT.decode() in transition.on
        return named and all(map(self.mentions, transition.modifiers))

    def _counts(self, opcode: bytes) -> bool:
        """Return whether an instruction is one of the words, or makes a transition in some state."""
        return any(starts(opcode, word) for word in self._words | self._apart) or any(each.on(opcode) for each in self._machines)

    @functools.cached_property
    def _apart(self) -> Set[bytes]:
        """The instructions that the threads do not execute of which a lifecycle tells."""
        return {word.encode() for machine in self._machines for word in machine.life.apart}

    @functools.cached_property
    def addresses(self) -> Addresses:
        """The addresses that it computes."""
        return Addresses(self.text, self.registers)

    @functools.cached_property
    def bits(self) -> KnownBits:
        """The known bits of its registers."""
        return KnownBits(self.registers, self.function.passed, self.function.registers.variable)

    @functools.cached_property
    def is_closed(self) -> bool:
        """True if it is a kernel and calls no function that may do what it lacks."""
        return self.text.startswith(b".entry") and not self.function.calls_others

    def written(self, place: int) -> bytes:
        """The text of the instruction at a place, without its semicolon."""
        return self.text[place : self.text.find(b";", place)]

    def operands(self, of: Callable[[bytes], Mapping[int, Sequence[tuple[int, Operand]]]]) -> list[tuple[Statement, int, Operand]]:
        """Some operands of the matrix instructions, each with its instruction and its number in it.

        Args:
            of: the operands to take of an opcode, with their numbers, by the number of all.
        """
        return [(each, place, operand) for each in self.statements(of) for place, operand in of(each.opcode).get(len(each.operands), ())]

    def statements(self, is_named: Callable[[bytes], object]) -> list[Statement]:
        """The matrix instructions of some opcodes, in the order of the text.

        Args:
            is_named: whether to take the instructions of an opcode.
        """
        return sorted([each for opcode in self.opcodes if is_named(opcode) for each in self._statements_of(opcode)], key=_start_of)

    # --- blocks --------------------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def ways(self) -> list[list[Way]]:
        """The ways out of each block."""
        return [_ways_out(each, len(self.text)) for each in self.blocks]

    @functools.cached_property
    def takers(self) -> list[list[tuple[int, int]]]:
        """The ways out of each block: the next one, and a mask of the threads that may take the way."""
        return [[(way.after, self.registers.threads(way.predicate)) for way in ways] for ways in self.ways]

    @functools.cached_property
    def graph(self) -> Graph:
        """The graph of the blocks."""
        return Graph([[way.after for way in ways] for ways in self.ways])

    @functools.cached_property
    def _begins(self) -> list[int]:
        return [block.begin for block in self.blocks]

    def block_of(self, place: int) -> int:
        """The number of the block at a place in the text."""
        return bisect.bisect(self._begins, place) - 1

    def meeting_after(self, place: int) -> tuple[int, int]:
        """The first barrier of the whole block that every way from a place leads to and the thread has not executed: its block and place.

        No other thread can be beyond it before the thread at the place comes to it.  Without one, -1 and -1.
        """
        number = first = self.block_of(place)
        while number >= 0:
            if not any(first in loop and number in loop for loop in self.graph.loops):
                meetings = (each.offset for each in self.instructions[number] if self._is_meeting(each))
                found = next((offset for offset in meetings if offset > place or number != first), -1)
                if found >= 0:
                    return number, found
            number = self.graph.meets[number]
        return -1, -1

    def _is_meeting(self, event: Event) -> bool:
        """Return whether an instruction is a barrier for which all threads of the block wait: it names no number of threads."""
        waits = not event.predicated and event.opcode.startswith((b"bar.sync", b"barrier.sync", b"barrier.cta.sync"))
        return waits and b"," not in self.written(event.offset)

    @functools.cached_property
    def preceding(self) -> Callable[[tuple[str, ...]], frozenset[int]]:
        """The places of the instructions from which a way leads to one with an opcode, and to which none leads from one."""
        return functools.cache(self._preceding)

    def _preceding(self, words: tuple[str, ...]) -> frozenset[int]:
        first = {number: event.offset for number, event in reversed(self.named(lambda opcode: is_any(opcode, words)))}
        blocks = reachable(first, self.graph.leading.__getitem__).keys() - frozenset().union(*map(self.graph.beyond, first))
        instructions = ((number, event.offset) for number in blocks for event in self.instructions[number])
        return frozenset(place for number, place in instructions if place < first.get(number, place + 1))

    # --- threads -------------------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def executed(self) -> Executed:
        """The instructions of the words that can be reached, with the threads of a block that may execute them."""
        return self._reached(self.threads, self.threads.threads, together=False)

    @functools.cached_property
    def executed_together(self) -> Executed:
        """The instructions of the words, with threads of a block that all come to them in some launch."""
        return self._reached(self.threads, self._together, together=True)

    @functools.cached_property
    def _in_blocks(self) -> Mapping[int, int]:
        try:
            return self._entered(self._together, {}, together=True)
        except NotFollowedError:
            return {}

    def coming_together(self, place: int) -> int:
        """A mask of the threads that all come to the instruction at a place in some launch."""
        return self._in_blocks.get(self.block_of(place), 0) & self._together(predicate_before(self.text, place)) & self.threads.everyone

    @functools.cached_property
    def executing(self) -> Callable[[tuple[str, ...]], int]:
        """A mask of the threads of a block that may execute an instruction with one of some opcodes."""
        return functools.cache(self._executing)

    def _executing(self, words: tuple[str, ...]) -> int:
        named = (each.threads for each in self.executed.values() if any(starts(each.opcode, word.encode()) for word in words))
        return functools.reduce(int.__or__, named, 0)

    @functools.cached_property
    def executed_by_warps(self) -> Executed:
        """The instructions of the words, with warps that execute them as a whole, if they do at all.

        A warp comes as a whole to a barrier of the block, however the way there is decided.
        """
        meetings: dict[int, tuple[int, int]] = {}
        for each in self.executed.values():
            number = self.block_of(each.offset)
            if number not in meetings and _is_of_warp(each.opcode) and not predicate_before(self.text, each.offset):
                meetings[number] = each.offset, _whole_warps(each.threads)
        return self._reached(self.threads, self._together, meetings, together=True) if meetings else self.executed_together

    @functools.cached_property
    def cluster(self) -> int:
        """The most thread blocks that a cluster of the kernel may have; 0 where it does not say."""
        limit = _SIZE.search(self.text, 0, self.text.find(b"{"))
        sizes = [int(size) for size in limit[1].split(b",") if size.strip()] if limit is not None else [0]
        return min(math.prod(sizes), _MOST_BLOCKS)

    @functools.cached_property
    def ranks(self) -> ThreadMasks:
        """Masks of the thread blocks of a cluster, which has a pair of them where the kernel does not say."""
        return self.registers.masks(OWN_RANK, max(self.cluster, PAIR), OF_BLOCKS)

    @functools.cached_property
    def executed_by_blocks(self) -> Executed:
        """The instructions of the words that can be reached, with the thread blocks of a cluster that may execute them."""
        return self._reached(self.ranks, self.ranks.threads, together=False)

    @functools.cached_property
    def executed_by_blocks_together(self) -> Executed:
        """The instructions of the words, with thread blocks of a cluster that all come to them in some launch."""
        return self._reached(self.ranks, self.ranks.together, together=True)

    @functools.cached_property
    def threads(self) -> ThreadMasks:
        """Masks of the threads of a block."""
        return self.registers.masks(thread_values.INDEX, thread_values.threads_of(self.text))

    def _together(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate holds in some launch, of threads that come to it together."""
        return self._counted.together(predicate)

    @functools.cached_property
    def _counted(self) -> ThreadMasks:
        """Masks for threads that come together and read the same counter, such as the tile number of a persistent kernel.

        First all registers that change count as such; then not the ones that branches say may differ.
        """
        readers: dict[bytes, set[int]] = {}  # the blocks at whose end a register decides
        for number, block in enumerate(self.blocks):
            predicate = block.branch.predicate if block.branch is not None else b""
            for counter in self.registers.counters(predicate.lstrip(b"!")) if predicate else ():
                readers.setdefault(counter, set()).add(number)
        masks = self.threads
        comes = self._entered(masks.threads, {}, together=False) if readers else {}
        while readers:
            masks = self.registers.masks(thread_values.INDEX, thread_values.threads_of(self.text), counters=frozenset(readers))
            together = self._entered(masks.together, {}, together=True)
            differing = [name for name, blocks in readers.items() if not self._is_alike(name, blocks, masks, comes, together)]
            for name in differing:
                del readers[name]
            if not differing:
                break
        return masks if readers else self.threads

    def _is_alike(self, name: bytes, readers: Set[int], masks: ThreadMasks, comes: Mapping[int, int], together: Mapping[int, int]) -> bool:
        """Return whether a register is the same in all threads that come to some blocks: they all come to what writes it.

        Args:
            name: the register.
            readers: the blocks.
            masks: the masks of threads in which predicates hold.
            comes: a mask of the threads that may come to each block.
            together: a mask of threads that come to it together.
        """
        for *_, offset in self.registers.writes(name):
            block, predicate = self.block_of(offset), predicate_before(self.text, offset)
            sure = together.get(block, 0) & masks.together(predicate)
            writing = comes.get(block, 0) & masks.threads(predicate)
            others = (each for each in readers if comes.get(each, 0) & writing)
            reading = [each for each in others if each == block or each in self.graph.beyond(block)]
            if not reading:  # what reads it here is in other warps
                continue
            if any(comes.get(each, 0) & ~sure for each in reading) or any(each.may_be_skipped(offset) for each in self._stretches(block)):
                return False
            for loop in (each for each in self.graph.loops if block in each and not readers <= each):
                leaving = [(comes.get(number, 0), masks.together(way.predicate)) for number in loop for way in self.leaving(number, loop)]
                if any(part & mask and mask & ~part for mask, part in leaving):
                    return False
        return True

    def leaving(self, number: int, loop: Set[int]) -> Iterator[Way]:
        """The ways out of a block of a loop that end the loop under a predicate."""
        return (way for way in self.ways[number] if way.predicate and way.after not in loop)

    def _stretches(self, number: int) -> Iterator[Stretch]:
        """The other statements of a block than the ones that lifecycles name."""
        return (each for each in self.blocks[number].events if isinstance(each, Stretch))

    def _reached(
        self,
        masks: ThreadMasks,
        threads_of: Callable[[bytes], int],
        meetings: Mapping[int, tuple[int, int]] = MappingProxyType({}),
        *,
        together: bool,
    ) -> Executed:
        """The instructions of the words, with the threads that come to them; none where the kernel is not followed.

        Args:
            masks: masks of the threads, or thread blocks, that there are.
            threads_of: a mask of the threads in which a predicate may hold, or holds in some launch.
            meetings: the place of an instruction and the threads that come to it in any case, by the number of its block.
            together: whether the threads all come to an instruction in one launch.
        """
        try:
            entered = self._entered(threads_of, meetings, together=together)
        except NotFollowedError:
            return {}
        found: dict[int, Reached] = {}
        for number, events in enumerate(self.instructions):
            comes, (place, met) = entered.get(number, 0), meetings.get(number, (0, 0))
            for event in events if comes | met else ():
                threads = comes | (met if event.offset > place else 0)
                predicate = predicate_before(self.text, event.offset) if event.predicated else b""
                found[event.offset] = Reached(event.offset, event.opcode, threads & threads_of(predicate) & masks.everyone)
        return found

    def _entered(self, threads_of: Callable[[bytes], int], meetings: Mapping[int, tuple[int, int]], *, together: bool) -> Mapping[int, int]:
        """The threads that come to each block, by its number.

        Where ways part as nothing says which threads take them, threads that come together meet again where all ways do.
        """

        def leaving(number: int) -> Iterator[tuple[int, int]]:
            # Nothing says which threads go where an index chooses a label: all may, and none is sure to.
            chosen = ALL_THREADS if not together or len(self.ways[number]) == 1 else 0
            for after, predicate, _ in self.ways[number]:
                if after >= 0:
                    yield after, threads_of(predicate) if predicate else chosen
            if together and self.graph.meets[number] >= 0:
                yield self.graph.meets[number], ALL_THREADS

        begins = {0: ALL_THREADS}
        for number, (_, met) in meetings.items():
            for after, mask in leaving(number):
                begins[after] = begins.get(after, 0) | met & mask
        return spread(begins, leaving, rank=self.graph.rank.__getitem__)


def _ways_out(block: Blocked, end: int) -> list[Way]:
    """The ways out of a block of a text that ends at a place."""
    follows, branch = block.follows, block.branch
    if branch is None:
        return [Way(after, b"", 0) for after in follows] or [Way(-1, b"", end)]
    falls = follows[-1:] if branch.predicate else []
    taken = list(follows[: len(follows) - len(falls)])
    if branch.opcode.partition(b".")[0] in _ENDS:
        taken.append(-1)
    ways = [Way(after, branch.predicate, branch.begin) for after in taken]
    return ways + [Way(after, opposite(branch.predicate), branch.begin) for after in falls]


def _is_of_warp(opcode: bytes) -> bool:
    """Return whether all threads of a warp come to an instruction: to ``bar.sync``, which is ``barrier.sync.aligned``.

    Other instructions with ``.aligned`` do not count: kernels have setmaxnreg in one thread, against the manual, and run.
    """
    return opcode.startswith((b"bar.sync", b"bar.red", b"bar.cta")) or (opcode.startswith(b"barrier.") and ALIGNED in opcode)


def _whole_warps(threads: int) -> int:
    """The warps of a mask that has all of their threads."""
    warp = (1 << thread_values.WARP) - 1
    firsts = range(0, threads.bit_length(), thread_values.WARP)
    return sum(warp << first for first in firsts if threads >> first & warp == warp)
