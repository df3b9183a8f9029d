"""Instructions at a wrong time: the states that a spec gives to what a kernel uses, along the paths that a thread can take.

A path counts only if the text justifies it: its conditions can hold together (:mod:`ptxmma.ptx.conditions`).  Where that is not known, an
instruction is at a wrong time only if no path comes to it at a right one.  A loop may be left after any round.  A state that the threads of
a block share counts only if no other thread can have changed it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.kernels import Kernel, Way, threads_at
from ptxmma.check.lifecycle_steps import may_go_wrong, steps_of
from ptxmma.check.transitions import ALIGNED, EXIT, Happening, Machine, Step, machine_of
from ptxmma.ptx.addresses import Place
from ptxmma.ptx.blocks import NotFollowedError, opposite
from ptxmma.ptx.conditions import Condition, Joined, common, contradicts, joined
from ptxmma.ptx.graphs import spread
from ptxmma.ptx.outline import is_any
from ptxmma.ptx.thread_masks import ALL_THREADS

if TYPE_CHECKING:
    from ptxmma.model import Lifecycle, Transition

#: Paths that differ at the start of a block: of a kernel with more, those in one state are merged, or it is not followed.
_MOST_PATHS = 256
#: Objects that are held at once: more are not counted.
_MOST_HELD = 32
#: The place of an instruction, and the rule that it breaks.
_Key = tuple[int, str]


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
        certain: true if they surely hold together.
        fault: the place of the first instruction at a wrong time; -1 without one.
    """

    state: str
    since: tuple[Happening, ...] = ()
    changed: frozenset[int] = frozenset()
    conditions: frozenset[Condition] = frozenset()
    certain: bool = True
    fault: int = -1


def misuses(
    kernel: Kernel,
    lifecycles: Iterable[Lifecycle],
    size: Callable[[int], int | None] = lambda _: None,
    capacity: int = 0,
    objects_of: Callable[[Lifecycle], Mapping[int, Hashable]] = lambda _: MappingProxyType({}),
) -> list[Misuse]:
    """The instructions at a wrong time, in the order of the text: one for each place, rule and lifecycle.

    Args:
        kernel: the kernel.
        lifecycles: the lifecycles to follow.
        size: the size of the object that the instruction at a place makes or ends; None where it is not known.
        capacity: the sum of the sizes of the objects that fit.
        objects_of: the object of each instruction, by its place, for a lifecycle of which each object has a state of its own.

    A lifecycle is not followed, and goes to :attr:`Kernel.unfollowed`, where a label is missing, a brace is not closed, there are too many
    branches, or too many paths differ.
    """
    found: list[Misuse] = []
    for life in lifecycles:
        machine, of_life = machine_of(life), dict[_Key, Misuse]()
        try:
            for held, steps in steps_of(kernel, machine, objects_of(life) if life.each else {}):
                if may_go_wrong(kernel, machine, steps):
                    walk = _Walk(kernel, machine, steps, size, capacity, held.places if isinstance(held, Place) else 1)
                    of_life |= {(each.at.offset, each.wrong.rule): each for each in walk.misuses()}
        except NotFollowedError:
            kernel.unfollowed.add(life.name)
        else:
            found += of_life.values()
    return sorted(found, key=lambda each: (each.at, each.wrong.rule))


