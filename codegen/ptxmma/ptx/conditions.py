"""Conditions under which a path through a function is taken, and the paths that no thread can take.

Predicates are traced to what they are computed from.  Two predicates that compare one value with constants are held against each other;
two that come from different values are independent if nothing feeds both.  A path is sound only if all its conditions can hold together.
"""

from __future__ import annotations

import bisect
import functools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.graphs import reachable
from ptxmma.ptx.text_loops import labels_of
from ptxmma.ptx.thread_masks import ALL_THREADS, ThreadMasks, Write

#: A comparison of the values that tell paths apart.
_COMPARED = re.compile(rb"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.[bsu](?:16|32|64)")
_TESTS: dict[bytes, Callable[[int, int], bool]] = {
    **{name: getattr(operator, name.decode()) for name in (b"eq", b"ne", b"lt", b"le", b"gt", b"ge")},
    **{b"lo": operator.lt, b"ls": operator.le, b"hi": operator.gt, b"hs": operator.ge},
}
#: An instruction that writes registers, after a blank or a mark: so the search is fast.
_WRITES = re.compile(rb"[\s;{}]([a-z]\w*\.[\w.:]*)\s+((?!\d)[\w$%|]+|\{[^{};]*\})\s*,([^;]*)")
#: Instructions that read memory: their results change from one execution to the next.
_CHANGING = re.compile(rb"(?!ld\.(?:param|const)\b)(?:ld|ldu|atom|tex|suld|mbarrier|call|tcgen05|clusterlaunchcontrol)\b")
#: Names; special registers with their dimension.
_words_of = re.compile(rb"[\w$%]+(?:\.[xyzw]\b)?").findall
_LISTED = re.compile(rb"\s+\{([^{}]*)")
_POLLED = re.compile(rb"mbarrier\.(?:try|test)_wait\b")
_THREAD = re.compile(rb"%(?:tid\b|laneid|warpid|lanemask|smid|clock|globaltimer)")
#: Causes that differ between the threads of a thread block, or between executions.
_THREADS, _MEMORY, _ELECTED = b"threads", b"memory", b"elected"
#: A label to which no branch goes: LLVM writes it for debuggers.
_OF_DEBUGGERS = b"$L__tmp"
#: A block of inline assembly that begins with a declaration and has no block in it; names that it declares one by one.
_BLOCK = re.compile(rb"\{\s*\.reg\b(?:[^{}]{0,1000}\{[^{};]*\}){0,8}[^{}]{0,1000}\}")
_DECLARED = re.compile(rb"\.reg\s*\.\w+\s+([^;<{}]*);")
_APART = re.compile(rb"([^\w$%]+)")
_PREDICATE = re.compile(rb"@\s*(!?)\s*([\w$%]+)\s*")
_LONGEST_PREDICATE = 128
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


class _Block(NamedTuple):
    """A block of inline assembly.

    Attributes:
        start: its place.
        end: the place after it.
        own: names for its registers that no other block has, of registers whose names others have, too.
    """

    start: int
    end: int
    own: dict[bytes, bytes]


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
    def uniform(self) -> bool:
        """True if all threads of a thread block see the same outcome, at all times."""
        return not self.value.changes and self.value.causes.isdisjoint((_THREADS, _MEMORY, _ELECTED))

    def admits(self, number: int) -> bool:
        """Return whether the value can be a number."""
        return _TESTS[self.test](number, self.number) == self.holds


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
    if not _possible([*alike, fresh]):
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
    return bool(alike) and not _possible([*alike, fresh])


def _possible(conditions: list[Condition]) -> bool:
    """Return whether a number satisfies conditions on one value: if any does, one beside a constant does."""
    numbers = {each.number + step for each in conditions for step in (-1, 0, 1)}
    return any(all(each.admits(number) for each in conditions) for number in numbers)


def predicate_before(text: bytes, place: int) -> bytes:
    """The predicate of an instruction at a place of a text, ``b"!%p1"``; empty without one, or where it cannot be read."""
    at = text.rfind(b"@", max(0, place - _LONGEST_PREDICATE), place)
    match = _PREDICATE.fullmatch(text, at, place) if at >= 0 else None
    return match[1] + match[2] if match else b""


