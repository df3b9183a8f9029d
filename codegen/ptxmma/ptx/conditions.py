"""Conditions under which a path through a function is taken, and the paths that no thread can take.

Predicates are traced to what they are computed from.  Two predicates that compare one value with constants are held against each other;
two that come from different values are independent if nothing feeds both.  A path is sound only if all its conditions can hold together.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.thread_masks import ALL_THREADS, ThreadMasks
from ptxmma.ptx.writes import Writes, named_in, predicate_before

#: A comparison of the values that tell paths apart.
_COMPARED = re.compile(rb"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.[bsu](?:16|32|64)")
_TESTS: dict[bytes, Callable[[int, int], bool]] = {
    **{name: getattr(operator, name.decode()) for name in (b"eq", b"ne", b"lt", b"le", b"gt", b"ge")},
    **{b"lo": operator.lt, b"ls": operator.le, b"hi": operator.gt, b"hs": operator.ge},
}
#: Instructions that read memory: their results change from one execution to the next.
_CHANGING = re.compile(rb"(?!ld\.(?:param|const)\b)(?:ld|ldu|atom|tex|suld|mbarrier|call|tcgen05|clusterlaunchcontrol)\b")
_POLLED = re.compile(rb"mbarrier\.(?:try|test)_wait\b")
_THREAD = re.compile(rb"%(?:tid\b|laneid|warpid|lanemask|smid|clock|globaltimer)")
_CLUSTER_SIZE = re.compile(rb"%cluster_ncta(?:id|rank)\b")
#: Causes that differ between the threads of a thread block, or between executions.
_THREADS, _MEMORY, _ELECTED = b"threads", b"memory", b"elected"
#: Instructions between a predicate and its causes; beyond, it counts as one that changes.
_DEEPEST = 24
#: The numbers of a parameter that are tried, from 0: loops that compilers unroll differ in the first few.
_MOST_TRIED = 64


class Value(NamedTuple):
    """A register's value.

    Attributes:
        text: the expression that computes it; the register itself where it changes.
        causes: the special registers and parameters that it is computed from, and kinds of others.
        changes: true if another execution may give another value.
        polled: true if the value says that an mbarrier has completed a phase, which may happen at any time.
    """

    text: bytes
    causes: frozenset[bytes]
    changes: bool = False
    polled: bool = False


#: A comparison, the constant with which a value is compared, and the outcome.
_Outcome = tuple[bytes, int, bool]


class Condition(NamedTuple):
    """An outcome of a comparison that a path depends on.

    Attributes:
        value: the value that is compared.
        test: the comparison, ``b"eq"``.
        number: the constant that it is compared with.
        holds: the outcome.
        predicate: the register that holds the outcome.
        offset: the place of the instruction that depends on it.
        threads: a mask of the threads that may see the outcome, by ``%tid.x``.
        surely: a mask of the threads that see it, whatever else is true.
        numbers: a mask of the small numbers for which its only cause gives the outcome; 0 if it has another cause, or is not computed.
    """

    value: Value
    test: bytes
    number: int
    holds: bool
    predicate: bytes
    offset: int
    threads: int
    surely: int
    numbers: int

    @property
    def decided(self) -> bool:
        """True if the thread alone decides the outcome."""
        return self.threads == self.surely

    @property
    def elects(self) -> bool:
        """True if the outcome says whether the thread is the elected one, and nothing else."""
        return self.value.causes == {_ELECTED}

    @property
    def of_one_block(self) -> bool:
        """True if the size of the cluster alone decides the outcome, and a cluster of one thread block gives it."""
        decides = bool(self.value.causes) and all(map(_CLUSTER_SIZE.match, self.value.causes))
        return decides and not self.value.changes and _TESTS[self.test](1, self.number) == self.holds

    @property
    def uniform(self) -> bool:
        """True if all threads of a thread block see the same outcome, at all times."""
        return not self.value.changes and self.value.causes.isdisjoint((_THREADS, _MEMORY, _ELECTED))

    def holds_for(self, number: int) -> bool:
        """Return whether a number gives the outcome."""
        return _TESTS[self.test](number, self.number) == self.holds

    @property
    def of_launch(self) -> bool:
        """True if all thread blocks of a launch see the same outcome: only parameters and constants decide it."""
        return self.uniform and not any(cause.startswith(b"%") for cause in self.value.causes)

    def outcome(self) -> _Outcome:
        """The outcome of the comparison, whatever the value is."""
        return self.test, self.number, self.holds


class Joined(NamedTuple):
    """The conditions of a path with a further one.

    Attributes:
        conditions: the conditions; the further one is left out where it adds nothing, or depends on the others in an unknown way.
        certain: true if it is known that they can hold together.
    """

    conditions: frozenset[Condition]
    certain: bool = True


def joined(conditions: frozenset[Condition], fresh: Condition) -> Joined | None:
    """The conditions of a path with a further one; None if they cannot hold together."""
    if fresh.value.polled:
        return Joined(conditions)
    threads = common(conditions)
    if not threads & fresh.threads:
        return None
    if not threads & ~fresh.surely:  # every thread of the path sees it
        return Joined(conditions)
    narrower = conditions | {fresh} if threads & ~fresh.threads else conditions
    if fresh.decided:
        return Joined(narrower, _are_independent(conditions, fresh))
    alike = [each for each in conditions if each.value.text == fresh.value.text]
    if not alike:
        certain = _are_independent(conditions, fresh)
        return Joined(conditions | {fresh} if certain else narrower, certain)
    if fresh.value.changes:
        return Joined(conditions, certain=False)
    if not _can_hold(frozenset([*map(Condition.outcome, alike), fresh.outcome()])):
        return None
    return Joined(conditions if any(each[:4] == fresh[:4] for each in alike) else conditions | {fresh})


def _are_independent(conditions: frozenset[Condition], fresh: Condition) -> bool:
    """Return whether a further condition holds on some path on which others do.

    Nothing feeds both, or a thread surely sees both, or some number of all that feeds them gives these outcomes.  The path itself decides
    a value that is one constant or another.
    """
    if fresh.value.changes and not fresh.value.causes:
        return False
    seen = functools.reduce(operator.and_, [each.surely for each in conditions if each.surely], fresh.surely or ALL_THREADS)
    others = [each for each in conditions if not (seen and each.surely)]
    causes = {_THREADS} if seen and fresh.surely else fresh.value.causes
    related = [each for each in others if not each.value.causes.isdisjoint(causes)]
    alike = all(each.value.causes == fresh.value.causes for each in related)
    return not related or (alike and functools.reduce(operator.and_, [each.numbers for each in related], fresh.numbers) != 0)


@functools.lru_cache(maxsize=1 << 12)
def common(conditions: frozenset[Condition]) -> int:
    """A mask of the threads, by ``%tid.x``, that may see the outcomes of all conditions."""
    return functools.reduce(operator.and_, [each.threads for each in conditions], ALL_THREADS)


def contradicts(conditions: Iterable[Condition], fresh: Condition) -> bool:
    """Return whether a further condition cannot hold together with some."""
    alike = [each for each in conditions if each.value.text == fresh.value.text]
    return bool(alike) and not _can_hold(frozenset([*map(Condition.outcome, alike), fresh.outcome()]))


@functools.lru_cache(maxsize=1 << 12)
def _can_hold(outcomes: frozenset[_Outcome]) -> bool:
    """Return whether a number has some outcomes of comparisons: if any has, one beside a constant has."""
    numbers = {constant + step for _, constant, _ in outcomes for step in (-1, 0, 1)}
    return any(all(_TESTS[test](number, constant) == holds for test, constant, holds in outcomes) for number in numbers)


class Predicates(Writes):
    """The predicates of a function, and what its registers are computed from.

    Args:
        text: the function's text.
    """

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self._values: dict[bytes, Value] = {}
        self._others: dict[tuple[bytes, int, frozenset[bytes]], ThreadMasks] = {}  # several rules ask for the same ones
        self._threads = thread_values.threads_of(text)
        self._masks = ThreadMasks(self, thread_values.INDEX, self._threads)
        self._by_cause: dict[bytes, ThreadMasks] = {}  # by a parameter or a special register, for small numbers
        self._conditions: dict[tuple[bytes, int], Condition] = {}
        self._changing = functools.cache(self._that_change)
        self.is_by_thread = functools.cache(self._differs)

    def condition(self, predicate: bytes, offset: int) -> Condition:
        """The condition that a predicate, ``b"!%p1"``, holds."""
        known = self._conditions.get((predicate, offset))
        if known is None:
            known = self._conditions[predicate, offset] = self._read(predicate, offset)
        return known

    def _read(self, predicate: bytes, offset: int) -> Condition:
        name = predicate.lstrip(b"!")
        writes = self.writes(name)
        if len(writes) == 1 and (compared := _COMPARED.fullmatch(writes[0][0])):
            one, _, other = writes[0][2].partition(b",")
            number = literals.integer(other.strip())
            if number is not None:
                return self._condition(self._value(self._source(one.strip(), writes[0][3]), 0), compared[1], number, predicate, offset)
        return self._condition(self._value(name, 0), b"ne", 0, predicate, offset)

    def _condition(self, value: Value, test: bytes, number: int, predicate: bytes, offset: int) -> Condition:
        name, holds = predicate.lstrip(b"!"), not predicate.startswith(b"!")
        numbers = 0
        if len(value.causes) == 1 and not value.changes and value.causes.isdisjoint((_THREADS, _MEMORY, _ELECTED)):
            (cause,) = value.causes
            if cause not in self._by_cause:
                register = cause if cause.startswith(b"%") else b"[%s]" % cause
                self._by_cause[cause] = ThreadMasks(self, register, _MOST_TRIED)
            numbers = self._by_cause[cause].surely(predicate)
        return Condition(value, test, number, holds, name, offset, self.threads(predicate), self.surely(predicate), numbers)

    def _source(self, name: bytes, offset: int) -> bytes:
        """A register, or the one that it copies at a place, though it is written elsewhere: the index of a loop, before the loop."""
        before = self.write_before(name, offset) if len(self.writes(name)) > 1 else None
        if before is None or not before[0].startswith(b"mov.") or self.is_of_list(before) or predicate_before(self._text, before[3]):
            return name
        words = named_in(before[2])
        known = len(words) == 1 and (words[0].startswith(b"%") or literals.integer(words[0]) is not None)
        return words[0] if known and not self.writes(words[0]) else name

    def threads(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate, ``b"!%p1"``, may hold."""
        return self._masks.threads(predicate)

    def surely(self, predicate: bytes) -> int:
        """A mask of the threads in which a predicate holds, whatever is not known of it."""
        return self._masks.surely(predicate)

    def is_elected(self, predicate: bytes, depth: int = 0) -> bool:
        """Return whether one thread of a warp at most finds that a predicate, ``b"!%p1"``, holds: ``elect.sync`` has chosen it."""
        name, holds = predicate.lstrip(b"!"), not predicate.startswith(b"!")
        writes = self.writes(name)
        if len(writes) != 1 or depth > _DEEPEST:
            return False
        opcode, _, operands, _ = writes[0]
        words = named_in(operands)
        if opcode == b"not.pred":
            return self.is_elected((b"!" if holds else b"") + words[0], depth + 1)
        if opcode in (b"and.pred", b"or.pred"):
            parts = (word if holds else b"!" + word for word in words)
            return (opcode == b"and.pred") == holds and any(self.is_elected(part, depth + 1) for part in parts)
        return holds and opcode.startswith(b"elect.")

    def masks(
        self, register: bytes, count: int, differing: re.Pattern[bytes] = _THREAD, counters: frozenset[bytes] = frozenset()
    ) -> ThreadMasks:
        """Masks by a special register, with an elected thread.

        Args:
            register: the special register.
            count: the number of its values.
            differing: the special registers that differ between the threads, or thread blocks, that the masks have.
            counters: registers that change, of which all threads that read them together see the same.
        """
        if (register, count, counters) not in self._others:

            def is_uniform(name: bytes) -> bool:
                value = self.condition(name, 0).value
                causes = value.causes - {_THREADS, _ELECTED} if differing is not _THREAD else value.causes
                differs = causes & {_THREADS, _ELECTED, _MEMORY} or any(map(differing.match, causes))
                return value.polled or not (differs or (value.changes and not counters.issuperset(self._changing(name))))

            like = self._masks if (register, count) == (thread_values.INDEX, self._threads) else None
            self._others[register, count, counters] = (
                self.masks(register, count).agreeing(is_uniform) if counters else ThreadMasks(self, register, count, is_uniform, like)
            )
        return self._others[register, count, counters]

    def _differs(self, name: bytes) -> bool:
        """Return whether a register is computed from what differs between the threads of a block."""
        return any(map(_THREAD.match, self.sources([name])))

    def counters(self, name: bytes) -> Sequence[bytes]:
        """The registers that change of which a predicate is computed; none if it is of memory or the thread, too."""
        value = self.condition(name, 0).value
        alike = value.changes and not value.polled and value.causes.isdisjoint((_THREADS, _MEMORY, _ELECTED))
        return self._changing(name) if alike else ()

    def _that_change(self, name: bytes) -> Sequence[bytes]:
        """The registers, of a register and all from which it is computed, that several instructions write."""
        return [source for source in self.sources([name]) if len(self.writes(source)) > 1]

    def _value(self, name: bytes, depth: int) -> Value:
        value = self._values.get(name)
        if value is None:
            self._values[name] = Value(name, frozenset([name]), changes=True)  # for a value that is computed from itself
            value = self._values[name] = self._computed(name, depth)
        return value

    def _computed(self, name: bytes, depth: int) -> Value:
        writes = self.writes(name)
        if not writes:
            if name[:1].isdigit() or name.startswith(b"-"):
                return Value(name, frozenset())
            return Value(name, frozenset([_THREADS if _THREAD.match(name) else name]))
        if depth > _DEEPEST:
            return Value(name, frozenset([name, _THREADS, _MEMORY]), changes=True)
        causes, texts = set[bytes](), []
        changes, polled = len(writes) > 1, len(writes) == 1
        for opcode, place, rest, offset in writes:
            operands = [self._value(self._source(word, offset), depth + 1) for word in named_in(rest)]
            changing = _CHANGING.match(opcode) is not None
            polled = polled and (_POLLED.match(opcode) is not None or (len(operands) == 1 and operands[0].polled))
            changes = changes or changing or any(each.changes for each in operands)
            causes |= {cause for each in operands for cause in each.causes}
            if changing:
                causes.add(_MEMORY)
            elif opcode.startswith(b"elect"):
                causes.add(_ELECTED)
            copied = opcode.startswith(b"mov.") and len(operands) == 1
            texts.append(operands[0].text if copied else b"%s.%d(%s)" % (opcode, place, b",".join(each.text for each in operands)))
        return Value(name if changes else texts[0], frozenset(causes), changes, polled)