class _Walk:
    """A walk along all paths through a kernel, for one lifecycle.

    Args:
        kernel: the kernel.
        machine: the lifecycle.
        steps: the instructions of each block that concern it.
        size: the size of the object that the instruction at a place makes or ends.
        capacity: the sum of the sizes of the objects that fit.
        turn: the instructions after which the object comes again: as many as a ring has places.
    """

    def __init__(
        self,
        kernel: Kernel,
        machine: Machine,
        steps: Sequence[Sequence[Step]],
        size: Callable[[int], int | None],
        capacity: int,
        turn: int,
    ) -> None:
        self._kernel, self._machine, self._steps, self._size, self._capacity = kernel, machine, steps, size, capacity
        self._turn = turn
        # Of so many objects, another of the same instruction makes no difference, unless their sizes count, or each is ended by itself.
        remain = max((step.at.number for block in steps for step in block), default=0)
        single = any(each.full or each.adds < 0 for each in machine.life.transitions)
        self._enough = _MOST_HELD + 1 if single else max(turn, remain + 1)
        self._ways, self._predicates, self._threads_of = _deciding(kernel, steps), kernel.registers, kernel.registers.threads
        self._reachable, self._joined = functools.cache(self._reach), functools.cache(self._join)
        self._runs, self._comes_right = functools.cache(self._in_runs), functools.cache(self._may_come_right)
        self._found: dict[_Key, Misuse] = {}
        self._doubtful: list[tuple[_Key, Misuse, int]] = []  # on paths that are not certain, with the threads that take them
        self._right: dict[_Key, int] = {}  # the threads that come to an instruction at a right time
        self._later: dict[_Key, int] = {}  # the same, after an instruction at a wrong time
        self._late: set[int] = set()  # the places of instructions that add an object when nothing can be wrong any more

    def misuses(self) -> list[Misuse]:
        """The instructions at a wrong time.

        Raises:
            NotFollowedError: too many paths differ in their states.
        """
        try:
            self._follow()
        except NotFollowedError:
            for known in (self._doubtful, self._right, self._later):
                known.clear()
            self._follow(merged=True)
        # A path after a fault may be right by that fault: it counts as long as any fault is left to report.
        doubtful = self._doubts(self._right, self._later) or ({} if self._found else self._doubts(self._right))
        return [*(doubtful | self._found).values()]

    def _follow(self, *, merged: bool = False) -> None:
        """Follow all paths; where they are merged, those in one state of some threads become one, of which nothing is certain."""
        seen: list[set[_Path]] = [set() for _ in self._steps]
        waiting = [(0, _Path(self._machine.life.start))]
        while waiting:
            number, entered = waiting.pop()
            for path in self._through(number, entered) if self._steps[number] else (entered,):
                for (after, predicate, offset), way in zip(self._ways[number], self._kernel.ways[number], strict=True):
                    for going in self._under(path, predicate, offset) if predicate else (path,):
                        left = self._left(going, number, way) if way.predicate and going.certain else going
                        if merged:
                            left = left._replace(conditions=_decided(left.conditions), certain=False)
                        if after < 0:
                            self._moved(left, Happening(offset, EXIT))
                        elif left not in seen[after]:
                            seen[after].add(left)
                            waiting.append((after, left))
                            if len(seen[after]) > _MOST_PATHS:
                                raise NotFollowedError

    def _doubts(self, *rights: Mapping[_Key, int]) -> dict[_Key, Misuse]:
        """The misuses on paths that are not certain to which no other path comes at a right time."""
        return {
            key: misuse
            for key, misuse, threads in reversed(self._doubtful)
            if threads & ~functools.reduce(int.__or__, [right.get(key, 0) for right in rights])
            or not self._comes_right(misuse._replace(since=misuse.since[:1], conditions=()))
        }

    def _through(self, number: int, path: _Path) -> list[_Path]:
        """The paths after the instructions of a block: those under one predicate are executed or not."""
        paths = [path]
        for predicate, run in self._runs(number):
            going: list[_Path] = []
            for before in paths:
                done = self._under(before, predicate, run[0].offset)
                for at in run:
                    done = [self._moved(each, at) for each in done]
                begins = done and any(self._may_begin(before, at, predicate) for at in run)
                going += [*done, *(self._under(before, opposite(predicate), run[0].offset) if predicate and not begins else ())]
            paths = [*dict.fromkeys(going)]
        return paths

    def _in_runs(self, number: int) -> list[tuple[bytes, list[Happening]]]:
        """The instructions of a block that follow each other under one predicate, which nothing writes between them."""
        runs: list[tuple[bytes, list[Happening]]] = []
        for at, predicate in self._steps[number]:
            last, run = runs[-1] if runs else (b"", [at])
            writes = self._predicates.writes(predicate.lstrip(b"!"))
            if not runs or last != predicate or any(run[-1].offset < write[3] < at.offset for write in writes):
                runs.append((predicate, [at]))
            else:
                run.append(at)
        return runs

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
        both = self._joined(path.conditions, predicate, offset)
        if both is not None and both.conditions is path.conditions and both.certain:
            return [path]
        return [] if both is None else [path._replace(conditions=both.conditions, certain=path.certain and both.certain)]

    def _join(self, conditions: frozenset[Condition], predicate: bytes, offset: int) -> Joined | None:
        return joined(conditions, self._predicates.condition(predicate, offset))

    def _left(self, path: _Path, number: int, way: Way) -> _Path:
        """A path after a way out of a block: not certain if the way ends a loop by a counter on whose earlier numbers the path depends."""
        counters = _counters(path.conditions)
        if not counters or not any(number in loop and way.after not in loop for loop in self._kernel.graph.loops):
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
                since = self._more(path.since, at) if transition.adds > 0 and transition.to == path.state else (at,)
                changed = path.changed | {at.offset} if self._machine.life.shared else path.changed
                moved = path._replace(state=transition.to, since=() if transition.to in self._machine.bare else since, changed=changed)
        if wrong and path.fault < 0:
            moved = moved._replace(fault=at.offset)
        # Followed as if it were fixed, the instruction may be right in the next round: that does not count, nor that nothing has begun.
        begun = path.since or path.fault >= 0 or path.state != self._machine.life.start or not self._machine.harmless
        for rule in self._machine.rules(at.opcode) - wrong if path.fault != at.offset and begun else ():
            right = self._right if path.fault < 0 else self._later
            right[at.offset, rule] = right.get((at.offset, rule), 0) | common(path.conditions)
        if moved.state in self._machine.left:
            return moved
        # Nothing can be wrong any more: only the threads count that come to later instructions.
        if path.state == moved.state and any(each.adds > 0 for each in self._machine.on(at.opcode)):
            self._late.add(at.offset)
        return _Path(moved.state, conditions=_decided(moved.conditions), certain=False, fault=moved.fault)

    def _counts(self, transition: Transition, path: _Path, at: Happening) -> bool:
        """Return whether the conditions under which a transition is wrong hold on a path."""
        if len(path.since) < self._turn and self._turn > 1:
            return False
        if transition.several and not self._by_several(path.since[-1]):
            return False
        apart = self._machine.life.apart
        if apart and threads_at(self._kernel.executed, at.offset) & self._kernel.executing(apart):
            return False
        if transition.by_others and not self._by_others(transition.by_others, path, at):
            return False
        return not transition.full or self._is_full(path, at)

    def _by_others(self, words: tuple[str, ...], path: _Path, at: Happening) -> bool:
        """Return whether other threads execute one of some instructions: any thread, if the path has none.

        Where it has none, what is not a condition on the thread may hold for the others, too: then they may have nothing to do.
        """
        own = common(path.conditions)
        if not path.since and any(own & ~each.surely and not each.elects for each in path.conditions):
            return False
        last = path.since[-1].offset if path.since else -1
        beside = threads_at(self._kernel.executed, last) & ~threads_at(self._kernel.executed, at.offset)
        if beside and is_any(path.since[-1].opcode, words):
            return True  # what memory decides is alike for the threads that may come to it with this one
        named = (other for other in self._reachable((), at) if is_any(other.opcode, words))
        return any(not path.since or threads_at(self._kernel.executed_together, other.offset) & ~own for other in named)

    def _is_wrong(self, transition: Transition, path: _Path, at: Happening) -> bool:
        """Remember an instruction that comes at a wrong time on a path; False if another thread makes it right, or none can be harmed."""
        if self._machine.life.of_cluster and any(each.of_one_block for each in path.conditions):
            return False
        conditions = sorted(path.conditions, key=lambda each: each.offset)
        if not path.certain:
            conditions = [each for each in conditions if each.decided]
        fault = Misuse(at, transition, path.since, tuple(conditions))
        if self._machine.life.shared and self._may_differ(path, fault):
            return False
        key = at.offset, transition.rule
        if not path.certain or transition.always:
            self._doubtful.append((key, fault, common(path.conditions)))
        elif key not in self._found or self._found[key].wrong.advice:
            self._found[key] = fault
        return True

    def _may_come_right(self, misuse: Misuse) -> bool:
        """Return whether any way from the first instruction that led to a state to the one that is wrong in it leads to another between.

        So it may if that first instruction adds an object to earlier ones, of which nothing can be wrong any more on some path.
        """
        since, states, threads_of = misuse.since[:1], misuse.wrong.states, self._threads_of
        if self._machine.life.shared or not since or since[0].offset in self._late:
            return True
        right: dict[tuple[int, int, bool], int] = {}  # masks of the threads that come to it after they have left the state
        # This thread does once more what others do: a loop of it has a round.
        words = tuple(word.encode() for word in misuse.wrong.by_others)
        again = {number for number, steps in enumerate(self._steps) if words and any(each.at.opcode.startswith(words) for each in steps)}

        def leaving(node: tuple[int, int, bool]) -> Iterator[tuple[tuple[int, int, bool], int]]:
            """The ways on from an instruction of a block, for threads that have or have not left the state."""
            (number, first, left), threads = node, ALL_THREADS
            for place, (at, predicate) in enumerate(self._steps[number][first:], first):
                done = threads & threads_of(predicate)
                if left and at == misuse.at:
                    right[node] = right.get(node, 0) | done
                leaves = not left and any(each.to not in ("", *states) for state in states for each in self._machine.made(state, at.opcode))
                if leaves:
                    yield (number, place + 1, True), done
                if leaves or at in (since[0], misuse.at):
                    threads &= threads_of(opposite(predicate)) if predicate else 0
            past = self._kernel.graph.past(number, again) if again and len(self._kernel.ways[number]) > 1 else ()
            for after, predicate, _ in self._kernel.ways[number] if again else self._ways[number]:
                if after in past:
                    continue
                if after >= 0:
                    yield (after, 0, left), threads & threads_of(predicate)
                elif left and misuse.at.opcode == EXIT:
                    right[node] = right.get(node, 0) | threads & threads_of(predicate)

        begins = ((number, place) for number, steps in enumerate(self._steps) for place, step in enumerate(steps) if step.at == since[0])
        found = spread({(number, place + 1, False): threads_of(self._steps[number][place].predicate) for number, place in begins}, leaving)
        return any(found[node] & threads for node, threads in right.items())

    def _by_several(self, at: Happening) -> bool:
        """Return whether several threads come together to an instruction, in some launch."""
        return ALIGNED in at.opcode or threads_at(self._kernel.executed_together, at.offset).bit_count() > 1

    def _more(self, since: tuple[Happening, ...], at: Happening) -> tuple[Happening, ...]:
        """The objects that are held after an instruction that adds one."""
        return since if len(since) >= self._enough and at in since else (*since[1 - _MOST_HELD :], at)

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
            for other in self._reachable(tuple(each for each in fault.conditions if each.uniform), fault.at)
        )

    def _reach(self, conditions: tuple[Condition, ...], at: Happening) -> Collection[Happening]:
        """The instructions to which any thread can come, not through an instruction, under conditions that all threads share."""
        meeting, barrier = self._kernel.meeting_after(at.offset)

        def through(number: int, threads: int) -> tuple[list[Happening], int]:
            """The instructions of a block that threads execute, and the threads that leave it."""
            executed: list[Happening] = []
            for other, predicate in self._steps[number]:
                if number == meeting and other.offset > barrier:
                    break
                if threads & self._threads_of(predicate):
                    executed.append(other)
                if other == at:
                    threads &= self._threads_of(opposite(predicate)) if predicate else 0
            return executed, threads

        def leaving(number: int) -> Iterator[tuple[int, int]]:
            _, threads = through(number, ALL_THREADS)
            for after, predicate, offset in self._kernel.ways[number] if number != meeting else ():
                if after >= 0 and not (predicate and contradicts(conditions, self._predicates.condition(predicate, offset))):
                    yield after, threads & self._threads_of(predicate)

        return {each: None for number, threads in spread({0: ALL_THREADS}, leaving).items() for each in through(number, threads)[0]}


