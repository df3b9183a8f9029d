"""The states that a spec gives to what a kernel uses, along the paths that a thread can take, and what comes at a wrong time.

A path counts only if the text justifies it: its conditions can hold together (:mod:`ptxmma.ptx.conditions`).  A loop may be left after any
round.  A state that the threads of a block share counts only if no other thread can have changed it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx.blocks import Graph, NotFollowedError, blocks, opposite
from ptxmma.ptx.conditions import Condition, Predicates, contradicts, joined
from ptxmma.ptx.flow_events import Asynchronous, Event
from ptxmma.ptx.outline import Outline, starts

if TYPE_CHECKING:
    from ptxmma.model import Lifecycle, Transition

#: In place of an instruction: the end of the kernel.
EXIT = b"exit"
_ENDS = (b"ret", b"exit")
#: Paths that differ at the start of a block: a kernel with more is not followed.
_MOST_PATHS = 256
#: Objects that are held at once: more are not counted.
_MOST_HELD = 32
_PREDICATE = re.compile(rb"@\s*(!?)\s*([\w$%]+)\s*\Z")
_LONGEST_PREDICATE = 128


class Happening(NamedTuple):
    """An instruction that changes a state, or the end of a kernel.

    Attributes:
        offset: its place; of the end of a kernel, the place of the statement that ends it.
        opcode: the opcode; :data:`EXIT` for the end of a kernel.
    """

    offset: int
    opcode: bytes


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


class _Position(NamedTuple):
    """The state of a lifecycle on a path, the instructions that led to it, and the places of all that changed it."""

    state: str
    since: tuple[Happening, ...] = ()
    changed: frozenset[int] = frozenset()


class _Path(NamedTuple):
    """The facts on a path: a position in each lifecycle, and the conditions."""

    positions: tuple[_Position, ...]
    conditions: frozenset[Condition] = frozenset()


class _Way(NamedTuple):
    """A way out of a block: the next one (-1: the end of the kernel), the predicate that must hold, and the place of the branch."""

    after: int
    predicate: bytes
    offset: int


class KernelPaths:
    """The paths through a kernel.

    Args:
        text: the kernel's text.
        lifecycles: the lifecycles to follow.
        size: the size of the object that the instruction at a place makes or ends; None where it is not known.
        capacity: the sum of the sizes of the objects that fit.

    Raises:
        NotFollowedError: a label is missing, a brace is not closed, or there are too many branches.
    """

    def __init__(self, text: bytes, lifecycles: Sequence[Lifecycle], size: Callable[[int], int | None], capacity: int) -> None:
        self._text, self._lifecycles, self._size, self._capacity = text, lifecycles, size, capacity
        words = {word.encode() for each in lifecycles for transition in each.transitions for word in transition.on} - {EXIT}
        self._blocks = blocks(Outline(text, Asynchronous({word: {} for word in words})))
        counted = {word.encode() for life in lifecycles for each in life.transitions if each.adds for word in each.on}
        self._events = [[*_ends_of_runs([each for each in block.events if isinstance(each, Event)], counted)] for block in self._blocks]
        self._ways = [self._ways_out(number) for number in range(len(self._blocks))]
        graph = Graph([[way.after for way in ways if way.after >= 0] for ways in self._ways])
        self._order, self._rank = graph.order, {number: place for place, number in enumerate(graph.order)}
        self._free = self._free_branches()
        self._predicates: Predicates | None = None  # none: all paths count
        self._found: dict[tuple[int, str], Misuse] = {}
        self._tables: dict[tuple[tuple[str, ...], bytes], list[tuple[int, list[Transition]]]] = {}

    def misuses(self) -> list[Misuse]:
        """The instructions at a wrong time, in the order of the text: one for each place and rule.

        Most kernels have nothing wrong even if all paths count, so that their predicates need not be read.

        Raises:
            NotFollowedError: too many paths differ.
        """
        self._walk()
        if self._found:
            self._predicates = Predicates(self._text)
            self._found.clear()
            self._walk()
        return [self._found[key] for key in sorted(self._found)]

    # --- the graph ---

    def _ways_out(self, number: int) -> list[_Way]:
        _, follows, branch = self._blocks[number]
        if branch is None:
            return [_Way(after, b"", 0) for after in follows] or [_Way(-1, b"", len(self._text))]
        falls = follows[-1:] if branch.predicate else []
        taken = list(follows[: len(follows) - len(falls)])
        if branch.opcode.partition(b".")[0] in _ENDS:
            taken.append(-1)
        ways = [_Way(after, branch.predicate, branch.begin) for after in taken]
        return ways + [_Way(after, opposite(branch.predicate), branch.begin) for after in falls]

    def _free_branches(self) -> set[int]:
        """The blocks whose branch makes no difference: it closes a loop, or both ways come to the same instructions first."""
        reached: dict[int, frozenset[int]] = dict.fromkeys(range(-1, len(self._blocks)), frozenset())
        reached[-1] = frozenset([-1])
        changed = True
        while changed:
            changed = False
            for number in reversed(self._order):
                first = (
                    frozenset([number]) if self._events[number] else frozenset().union(*(reached[way.after] for way in self._ways[number]))
                )
                changed = changed or first != reached[number]
                reached[number] = first
        return {
            number
            for number in self._order
            if len({reached[way.after] for way in self._ways[number]}) == 1
            or any(way.after >= 0 and self._rank[way.after] <= self._rank[number] for way in self._ways[number])
        }

    def _reachable(self, conditions: Sequence[Condition], at: Happening) -> Iterator[Event]:
        """The instructions to which any thread can come, not through an instruction, under conditions that all threads share."""
        seen, waiting = {0}, [0]
        while waiting:
            number = waiting.pop()
            stops = any(event.offset == at.offset and not event.predicated for event in self._events[number])
            yield from (event for event in self._events[number] if not stops or event.offset < at.offset)
            for after, predicate, offset in () if stops else self._ways[number]:
                if after >= 0 and after not in seen and not (predicate and contradicts(conditions, self._condition(predicate, offset))):
                    seen.add(after)
                    waiting.append(after)

    def _condition(self, predicate: bytes, offset: int) -> Condition:
        assert self._predicates is not None  # paths have conditions only after it is read
        return self._predicates.condition(predicate, offset)

    # --- the walk ---

    def _walk(self) -> None:
        first = _Path(tuple(_Position(each.start) for each in self._lifecycles))
        seen: list[set[_Path]] = [set() for _ in self._blocks]
        waiting = [(0, first)]
        while waiting:
            number, entered = waiting.pop()
            for path in self._through(number, entered):
                for after, predicate, offset in self._ways[number]:
                    for left in [path] if number in self._free else self._under(path, predicate, offset):
                        if after < 0:
                            self._moved(left, Happening(offset, EXIT))
                        elif left not in seen[after]:
                            seen[after].add(left)
                            waiting.append((after, left))
                            if len(seen[after]) > _MOST_PATHS:
                                raise NotFollowedError

    def _through(self, number: int, path: _Path) -> list[_Path]:
        """The paths after the instructions of a block: under a predicate, one is executed or not."""
        paths = [path]
        for event in self._events[number]:
            at = Happening(event.offset, event.opcode)
            predicate = self._predicate_of(event)
            if not predicate:
                paths = [self._moved(each, at) for each in paths]
                continue
            done = [self._moved(each, at) for before in paths for each in self._under(before, predicate, event.offset)]
            skipped = [each for before in paths for each in self._under(before, opposite(predicate), event.offset)]
            paths = [*dict.fromkeys((*done, *skipped))]
        return paths

    def _predicate_of(self, event: Event) -> bytes:
        start = max(0, event.offset - _LONGEST_PREDICATE)
        match = _PREDICATE.search(self._text[start : event.offset]) if event.predicated else None
        return match[1] + match[2] if match else b""

    def _under(self, path: _Path, predicate: bytes, offset: int) -> list[_Path]:
        """A path if a predicate holds; none if it cannot."""
        if self._predicates is None or not predicate:
            return [path]
        conditions = joined(path.conditions, self._predicates.condition(predicate, offset))
        return [] if conditions is None else [path._replace(conditions=conditions)]

    def _moved(self, path: _Path, at: Happening) -> _Path:
        """A path after an instruction; what is wrong is reported."""
        concerned = self._concerned(tuple(position.state for position in path.positions), at.opcode)
        if not concerned:
            return path
        positions = [*path.positions]
        for number, transitions in concerned:
            positions[number] = self._position(self._lifecycles[number], transitions, positions[number], at, path.conditions)
        return path._replace(positions=tuple(positions))

    def _concerned(self, states: tuple[str, ...], opcode: bytes) -> list[tuple[int, list[Transition]]]:
        """The numbers of the lifecycles that an instruction concerns in some states, with their transitions."""
        found = self._tables.get((states, opcode))
        if found is None:
            each = enumerate(_transitions(life, state, opcode) for life, state in zip(self._lifecycles, states, strict=True))
            found = self._tables[states, opcode] = [(number, transitions) for number, transitions in each if transitions]
        return found

    def _position(
        self, life: Lifecycle, transitions: Sequence[Transition], position: _Position, at: Happening, conditions: frozenset[Condition]
    ) -> _Position:
        """The position after an instruction with some transitions."""
        before = position
        for transition in transitions:
            if not transition.to:
                if not transition.full or self._is_full(before, at):
                    fault = Misuse(at, transition, before.since, tuple(sorted(conditions, key=lambda each: each.offset)))
                    if not (life.shared and self._may_differ(life, before, fault)):
                        self._found.setdefault((at.offset, transition.rule), fault)
                        if not transition.full:
                            position = before._replace(state=life.start, since=())  # the rest is followed as if it were fixed
            elif transition.adds < 0 and len(position.since) > 1:
                position = position._replace(since=self._less(position.since, at), changed=position.changed | {at.offset})
            else:
                since = (*position.since[1 - _MOST_HELD :], at) if transition.adds > 0 and transition.to == position.state else (at,)
                position = _Position(transition.to, since, position.changed | {at.offset} if life.shared else position.changed)
        return position

    def _less(self, since: tuple[Happening, ...], at: Happening) -> tuple[Happening, ...]:
        """The objects that are left after an instruction that ends one: one of its size, or else the last."""
        size = self._size(at.offset)
        place = next((place for place, each in enumerate(since) if self._size(each.offset) == size), len(since) - 1)
        return since[:place] + since[place + 1 :]

    def _is_full(self, position: _Position, at: Happening) -> bool:
        """Return whether an object does not fit beside those that are held."""
        return sum(self._size(each.offset) or 0 for each in (*position.since, at)) > self._capacity

    def _may_differ(self, life: Lifecycle, position: _Position, fault: Misuse) -> bool:
        """Return whether another thread may have ended a state: an instruction can be reached that does, and is not on the path."""
        if self._predicates is None:
            return False
        shared = [each for each in fault.conditions if each.uniform]
        return any(
            event.offset not in position.changed
            and any(each.to not in ("", position.state) for each in _transitions(life, position.state, event.opcode))
            for event in self._reachable(shared, fault.at)
        )


def _ends_of_runs(events: Sequence[Event], counted: Set[bytes]) -> Iterator[Event]:
    """The instructions of a block: only the first and the last of a run of equal ones, unless each of them counts."""
    for (opcode, predicated), run in itertools.groupby(events, lambda each: (each.opcode, each.predicated)):
        same = [*run]
        alone = len(same) < 3 or predicated or any(starts(opcode, word) for word in counted)
        yield from same if alone else (same[0], same[-1])


def _transitions(life: Lifecycle, state: str, opcode: bytes) -> list[Transition]:
    return [each for each in life.transitions if state in each.states and any(starts(opcode, word.encode()) for word in each.on)]