class Predicates:
    """The predicates of a function.

    A register of one name in several blocks of inline assembly is the block's own where an instruction of the block reads it.  Elsewhere
    registers of one name in several scopes count as one that changes.

    Args:
        text: the function's text.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._values: dict[bytes, Value] = {}
        self._written: dict[bytes, list[Write]] = {}
        self._others: dict[tuple[bytes, int, frozenset[bytes]], ThreadMasks] = {}  # several rules ask for the same ones
        self._threads = thread_values.threads_of(text)
        self._masks = ThreadMasks(self.writes, thread_values.INDEX, self._threads, constant_before=self._constant_before)
        self._by_cause: dict[bytes, ThreadMasks] = {}  # by a parameter or a special register, for small numbers
        self._conditions: dict[tuple[bytes, int], Condition] = {}
        self._changing = functools.cache(self._that_change)

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
                self._by_cause[cause] = ThreadMasks(self.writes, register, _MOST_TRIED)
            numbers = self._by_cause[cause].surely(predicate)
        return Condition(value, test, number, holds, name, offset, self.threads(predicate), self.surely(predicate), numbers)

    def writes(self, name: bytes) -> list[Write]:
        """The instructions that write a register, in the order of the text."""
        return self._writes.get(name, [])

    @functools.cached_property
    def _writes(self) -> dict[bytes, list[Write]]:
        """The instructions that write each register."""
        writes: dict[bytes, list[Write]] = {}
        blocks = self._blocks()
        starts = [block.start for block in blocks]
        for match in _WRITES.finditer(self._text):
            opcode, target, operands = match.groups()
            offset = match.start(1)
            number = bisect.bisect(starts, offset) - 1 if starts else -1
            own = blocks[number].own if number >= 0 and offset < blocks[number].end else {}
            if own:
                operands = b"".join(own.get(word, word) for word in _APART.split(operands))
            for place, name in enumerate((target,) if target[1:].isalnum() else _words_of(target)):
                for known in (name, own[name]) if name in own else (name,):
                    found = writes.get(known)
                    if found is None:
                        writes[known] = [(opcode, place, operands, offset)]
                        continue
                    again = len(found) == 1 and opcode.startswith(b"mov.")
                    selected = self._selected(writes, known, operands, offset, own) if again else None
                    if selected is not None:
                        found[0] = selected
                    else:
                        found.append((opcode, place, operands, offset))
        return writes

    def _selected(
        self, writes: dict[bytes, list[Write]], name: bytes, operand: bytes, offset: int, own: dict[bytes, bytes]
    ) -> Write | None:
        """The selection that a copy under a predicate makes, if the only write before is a copy, too, and nothing comes between."""
        opcode, _, before, place = writes[name][0]
        guard = predicate_before(self._text, offset) if opcode.startswith(b"mov.") else b""
        once = guard and self._text.count(name, place, offset) == 1
        if not once or self._is_parted(place, offset) or predicate_before(self._text, place):
            return None
        copied = writes.get(before.strip(), [])
        if len(copied) == 1 and copied[0][0].startswith(b"mov.") and not self._is_parted(copied[0][3], place):
            before = copied[0][2]
        chosen = (operand, before) if not guard.startswith(b"!") else (before, operand)
        guard = guard.lstrip(b"!")
        return b"selp" + opcode[len(b"mov") :], 0, b", ".join((*chosen, own.get(guard, guard))), offset

    def _blocks(self) -> list[_Block]:
        """The blocks of inline assembly that declare registers."""
        declared = [
            (match, {name for names in _DECLARED.findall(match[0]) for name in _words_of(names)}) for match in _BLOCK.finditer(self._text)
        ]
        count = Counter(name for _, names in declared for name in names)
        return [
            _Block(match.start(), match.end(), {name: b"%b$%d" % (name, match.start()) for name in names if count[name] > 1})
            for match, names in declared
        ]

    def is_of_list(self, write: Write) -> bool:
        """Return whether an instruction writes the registers of a list in braces."""
        return _LISTED.match(self._text, write[3] + len(write[0])) is not None

    def count(self, write: Write) -> int:
        """The number of registers that an instruction writes."""
        listed = _LISTED.match(self._text, write[3] + len(write[0]))
        return listed[1].count(b",") + 1 if listed is not None else 1

    def values_written(self, name: bytes) -> list[Write]:
        """The instructions that write a register, with a constant or a variable in place of a copied register that is known to have one.

        Compilers begin the registers of a loop with copies of one of them.
        """
        if name not in self._written:
            self._written[name] = [
                (opcode, place, self._constant_before(operands.strip(), offset) if opcode.startswith(b"mov.") else operands, offset)
                for opcode, place, operands, offset in self.writes(name)
            ]
        return self._written[name]

    def _constant_before(self, source: bytes, offset: int) -> bytes:
        """A register, or the constant or variable that the last instruction before a place gives it, if no label comes between."""
        before = self.write_before(source, offset)
        constant = before[2].strip() if before is not None and before[0].startswith(b"mov.") else b""
        if not constant or (literals.integer(constant) is None and (constant.startswith(b"%") or self.writes(constant))):
            return source
        return constant

    def _source(self, name: bytes, offset: int) -> bytes:
        """A register, or the one that it copies at a place, though it is written elsewhere: the index of a loop, before the loop."""
        before = self.write_before(name, offset) if len(self.writes(name)) > 1 else None
        if before is None or not before[0].startswith(b"mov.") or self.is_of_list(before) or predicate_before(self._text, before[3]):
            return name
        words = _words_of(before[2])
        known = len(words) == 1 and (words[0].startswith(b"%") or literals.integer(words[0]) is not None)
        return words[0] if known and not self.writes(words[0]) else name

    def write_before(self, name: bytes, offset: int) -> Write | None:
        """The last instruction before a place that writes a register, if no label comes between; None where another may write it."""
        before = next((write for write in reversed(self.writes(name)) if write[3] < offset), None)
        return None if before is None or self._is_parted(before[3], offset) else before

    def _is_parted(self, first: int, last: int) -> bool:
        """Return whether a label lies between two places, from which a branch may come."""
        number = bisect.bisect(self._labels, first)
        return number < len(self._labels) and self._labels[number] < last

    @functools.cached_property
    def _labels(self) -> list[int]:
        """The places of the labels to which a branch may go."""
        return [place for name, place in labels_of(self._text) if not name.startswith(_OF_DEBUGGERS)]

    def sources(self, names: Iterable[bytes]) -> Set[bytes]:
        """Registers, and all from which they are computed, at any remove."""
        return reachable(names, lambda name: (word for _, _, operands, _ in self.writes(name) for word in words_of(operands))).keys()

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
        words = _words_of(operands)
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
                self.masks(register, count).agreeing(is_uniform)
                if counters
                else ThreadMasks(self.writes, register, count, is_uniform, like, self._constant_before)
            )
        return self._others[register, count, counters]

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
            operands = [self._value(self._source(word, offset), depth + 1) for word in _words_of(rest)]
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
