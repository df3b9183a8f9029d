"""Conditions under which a path through a function is taken, and the paths that no thread can take.

Predicates are traced to what they are computed from.  Two predicates that compare one value with constants are held against each other;
two that come from different values are independent if nothing feeds both.  A path is sound only if all its conditions can hold together.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ptxmma.ptx import literals

#: A comparison of the values that tell paths apart.
_COMPARED = re.compile(rb"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.[bsu](?:16|32|64)")
_TESTS: dict[bytes, Callable[[int, int], bool]] = {
    **{name: getattr(operator, name.decode()) for name in (b"eq", b"ne", b"lt", b"le", b"gt", b"ge")},
    **{b"lo": operator.lt, b"ls": operator.le, b"hi": operator.gt, b"hs": operator.ge},
}
_WRITES = re.compile(rb"(?<![\w$%.])([a-z]\w*\.[\w.:]*)\s+([\w$%|]+|\{[^{};]*\})\s*,([^;]*)")
#: Instructions that read memory: their results change from one execution to the next.
_CHANGING = re.compile(rb"(?!ld\.(?:param|const)\b)(?:ld|ldu|atom|tex|suld|mbarrier|call|tcgen05|clusterlaunchcontrol)\b")
#: Names; special registers with their dimension.
_words_of = re.compile(rb"[\w$%]+(?:\.[xyzw]\b)?").findall
_POLLED = re.compile(rb"mbarrier\.(?:try|test)_wait\b")
_THREAD = re.compile(rb"%(?:tid\b|laneid|warpid|lanemask|smid|clock|globaltimer)")
#: Causes that differ between the threads of a thread block, or between executions.
_THREADS, _MEMORY, _ELECTED = b"threads", b"memory", b"elected"
#: Instructions between a predicate and its causes; beyond, it counts as one that changes.
_DEEPEST = 24


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


class Condition(NamedTuple):
    """An outcome of a comparison that a path depends on.

    Attributes:
        value: the value that is compared.
        test: the comparison, ``b"eq"``.
        number: the constant that it is compared with.
        holds: the outcome.
        predicate: the register that holds the outcome.
        offset: the place of the instruction that depends on it.
    """

    value: Value
    test: bytes
    number: int
    holds: bool
    predicate: bytes
    offset: int

    @property
    def uniform(self) -> bool:
        """True if all threads of a thread block see the same outcome, at all times."""
        return not self.value.changes and self.value.causes.isdisjoint((_THREADS, _MEMORY, _ELECTED))

    def admits(self, number: int) -> bool:
        """Return whether the value can be a number."""
        return _TESTS[self.test](number, self.number) == self.holds


def joined(conditions: frozenset[Condition], fresh: Condition) -> frozenset[Condition] | None:
    """The conditions of a path with a further one; None if they cannot hold together, or it is not known that they can."""
    if fresh.value.polled:
        return conditions
    alike = [each for each in conditions if each.value.text == fresh.value.text]
    if not alike:
        others = (each.value.causes for each in conditions)
        return conditions | {fresh} if all(fresh.value.causes.isdisjoint(causes) for causes in others) else None
    if fresh.value.changes or not _possible([*alike, fresh]):
        return None
    return conditions if any(each[:4] == fresh[:4] for each in alike) else conditions | {fresh}


def contradicts(conditions: Iterable[Condition], fresh: Condition) -> bool:
    """Return whether a further condition cannot hold together with some."""
    alike = [each for each in conditions if each.value.text == fresh.value.text]
    return bool(alike) and not _possible([*alike, fresh])


def _possible(conditions: list[Condition]) -> bool:
    """Return whether a number satisfies conditions on one value: if any does, one beside a constant does."""
    numbers = {each.number + step for each in conditions for step in (-1, 0, 1)}
    return any(all(each.admits(number) for each in conditions) for number in numbers)


class Predicates:
    """The predicates of a function.

    Registers of one name in several scopes count as one that changes.

    Args:
        text: the function's text.
    """

    def __init__(self, text: bytes) -> None:
        self._writes: dict[bytes, list[tuple[bytes, int, bytes]]] = {}
        for opcode, target, rest in _WRITES.findall(text):
            for place, name in enumerate(_words_of(target)):
                self._writes.setdefault(name, []).append((opcode, place, rest))
        self._values: dict[bytes, Value] = {}

    def condition(self, predicate: bytes, offset: int) -> Condition:
        """The condition that a predicate, ``b"!%p1"``, holds."""
        name, holds = predicate.lstrip(b"!"), not predicate.startswith(b"!")
        writes = self._writes.get(name, [])
        if len(writes) == 1 and (compared := _COMPARED.fullmatch(writes[0][0])):
            one, _, other = writes[0][2].partition(b",")
            number = literals.integer(other.strip())
            if number is not None:
                return Condition(self._value(one.strip(), 0), compared[1], number, holds, name, offset)
        return Condition(self._value(name, 0), b"ne", 0, holds, name, offset)

    def _value(self, name: bytes, depth: int) -> Value:
        value = self._values.get(name)
        if value is None:
            self._values[name] = Value(name, frozenset([name]), changes=True)  # for a value that is computed from itself
            value = self._values[name] = self._computed(name, depth)
        return value

    def _computed(self, name: bytes, depth: int) -> Value:
        writes = self._writes.get(name, [])
        if not writes:
            if name[:1].isdigit() or name.startswith(b"-"):
                return Value(name, frozenset())
            return Value(name, frozenset([_THREADS if _THREAD.match(name) else name]))
        if depth > _DEEPEST:
            return Value(name, frozenset([name, _THREADS, _MEMORY]), changes=True)
        causes, texts = set[bytes](), []
        changes, polled = len(writes) > 1, len(writes) == 1
        for opcode, place, rest in writes:
            operands = [self._value(word, depth + 1) for word in _words_of(rest)]
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
