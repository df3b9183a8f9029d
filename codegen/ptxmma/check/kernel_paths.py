"""The states that a spec gives to what a kernel uses, along the paths that a thread can take, and what comes at a wrong time.

A path counts only if the text justifies it: its conditions can hold together (:mod:`ptxmma.ptx.conditions`).  Where that is not known, an
instruction is at a wrong time only if no path comes to it at a right one.  A loop may be left after any round.  A state that the threads of
a block share counts only if no other thread can have changed it.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.partial_barriers import apart, is_partial
from ptxmma.ptx import thread_values
from ptxmma.ptx.blocks import Blocked, Graph, NotFollowedError, blocks, opposite
from ptxmma.ptx.conditions import Condition, Predicates, common, contradicts, joined, predicate_before
from ptxmma.ptx.flow_events import Asynchronous, Event, Stretch
from ptxmma.ptx.natural_loops import natural_loops
from ptxmma.ptx.outline import Outline, starts
from ptxmma.ptx.post_dominators import next_on_every_way
from ptxmma.ptx.thread_masks import ALL_THREADS, ThreadMasks

if TYPE_CHECKING:
    from ptxmma.model import Counterpart, Lifecycle, Transition

#: In place of an instruction: the end of the kernel.
EXIT = b"exit"
#: A modifier that says that threads execute an instruction together.
ALIGNED = b".aligned"
_ENDS = (b"ret", b"exit")
#: Paths that differ at the start of a block: a kernel with more is not followed.
_MOST_PATHS = 256
#: Bytes before an opcode in which its predicate is looked for.
_LONGEST_PREDICATE = 256
#: Objects that are held at once: more are not counted.
_MOST_HELD = 32
_NUMBER = re.compile(rb"\s*(\d+)\b")
#: The place of an instruction, and the rule that it breaks.
_Key = tuple[int, str]
#: A state, and the number of objects, up to the highest that makes a difference.
_Held = tuple[str, int]


class Happening(NamedTuple):
    """An instruction that changes a state, or the end of a kernel.

    Attributes:
        offset: its place; of the end of a kernel, the place of the statement that ends it.
        opcode: the opcode; :data:`EXIT` for the end of a kernel.
        number: the objects that may remain, as the instruction says: ``cp.async.wait_group 2``.
    """

    offset: int
    opcode: bytes
    number: int = 0


class Misuse(NamedTuple):
    """An instruction, or the end of a kernel, at a wrong time.

    Attributes:
        at: the instruction.
        wrong: the transition that the spec calls wrong.
        since: the instructions that led to the state, the latest last.
        conditions: the conditions of the path, in the order of the text.
    """

    at: Happening
    wrong: Transition
    since: tuple[Happening, ...]
    conditions: tuple[Condition, ...]


class _Path(NamedTuple):
    """The facts on a path.

    Attributes:
        state: the state of the lifecycle.
        since: the instructions that led to it, the latest last.
        changed: the places of all instructions that changed a state which threads share.
        conditions: the conditions of the path.
        certain: true if they are known to hold together.
        fault: the place of the first instruction at a wrong time; -1 without one.
    """

    state: str
    since: tuple[Happening, ...] = ()
    changed: frozenset[int] = frozenset()
    conditions: frozenset[Condition] = frozenset()
    certain: bool = True
    fault: int = -1


class Way(NamedTuple):
    """A way out of a block: the next one (-1: the end of the kernel), the predicate that must hold, and the place of the branch."""

    after: int
    predicate: bytes
    offset: int


class _Step(NamedTuple):
    """An instruction that concerns a lifecycle, and the predicate under which it is executed; empty: always."""

    at: Happening
    predicate: bytes


class Reached(NamedTuple):
    """An instruction that lifecycles name, and the threads that may come to it.

    Attributes:
        offset: its place.
        opcode: its opcode.
        threads: a mask of the threads that may execute it.
    """

    offset: int
    opcode: bytes
    threads: int


class KernelPaths:
    """The paths through a kernel, found out when they are asked for.

    Args:
        text: the kernel's text.
        lifecycles: the lifecycles that may be asked for.
        words: the first words of further opcodes.
        registers: the kernel's registers.

    Attributes:
        registers: the kernel's registers.
        unfollowed: the names of the lifecycles that were asked for and are not followed.
    """

    def __init__(self, text: bytes, lifecycles: Iterable[Lifecycle], words: Set[bytes], registers: Predicates) -> None:
        self._text, self._words, self.registers = text, words, registers
        self._has: Callable[[str], bool] = functools.cache(lambda word: word.encode() in text)  # several lifecycles ask for the same ones
        self._lifecycles = lifecycles
        self._before = functools.cache(self._precede)
        self.unfollowed: set[str] = set()

    @functools.cached_property
    def blocks(self) -> list[Blocked]:
        """The kernel's blocks, with the instructions that lifecycles name."""
        named = {word.encode() for machine in self._machines for each in machine.life.transitions for word in each.on}
        return blocks(Outline(self._text, Asynchronous({}, others=tuple(sorted({*self._words, *named} - {EXIT})), counts=self._counts)))

    @functools.cached_property
    def instructions(self) -> list[list[Event]]:
        """The instructions of each block that lifecycles name."""
        return [[event for event in block.events if isinstance(event, Event)] for block in self.blocks]

    @functools.cached_property
    def _opcodes(self) -> set[bytes]:
        """The opcodes of these instructions."""
        return {event.opcode for events in self.instructions for event in events}

    @functools.cached_property
    def _machines(self) -> list[_Machine]:
        """The lifecycles that may begin."""
        return [_machine(life) for life in self._lifecycles if self.may_begin(life)]

    def may_begin(self, life: Lifecycle) -> bool:
        """Return whether a lifecycle counts here: an instruction leads from its first state, and one is wrong in some state."""
        parts = ([each for each in life.transitions if life.start in each.states], [each for each in life.transitions if each.rule])
        return all(map(self._has, life.where)) and all(any(map(self.has, part)) for part in parts)

    def has(self, transition: Transition) -> bool:
        """Return whether the kernel has an instruction of a transition, with its modifiers anywhere."""
        named = any(map(self._has, transition.on)) or EXIT.decode() in transition.on
        return named and all(map(self._has, transition.modifiers))

    def _counts(self, opcode: bytes) -> bool:
        """Return whether an instruction is one of the words, or makes a transition in some state."""
        return any(starts(opcode, word) for word in self._words) or any(each.on(opcode) for each in self._machines)

    @functools.cached_property
    def ways(self) -> list[list[Way]]:
        """The ways out of each block."""
        return [_ways_out(each, len(self._text)) for each in self.blocks]

    @functools.cached_property
    def _takers(self) -> list[list[tuple[int, int]]]:
        """The ways out of each block: the next one, and a mask of the threads that may take the way."""
        return [[(way.after, self.registers.threads(way.predicate)) for way in ways] for ways in self.ways]

    @functools.cached_property
    def _rank(self) -> dict[int, int]:
        """The place of each block in an order in which it comes before the blocks that follow it, except where a loop closes."""
        graph = Graph([[way.after for way in ways if way.after >= 0] for ways in self.ways])
        return {number: place for place, number in enumerate(graph.order)}

    @functools.cached_property
    def _next_on_every_way(self) -> list[int]:
        """The block at which all ways out of each block meet; -1: the end, or none."""
        return next_on_every_way([[way.after for way in ways] for ways in self.ways], [*self._rank])

    @functools.cached_property
    def loops(self) -> list[frozenset[int]]:
        """The blocks of each loop, the smallest loop first."""
        return natural_loops([[way.after for way in ways] for ways in self.ways], [*self._rank])

    def misuses(
        self,
        lifecycles: Iterable[Lifecycle],
        size: Callable[[int], int | None] = lambda _: None,
        capacity: int = 0,
        objects_of: Callable[[Lifecycle], Mapping[int, Hashable]] = lambda _: MappingProxyType({}),
    ) -> list[Misuse]:
        """The instructions at a wrong time, in the order of the text: one for each place, rule and lifecycle.

        Args:
            lifecycles: the lifecycles to follow.
            size: the size of the object that the instruction at a place makes or ends; None where it is not known.
            capacity: the sum of the sizes of the objects that fit.
            objects_of: the object of each instruction, by its place, for a lifecycle of which each object has a state of its own.

        A lifecycle is not followed, and goes to :attr:`unfollowed`, where a label is missing, a brace is not closed, there are too many
        branches, or too many paths differ.
        """
        found: list[Misuse] = []
        for life in lifecycles:
            try:
                found += self._misuses_of(_machine(life), size, capacity, objects_of(life) if life.each else {})
            except NotFollowedError:
                self.unfollowed.add(life.name)
        return sorted(found, key=lambda each: (each.at, each.wrong.rule))

    @functools.cached_property
    def executed(self) -> list[Reached]:
        """The instructions of the words that can be reached, with the threads of a block that may execute them."""
        return self.reached(self._masks.threads)

    @functools.cached_property
    def executed_together(self) -> list[Reached]:
        """The instructions of the words, with threads of a block that all come to them in some launch."""
        return self.reached_together(self._together)

    @functools.cached_property
    def executed_by_warps(self) -> list[Reached]:
        """The instructions of the words, with warps that execute them as a whole, if they do at all.

        A warp comes as a whole to a barrier of the block, however the way there is decided.
        """
        everyone = (1 << thread_values.threads_of(self._text)) - 1
        comes = {each.offset: each.threads & everyone for each in self.executed}
        meetings: dict[int, tuple[int, int]] = {}
        for number, events in enumerate(self.instructions if comes else ()):
            for event in events:
                if not event.predicated and number not in meetings and _is_of_warp(event.opcode) and event.offset in comes:
                    meetings[number] = event.offset, _whole_warps(comes[event.offset])
        return self.reached_together(self._together, meetings) if meetings else self.executed_together

    @functools.cached_property
    def _masks(self) -> ThreadMasks:
        return self.registers.masks(thread_values.INDEX, thread_values.threads_of(self._text))

    def _together(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate holds in some launch, of threads that come to it together."""
        return self._counted.together(predicate)

    @functools.cached_property
    def _counted(self) -> ThreadMasks:
        """Masks for threads that come together, and see the same of a counter: of the number of a persistent kernel's tile.

        First all registers that change count as such; then not the ones that branches say may differ.
        """
        readers: dict[bytes, set[int]] = {}  # the blocks at whose end a register decides
        for number, block in enumerate(self.blocks):
            predicate = block.branch.predicate if block.branch is not None else b""
            for counter in self.registers.counters(predicate.lstrip(b"!")) if predicate else ():
                readers.setdefault(counter, set()).add(number)
        masks = self._masks
        comes = self._entered(masks.threads, [-1] * len(self.blocks), {}, together=False) if readers else []
        while readers:
            masks = self.registers.masks(thread_values.INDEX, thread_values.threads_of(self._text), counters=frozenset(readers))
            together = self._entered(masks.together, self._next_on_every_way, {}, together=True)
            differing = [name for name, blocks in readers.items() if not self._is_alike(name, blocks, masks, comes, together)]
            for name in differing:
                del readers[name]
            if not differing:
                break
        return masks if readers else self._masks

    def _is_alike(self, name: bytes, readers: Set[int], masks: ThreadMasks, comes: Sequence[int], together: Sequence[int]) -> bool:
        """Return whether a register is the same in all threads that come to some blocks: they all come to what writes it.

        Args:
            name: the register.
            readers: the blocks.
            masks: the masks of threads in which predicates hold.
            comes: a mask of the threads that may come to each block.
            together: a mask of threads that come to it together.
        """
        for *_, offset in self.registers.writes(name):
            block, predicate = self.block_of(offset), predicate_before(self._text, offset)
            sure = together[block] & masks.together(predicate)
            reading = [reader for reader in readers if reader == block or self._leads[block] >> reader & 1]
            if any(comes[reader] & ~sure for reader in reading) or any(each.may_be_skipped(offset) for each in self._stretches(block)):
                return False
            for loop in (each for each in self.loops if block in each and not readers <= each):
                leaving = [(number, way) for number in loop for way in self.ways[number] if way.predicate and way.after not in loop]
                if any((part := masks.together(way.predicate)) & comes[number] and comes[number] & ~part for number, way in leaving):
                    return False
        return True

    @functools.cached_property
    def _leads(self) -> list[int]:
        """A mask of the blocks to which ways lead from each block."""
        leads, order = [0] * len(self.blocks), sorted(self._rank, key=self._rank.__getitem__, reverse=True)
        changed = True
        while changed:
            changed = False
            for number in order:
                found = functools.reduce(int.__or__, (1 << way.after | leads[way.after] for way in self.ways[number] if way.after >= 0), 0)
                changed = changed or found != leads[number]
                leads[number] = found
        return leads

    def _stretches(self, number: int) -> Iterator[Stretch]:
        """The other statements of a block than the ones that lifecycles name."""
        return (each for each in self.blocks[number].events if isinstance(each, Stretch))

    @functools.cached_property
    def _begins(self) -> list[int]:
        return [block.begin for block in self.blocks]

    def block_of(self, place: int) -> int:
        """The number of the block at a place in the text."""
        return bisect.bisect(self._begins, place) - 1

    def reached(self, threads_of: Callable[[bytes], int]) -> list[Reached]:
        """The instructions of the words that can be reached, with the threads that may execute them; none where paths are not followed.

        Args:
            threads_of: a mask of the threads in which a predicate may hold.
        """
        try:
            meeting = [-1] * len(self.blocks)
        except NotFollowedError:
            return []
        return self._reached(threads_of, meeting, together=False)

    def reached_together(
        self, threads_of: Callable[[bytes], int], meetings: Mapping[int, tuple[int, int]] = MappingProxyType({})
    ) -> list[Reached]:
        """The instructions of the words, with threads that all come to them in some launch; none where paths are not followed.

        Where ways part as nothing says which threads take them, the threads meet again where all ways do.

        Args:
            threads_of: a mask of the threads in which a predicate holds in some launch.
            meetings: the place of an instruction and the threads that come to it in any case, by the number of its block.
        """
        try:
            meeting = self._next_on_every_way
        except NotFollowedError:
            return []
        return self._reached(threads_of, meeting, meetings, together=True)

    def _reached(
        self,
        threads_of: Callable[[bytes], int],
        meeting: Sequence[int],
        meetings: Mapping[int, tuple[int, int]] = MappingProxyType({}),
        *,
        together: bool,
    ) -> list[Reached]:
        """The instructions, with the threads that come to them over branches, or to the block where all ways from an earlier one meet."""
        entered = self._entered(threads_of, meeting, meetings, together=together)
        found: list[Reached] = []
        for number, events in enumerate(self.instructions):
            place, met = meetings.get(number, (0, 0))
            for event in events if entered[number] | met else ():
                threads = entered[number] | (met if event.offset > place else 0)
                predicate = predicate_before(self._text, event.offset) if event.predicated else b""
                found.append(Reached(event.offset, event.opcode, threads & threads_of(predicate)))
        return found

    def _entered(
        self, threads_of: Callable[[bytes], int], meeting: Sequence[int], meetings: Mapping[int, tuple[int, int]], *, together: bool
    ) -> list[int]:
        """The threads that come to each block."""
        entered = [0] * len(self.blocks)
        entered[0], waiting = ALL_THREADS, [0, *meetings]
        while waiting:
            number = waiting.pop()
            leaving = entered[number] | meetings.get(number, (0, 0))[1]
            # Nothing says which threads go where an index chooses a label: all may, and none is sure to.
            chosen = ALL_THREADS if not together or len(self.ways[number]) == 1 else 0
            going = [(way.after, leaving & (threads_of(way.predicate) if way.predicate else chosen)) for way in self.ways[number]]
            for after, threads in (*going, (meeting[number], leaving)):
                if after >= 0 and threads & ~entered[after]:
                    entered[after] |= threads
                    waiting.append(after)
        return entered

    def _misuses_of(
        self, machine: _Machine, size: Callable[[int], int | None], capacity: int, objects: Mapping[int, Hashable]
    ) -> list[Misuse]:
        """The misuses of one lifecycle.

        Raises:
            NotFollowedError: the lifecycle is not followed.
        """
        found: dict[_Key, Misuse] = {}
        for steps in self._steps(machine, objects):
            if _may_go_wrong(machine, steps, self._takers, self._rank, self.registers.threads):
                ways = _deciding(steps, self.ways, self._rank)
                walk = _Walk(machine, steps, ways, self.registers, size, capacity, self)
                found |= {(each.at.offset, each.wrong.rule): each for each in walk.misuses()}
        return [*found.values()]

    def by_several(self, at: Happening) -> bool:
        """Return whether several threads come together to an instruction, in some launch."""
        threads = self.threads_together(at)
        return ALIGNED in at.opcode or threads & (threads - 1) != 0

    def threads_together(self, at: Happening) -> int:
        """A mask of threads that all come to an instruction, in some launch."""
        return next((each.threads for each in self.executed_together if each.offset == at.offset), 0)

    def meeting_after(self, place: int) -> tuple[int, int]:
        """The first barrier of the whole block that every way from a place leads to and the thread has not executed: its block and place.

        No other thread can be beyond it before the thread at the place comes to it.  Without one, -1 and -1.
        """
        number = first = self.block_of(place)
        while number >= 0:
            if not any(first in loop and number in loop for loop in self.loops):
                meetings = (each.offset for each in self.instructions[number] if self._is_meeting(each))
                found = next((offset for offset in meetings if offset > place or number != first), -1)
                if found >= 0:
                    return number, found
            number = self._next_on_every_way[number]
        return -1, -1

    def _is_meeting(self, event: Event) -> bool:
        """Return whether an instruction is a barrier for which all threads of the block wait: it names no number of threads."""
        written = self._text[event.offset : self._text.find(b";", event.offset)]
        return not event.predicated and event.opcode.startswith((b"bar.sync", b"barrier.sync", b"barrier.cta.sync")) and b"," not in written

    def _steps(self, machine: _Machine, objects: Mapping[int, Hashable]) -> Iterator[list[list[_Step]]]:
        """The instructions of each block that concern a lifecycle, for each of its objects."""
        of_objects: dict[Hashable, dict[int, list[Event]]] = {}
        of_all: dict[int, list[Event]] = {}
        for number, event in self._concerning(machine):
            if not machine.life.each:
                of_all.setdefault(number, []).append(event)
            elif event.offset in objects:
                of_objects.setdefault(objects[event.offset], {}).setdefault(number, []).append(event)
            elif any(each.of_all for each in machine.on(event.opcode)):
                of_all.setdefault(number, []).append(event)
        shared = {number: [*machine.steps(self._text, events)] for number, events in of_all.items()}
        if not machine.life.each:
            yield [shared.get(number, []) for number in range(len(self.blocks))]
        for own in of_objects.values():
            if not self._happens_once(machine, own):
                steps: list[list[_Step]] = [[] for _ in self.blocks]
                for number in {*own, *shared}:
                    steps[number] = sorted([*machine.steps(self._text, own.get(number, ())), *shared.get(number, ())])
                yield steps

    def _concerning(self, machine: _Machine) -> Iterator[tuple[int, Event]]:
        """The instructions that concern a lifecycle, with the numbers of their blocks."""
        opcodes = {opcode for opcode in self._opcodes if machine.on(opcode)}
        meets = machine.life.meets
        without = {*apart(self._text, self.executed, self.executed_together, meets)} if meets else set[int]()
        for number, events in enumerate(self.instructions):
            for event in events:
                concerns = event.opcode in opcodes and event.offset not in without
                if concerns and self._may_follow(event, machine.on(event.opcode)):
                    yield number, event

    def _may_follow(self, event: Event, transitions: Sequence[Transition]) -> bool:
        """Return whether an instruction does not come before all that one of its transitions is to come after."""
        return any(not each.after or event.offset not in self._before(each.after) for each in transitions)

    def _precede(self, words: tuple[str, ...]) -> frozenset[int]:
        """The places of the instructions from which a way leads to one with an opcode, and to which none leads from one."""
        named = [
            (number, event.offset)
            for number, events in enumerate(self.instructions)
            for event in events
            if any(starts(event.opcode, word.encode()) for word in words)
        ]
        first = dict(reversed(named))
        following = [[way.after for way in ways if way.after >= 0] for ways in self.ways]
        leading: list[list[int]] = [[] for _ in following]
        for number, others in enumerate(following):
            for other in others:
                leading[other].append(number)
        blocks = (_reached(first, leading) | first.keys()) - _reached(first, following)
        instructions = ((number, event.offset) for number in blocks for event in self.instructions[number])
        return frozenset(place for number, place in instructions if place < first.get(number, place + 1))

    def _happens_once(self, machine: _Machine, events: Mapping[int, Sequence[Event]]) -> bool:
        """Return whether all that happens to an object, by the block, is one right instruction that no path repeats: most need no walk."""
        (number, (first, *others)), *more = events.items()
        start = machine.life.start
        may_end = machine.on(EXIT) or any(each.of_all and (each.rule or start in each.states) for each in machine.life.transitions)
        if others or more or may_end or machine.is_wrong(start, first.opcode):
            return False
        return not any(number in loop for loop in self.loops)


class _Machine:
    """The transitions of a lifecycle, by the instruction and the state."""

    def __init__(self, life: Lifecycle) -> None:
        self.life = life
        self._transitions: dict[bytes, list[Transition]] = {}
        self._made: dict[tuple[str, bytes], list[Transition]] = {}
        self.left = {name for each in life.transitions for name in each.states}  # the states in which an instruction counts
        self.harmless = not any(each.rule and life.start in each.states for each in life.transitions)  # nothing is wrong in the first state

    def on(self, opcode: bytes) -> list[Transition]:
        """The transitions that an instruction makes in any state."""
        found = self._transitions.get(opcode)
        if found is None:
            found = self._transitions[opcode] = [each for each in self.life.transitions if is_made(each, opcode)]
        return found

    def made(self, state: str, opcode: bytes) -> list[Transition]:
        """The transitions that an instruction makes in a state."""
        found = self._made.get((state, opcode))
        if found is None:
            found = self._made[state, opcode] = [each for each in self.on(opcode) if state in each.states]
        return found

    def counting(self, state: str, count: int, at: Happening) -> list[Transition]:
        """The transitions that an instruction makes in a state with a number of objects."""
        return [each for each in self.made(state, at.opcode) if not each.counted or count > at.number]

    def is_wrong(self, state: str, opcode: bytes) -> bool:
        """Return whether an instruction may be wrong in a state."""
        return any(not each.to for each in self.made(state, opcode))

    def after(self, held: _Held, at: Happening, most: int) -> set[_Held]:
        """The states that there may be after an instruction, if more objects than a number make no difference."""
        state, count = held
        found = set[_Held]()
        for each in self.counting(state, count, at):
            if each.adds < 0 and count > 1:
                found |= {(state, count - 1), (state, count if count == most else count - 1)}
            elif each.keeps:
                found.add((each.to, count))
            elif each.to:
                found.add((each.to, min((count if each.to == state else 0) + 1, most) if each.adds > 0 else 0))
        return found or {held}

    def number(self, text: bytes, place: int, opcode: bytes) -> int:
        """The number that an instruction at a place of a text names, if it counts."""
        if not any(each.counted for each in self.on(opcode)):
            return 0
        match = _NUMBER.match(text, place + len(opcode))
        return int(match[1]) if match else 0

    def steps(self, text: bytes, events: Iterable[Event]) -> Iterator[_Step]:
        """The steps of instructions of a block: only the first and the last of a run of equal ones, unless each of them counts."""
        for (opcode, predicated), run in itertools.groupby(events, lambda each: (each.opcode, each.predicated)):
            same = [*run]
            alone = len(same) < 3 or predicated or any(each.adds for each in self.on(opcode))
            for each in same if alone else (same[0], same[-1]):
                at = Happening(each.offset, opcode, self.number(text, each.offset, opcode))
                yield _Step(at, predicate_before(text, each.offset) if predicated else b"")


@functools.lru_cache(maxsize=1 << 8)
def _machine(life: Lifecycle) -> _Machine:
    """The transitions of a lifecycle, which all kernels share."""
    return _Machine(life)


def _may_go_wrong(
    machine: _Machine,
    steps: Sequence[Sequence[_Step]],
    takers: Sequence[Sequence[tuple[int, int]]],
    rank: Mapping[int, int],
    threads_of: Callable[[bytes], int],
) -> bool:
    """Return whether an instruction comes at a wrong time on any path that a thread may take.

    Args:
        machine: the lifecycle.
        steps: the instructions of each block that concern it.
        takers: the ways out of each block, with masks of the threads that may take them.
        rank: the place of each block that can be reached, in an order in which it comes before the blocks that follow it.
        threads_of: a mask of the threads in which a predicate may hold.
    """
    first: _Held = (machine.life.start, 0)
    entered: list[dict[_Held, int]] = [{} for _ in steps]  # the threads in each state
    # Only what leaves the first state counts if nothing is wrong in it: threads may come in it to every instruction.
    waiting = [(place, number) for number, place in rank.items() if steps[number]] if machine.harmless else [(0, 0)]
    for _, number in waiting:
        entered[number][first] = ALL_THREADS
    most, fresh = _most_counted(steps), {number for _, number in waiting}
    while waiting:
        _, number = heapq.heappop(waiting)
        fresh.discard(number)
        states = entered[number]
        for at, predicate in steps[number]:
            taking, skipping = (threads_of(predicate), threads_of(opposite(predicate))) if predicate else (ALL_THREADS, 0)
            after: dict[_Held, int] = {}
            for held, threads in states.items():
                if done := threads & taking:
                    if machine.is_wrong(held[0], at.opcode):
                        return True
                    for to in machine.after(held, at, most):
                        after[to] = after.get(to, 0) | done
                if skipped := threads & skipping:
                    after[held] = after.get(held, 0) | skipped
            states = after
        if machine.harmless:
            states = {held: threads for held, threads in states.items() if held != first}
        for following, taking in takers[number] if states else ():
            for held, threads in states.items():
                going = threads & taking
                if following < 0:
                    if going and machine.is_wrong(held[0], EXIT):
                        return True
                elif going & ~entered[following].get(held, 0):
                    entered[following][held] = entered[following].get(held, 0) | going
                    if following not in fresh:
                        fresh.add(following)
                        heapq.heappush(waiting, (rank[following], following))
    return False


def _most_counted(steps: Sequence[Sequence[_Step]]) -> int:
    """The number of objects of which more make no difference: one more than an instruction lets remain, and two."""
    return max((at.number + 1 for block in steps for at, _ in block), default=0) + 1


class _Walk:
    """A walk along all paths through a kernel, for one lifecycle.

    Args:
        machine: the lifecycle.
        steps: the instructions of each block that concern it.
        ways: the ways out of each block.
        predicates: the kernel's predicates.
        size: the size of the object that the instruction at a place makes or ends.
        capacity: the sum of the sizes of the objects that fit.
        paths: the paths through the kernel.
    """

    def __init__(
        self,
        machine: _Machine,
        steps: Sequence[Sequence[_Step]],
        ways: Sequence[Sequence[Way]],
        predicates: Predicates,
        size: Callable[[int], int | None],
        capacity: int,
        paths: KernelPaths,
    ) -> None:
        self._machine, self._steps, self._ways, self._predicates = machine, steps, ways, predicates
        self._size, self._capacity, self._paths = size, capacity, paths
        self._found: dict[_Key, Misuse] = {}
        self._doubtful: list[tuple[_Key, Misuse, int]] = []  # on paths that are not certain, with the threads that take them
        self._right: dict[_Key, int] = {}  # the threads that come to an instruction at a right time

    def misuses(self) -> list[Misuse]:
        """The instructions at a wrong time.

        Raises:
            NotFollowedError: too many paths differ.
        """
        seen: list[set[_Path]] = [set() for _ in self._steps]
        waiting = [(0, _Path(self._machine.life.start))]
        while waiting:
            number, entered = waiting.pop()
            for path in self._through(number, entered):
                for (after, predicate, offset), way in zip(self._ways[number], self._paths.ways[number], strict=True):
                    for going in self._under(path, predicate, offset):
                        left = self._left(going, number, way)
                        if after < 0:
                            self._moved(left, Happening(offset, EXIT))
                        elif left not in seen[after]:
                            seen[after].add(left)
                            waiting.append((after, left))
                            if len(seen[after]) > _MOST_PATHS:
                                raise NotFollowedError
        doubtful = (
            (key, misuse)
            for key, misuse, threads in reversed(self._doubtful)
            if threads & ~self._right.get(key, 0) or not self._may_come_right(misuse)
        )
        return [*(dict(doubtful) | self._found).values()]

    def _through(self, number: int, path: _Path) -> list[_Path]:
        """The paths after the instructions of a block: under a predicate, one is executed or not."""
        paths = [path]
        for at, predicate in self._steps[number]:
            if not predicate:
                paths = [self._moved(each, at) for each in paths]
                continue
            going: list[_Path] = []
            for before in paths:
                done = [self._moved(each, at) for each in self._under(before, predicate, at.offset)]
                skipped = [] if done and self._may_begin(before, at, predicate) else self._under(before, opposite(predicate), at.offset)
                going += [*done, *skipped]
            paths = [*dict.fromkeys(going)]
        return paths

    def _may_begin(self, path: _Path, at: Happening, predicate: bytes) -> bool:
        """Return whether an instruction takes a path out of a first state in which nothing is wrong, in any thread.

        What may have begun must end: a path on which it has not begun makes nothing right.
        """
        life = self._machine.life
        leaves = self._machine.harmless and not life.shared and path.state == life.start
        if not leaves or not any(each.to for each in self._machine.counting(path.state, len(path.since), at)):
            return False
        return not self._predicates.condition(predicate, at.offset).decided

    def _under(self, path: _Path, predicate: bytes, offset: int) -> list[_Path]:
        """A path if a predicate holds; none if it cannot."""
        if not predicate:
            return [path]
        both = joined(path.conditions, self._predicates.condition(predicate, offset))
        return [] if both is None else [path._replace(conditions=both.conditions, certain=path.certain and both.certain)]

    def _left(self, path: _Path, number: int, way: Way) -> _Path:
        """A path after a way out of a block: not certain if the way ends a loop by a counter on whose earlier numbers the path depends."""
        counters = {each.value.text for each in path.conditions if each.value.changes} if path.certain and way.predicate else None
        if not counters or not any(number in loop and way.after not in loop for loop in self._paths.loops):
            return path
        return path._replace(certain=self._predicates.condition(way.predicate, way.offset).value.text not in counters)

    def _moved(self, path: _Path, at: Happening) -> _Path:
        """A path after an instruction; what is wrong is remembered."""
        moved, wrong = path, set[str]()
        for transition in self._machine.counting(path.state, len(path.since), at):
            if not transition.to:
                if self._counts(transition, path, at) and self._is_wrong(transition, path, at):
                    wrong.add(transition.rule)
                    if not transition.full:
                        moved = path._replace(state=self._machine.life.start, since=())  # the rest is followed as if it were fixed
            elif transition.adds < 0 and len(path.since) > 1:
                moved = path._replace(since=self._less(path.since, at), changed=path.changed | {at.offset})
            elif transition.keeps:
                moved = path._replace(state=transition.to)
            else:
                since = (*path.since[1 - _MOST_HELD :], at) if transition.adds > 0 and transition.to == path.state else (at,)
                changed = path.changed | {at.offset} if self._machine.life.shared else path.changed
                moved = path._replace(state=transition.to, since=since, changed=changed)
        if wrong and path.fault < 0:
            moved = moved._replace(fault=at.offset)
        # Followed as if it were fixed, the instruction may be right in the next round: that does not count, nor that nothing has begun.
        begun = path.since or path.fault >= 0 or path.state != self._machine.life.start or not self._machine.harmless
        for rule in {each.rule for each in self._machine.on(at.opcode)} - wrong if path.fault != at.offset and begun else ():
            self._right[at.offset, rule] = self._right.get((at.offset, rule), 0) | common(path.conditions)
        if moved.state in self._machine.left:
            return moved
        # Nothing can be wrong any more: only the threads count that come to later instructions.
        return _Path(moved.state, conditions=frozenset(each for each in moved.conditions if each.decided), certain=False, fault=moved.fault)

    def _counts(self, transition: Transition, path: _Path, at: Happening) -> bool:
        """Return whether the conditions under which a transition is wrong hold on a path."""
        if transition.several and not self._paths.by_several(path.since[-1]):
            return False
        if transition.by_others and not self._by_others(transition.by_others, path, at):
            return False
        return not transition.full or self._is_full(path, at)

    def _by_others(self, words: Sequence[str], path: _Path, at: Happening) -> bool:
        """Return whether other threads execute one of some instructions: any thread, if the path has none.

        Where it has none, what is not a condition on the thread may hold for the others, too: then they may have nothing to do.
        """
        own = common(path.conditions)
        if not path.since and any(own & ~each.surely and not each.elects for each in path.conditions):
            return False
        named = (other for other in self._reachable((), at) if any(starts(other.opcode, word.encode()) for word in words))
        return any(not path.since or self._paths.threads_together(other) & ~own for other in named)

    def _is_wrong(self, transition: Transition, path: _Path, at: Happening) -> bool:
        """Remember an instruction that comes at a wrong time on a path; False if another thread may have made it right."""
        conditions = sorted(path.conditions, key=lambda each: each.offset)
        if not path.certain:
            conditions = [each for each in conditions if each.decided]
        fault = Misuse(at, transition, path.since, tuple(conditions))
        if self._machine.life.shared and self._may_differ(path, fault):
            return False
        key = at.offset, transition.rule
        if path.certain and not transition.always:
            if key not in self._found or self._found[key].wrong.advice:
                self._found[key] = fault
        else:
            self._doubtful.append((key, fault, common(path.conditions)))
        return True

    def _may_come_right(self, misuse: Misuse) -> bool:
        """Return whether any way from the instruction that led to a state to the one that is wrong in it leads to another state between."""
        since, states, threads_of = misuse.since[-1:], misuse.wrong.states, self._predicates.threads
        if self._machine.life.shared or not since:
            return True
        begins = ((number, place) for number, steps in enumerate(self._steps) for place, step in enumerate(steps) if step.at == since[0])
        waiting = [(number, place + 1, threads_of(self._steps[number][place].predicate), False) for number, place in begins]
        entered: dict[tuple[int, bool], int] = {}
        while waiting:
            number, first, threads, left = waiting.pop()
            for place, (at, predicate) in enumerate(self._steps[number][first:], first):
                done = threads & threads_of(predicate)
                if done and left and at == misuse.at:
                    return True
                if not left and any(each.to not in ("", *states) for state in states for each in self._machine.made(state, at.opcode)):
                    waiting.append((number, place + 1, done, True))
                    threads &= threads_of(opposite(predicate)) if predicate else 0
                elif at in (since[0], misuse.at):
                    threads &= threads_of(opposite(predicate)) if predicate else 0
            for after, predicate, _ in self._ways[number]:
                going = threads & threads_of(predicate)
                if going and left and after < 0 and misuse.at.opcode == EXIT:
                    return True
                if after >= 0 and going & ~entered.get((after, left), 0):
                    entered[after, left] = entered.get((after, left), 0) | going
                    waiting.append((after, 0, going, left))
        return False

    def _less(self, since: tuple[Happening, ...], at: Happening) -> tuple[Happening, ...]:
        """The objects that are left after an instruction that ends one: one of its size, or else the last."""
        size = self._size(at.offset)
        place = next((place for place, each in enumerate(since) if self._size(each.offset) == size), len(since) - 1)
        return since[:place] + since[place + 1 :]

    def _is_full(self, path: _Path, at: Happening) -> bool:
        """Return whether an object does not fit beside those that are held."""
        return sum(self._size(each.offset) or 0 for each in (*path.since, at)) > self._capacity

    def _may_differ(self, path: _Path, fault: Misuse) -> bool:
        """Return whether another thread may have ended a state: an instruction can be reached that does, and is not on the path."""
        return any(
            other.offset not in path.changed
            and any(each.to not in ("", path.state) for each in self._machine.made(path.state, other.opcode))
            for other in self._reachable([each for each in fault.conditions if each.uniform], fault.at)
        )

    def _reachable(self, conditions: Sequence[Condition], at: Happening) -> Iterator[Happening]:
        """The instructions to which any thread can come, not through an instruction, under conditions that all threads share."""
        meeting, barrier = self._paths.meeting_after(at.offset)
        entered, waiting = {0: ALL_THREADS}, [0]
        while waiting:
            number = waiting.pop()
            threads = entered[number]
            for other, predicate in self._steps[number]:
                if number == meeting and other.offset > barrier:
                    break
                if threads & self._predicates.threads(predicate):
                    yield other
                if other == at:
                    threads &= self._predicates.threads(opposite(predicate)) if predicate else 0
            for after, predicate, offset in self._paths.ways[number] if number != meeting else ():
                going = threads & self._predicates.threads(predicate)
                if predicate and contradicts(conditions, self._predicates.condition(predicate, offset)):
                    continue
                if after >= 0 and going & ~entered.get(after, 0):
                    entered[after] = entered.get(after, 0) | going
                    waiting.append(after)


def ends_before_branches(life: Lifecycle, text: bytes) -> bool:
    """Return whether a lifecycle comes to a state that nothing leaves before a branch does: then no path need be followed.

    Where nothing is wrong in the first state, a branch before the first change makes no difference.
    """
    machine, state, count = _machine(life), life.start, 0
    harmless = (life.start,) if machine.harmless else ()
    words = b"|".join(re.escape(word) for word in sorted({word.encode() for each in life.transitions for word in each.on}, reverse=True))
    for match in re.finditer(rb"(?:bra|" + words + rb")(?![\w:$%])[\w.:]*", text):
        made = machine.counting(state, count, Happening(match.start(), match[0], machine.number(text, match.start(), match[0])))
        ends = (starts(match[0], b"bra") and state not in harmless) or any(not each.to for each in made)
        if (not made and not ends) or (life.meets and is_partial(text, match.start())):
            continue
        near = max(0, match.start() - _LONGEST_PREDICATE)
        begin = max(text.rfind(mark, near, match.start()) for mark in (b";", b"{", b"}", b":", b"\n"))
        predicate = text[begin + 1 : match.start()].strip()
        if predicate and not predicate.startswith(b"@"):
            continue  # an operand
        if ends:
            return False
        if made and not predicate:
            count = count + 1 if made[-1].adds > 0 and made[-1].to == state else max(made[-1].adds, 0)
            state = made[-1].to
            if state not in machine.left:
                return True
    return False


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


def _deciding(steps: Sequence[Sequence[_Step]], ways: Sequence[Sequence[Way]], rank: Mapping[int, int]) -> list[Sequence[Way]]:
    """The ways out of each block, without the predicates of branches that make no difference, and past blocks where nothing happens.

    Such a branch closes a loop, or both ways come to the same instructions first.

    Args:
        steps: the instructions of each block.
        ways: the ways out of each block.
        rank: the place of each block in an order in which it comes before the blocks that follow it, except where a loop closes.
    """
    # Masks of the blocks with the first instructions that each way comes to; the last bit is the end.
    reached = dict.fromkeys(range(len(steps)), 0) | {-1: 1 << len(steps)}
    order = sorted(rank, key=rank.__getitem__, reverse=True)
    changed = True
    while changed:
        changed = False
        for number in order:
            first = 1 << number if steps[number] else functools.reduce(int.__or__, (reached[way.after] for way in ways[number]), 0)
            changed = changed or first != reached[number]
            reached[number] = first
    deciding = [*ways]
    past: dict[int, int] = {}  # the block that follows one where nothing happens, if it is one whatever branches do
    for number in order:
        closes = any(way.after >= 0 and rank[way.after] <= rank[number] for way in ways[number])
        if closes or len({reached[way.after] for way in ways[number]}) == 1:
            deciding[number] = [Way(way.after, b"", way.offset) for way in ways[number]]
        afters = {past.get(way.after, way.after) for way in deciding[number]} - {number}
        if len(afters) == 1 and -1 not in afters and not steps[number] and not any(way.predicate for way in deciding[number]):
            (past[number],) = afters
    return [[Way(past.get(after, after), predicate, offset) for after, predicate, offset in each] for each in deciding]


def _reached(numbers: Iterable[int], ways: Sequence[Sequence[int]]) -> set[int]:
    """The blocks to which ways lead from some."""
    reached, waiting = set[int](), [*numbers]
    while waiting:
        fresh = {*ways[waiting.pop()]} - reached
        reached |= fresh
        waiting += fresh
    return reached


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


def is_made(each: Transition, opcode: bytes) -> bool:
    """Return whether an instruction makes a transition in any of its states."""
    return is_named(each, opcode) and not any(has_modifier(opcode, name) for name in each.without)


def is_named(each: Transition | Counterpart, opcode: bytes) -> bool:
    """Return whether a part of a protocol names an instruction."""
    return any(starts(opcode, word.encode()) for word in each.on) and all(has_modifier(opcode, name) for name in each.modifiers)


def has_modifier(opcode: bytes, name: str) -> bool:
    """Return whether an opcode has a modifier, with or without more after ``::``."""
    return any(part == name.encode() or part.split(b"::")[0] == name.encode() for part in opcode.split(b"."))