@functools.lru_cache(maxsize=1 << 10)
def _counters(conditions: frozenset[Condition]) -> frozenset[bytes]:
    """The values of conditions that another execution may change."""
    return frozenset(each.value.text for each in conditions if each.value.changes)


@functools.lru_cache(maxsize=1 << 10)
def _decided(conditions: frozenset[Condition]) -> frozenset[Condition]:
    """The conditions that the thread alone decides."""
    return frozenset(each for each in conditions if each.decided)


def _deciding(kernel: Kernel, steps: Sequence[Sequence[Step]]) -> list[Sequence[Way]]:
    """The ways out of each block, without the predicates of branches that make no difference, and past blocks where nothing happens.

    Such a branch closes a loop, or both ways come to the same instructions first.

    Args:
        kernel: the kernel.
        steps: the instructions of each block.
    """
    ways, rank, leading = kernel.ways, kernel.graph.rank, kernel.graph.leading
    # Masks of the blocks with the first instructions that each block comes to; the last bit is the end.
    end = 1 << len(steps)
    first = {
        number: 1 << number if steps[number] else end for number in rank if steps[number] or any(way.after < 0 for way in ways[number])
    }
    spread(first, lambda number: ((other, -1) for other in leading[number] if not steps[other]), rank=lambda number: -rank[number])
    deciding: list[Sequence[Way]] = [*ways]
    past: dict[int, int] = {}  # the block that follows one where nothing happens, if it is one whatever branches do
    for number in reversed(kernel.graph.order):
        if number in kernel.graph.closing or len({first.get(way.after, 0) if way.after >= 0 else end for way in ways[number]}) == 1:
            deciding[number] = [Way(way.after, b"", way.offset) for way in ways[number]]
        afters = {past.get(way.after, way.after) for way in deciding[number]} - {number}
        if len(afters) == 1 and -1 not in afters and not steps[number] and not any(way.predicate for way in deciding[number]):
            (past[number],) = afters
    return [[Way(past.get(after, after), predicate, offset) for after, predicate, offset in each] for each in deciding]
