"""The instructions by which the lifecycles of a spec change from state to state."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx.outline import is_any, starts
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from ptxmma.model import Counterpart, Lifecycle, Transition
    from ptxmma.ptx.flow_events import Event

#: In place of an instruction: the end of the kernel.
EXIT = b"exit"
#: A modifier that says that threads execute an instruction together.
ALIGNED = b".aligned"
#: Bytes before an opcode in which its predicate is looked for.
_LONGEST_PREDICATE = 256
#: A barrier of the thread block for a number of its threads: the barrier that it names, and the number.
PARTIAL = re.compile(rb"(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+([\w$%]+)\s*,\s*([\w$%]+)")
_NUMBER = re.compile(rb"\s*(\d+)\b")
#: A state, and the number of objects, up to the highest that makes a difference.
Held = tuple[str, int]


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


class Step(NamedTuple):
    """An instruction that concerns a lifecycle, and the predicate under which it is executed; empty: always."""

    at: Happening
    predicate: bytes


class Machine:
    """The transitions of a lifecycle, by the instruction and the state."""

    def __init__(self, life: Lifecycle) -> None:
        self.life = life
        self.on, self.made, self.rules = functools.cache(self._on), functools.cache(self._made), functools.cache(self._rules)
        self.is_wrong, self._is_counted = functools.cache(self._may_be_wrong), functools.cache(self._counts)
        self.left = {name for each in life.transitions for name in each.states}  # the states in which an instruction counts
        self.harmless = not any(each.rule and life.start in each.states for each in life.transitions)  # nothing is wrong in the first state
        #: The states of which only that they are matters, not the instructions that led to them.
        self.bare = self.left - {life.start} - {name for each in life.transitions if _looks_back(each) for name in each.states}

    def _on(self, opcode: bytes) -> list[Transition]:
        """The transitions that an instruction makes in any state."""
        return [each for each in self.life.transitions if is_made(each, opcode)]

    def _made(self, state: str, opcode: bytes) -> list[Transition]:
        """The transitions that an instruction makes in a state."""
        return [each for each in self.on(opcode) if state in each.states]

    def _rules(self, opcode: bytes) -> frozenset[str]:
        """The rules of the transitions that an instruction makes."""
        return frozenset(each.rule for each in self.on(opcode))

    def counting(self, state: str, count: int, at: Happening) -> list[Transition]:
        """The transitions that an instruction makes in a state with a number of objects."""
        return [each for each in self.made(state, at.opcode) if not each.counted or count > at.number]

    def _may_be_wrong(self, state: str, opcode: bytes) -> bool:
        """Return whether an instruction may be wrong in a state."""
        return any(not each.to for each in self.made(state, opcode))

    def after(self, held: Held, at: Happening, most: int) -> set[Held]:
        """The states that there may be after an instruction, if more objects than a number make no difference."""
        state, count = held
        found = set[Held]()
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
        if not self._is_counted(opcode):
            return 0
        match = _NUMBER.match(text, place + len(opcode))
        return int(match[1]) if match else 0

    def _counts(self, opcode: bytes) -> bool:
        """Return whether an instruction names a number that counts."""
        return any(each.counted for each in self.on(opcode))

    def steps(self, text: bytes, events: Iterable[Event]) -> Iterator[Step]:
        """The steps of instructions of a block: only the first and the last of a run of equal ones, unless each of them counts."""
        for (opcode, predicated), run in itertools.groupby(events, lambda each: (each.opcode, each.predicated)):
            same = [*run]
            alone = len(same) < 3 or predicated or any(each.adds for each in self.on(opcode))
            for each in same if alone else (same[0], same[-1]):
                at = Happening(each.offset, opcode, self.number(text, each.offset, opcode))
                yield Step(at, predicate_before(text, each.offset) if predicated else b"")


@functools.lru_cache(maxsize=1 << 8)
def machine_of(life: Lifecycle) -> Machine:
    """The transitions of a lifecycle, which all kernels share."""
    return Machine(life)


def ends_before_branches(life: Lifecycle, text: bytes) -> bool:
    """Return whether a lifecycle comes to a state that nothing leaves before a branch does: then no path need be followed.

    Where nothing is wrong in the first state, a branch before the first change makes no difference, unless it leads round the only one.
    """
    machine, state, count, branched = machine_of(life), life.start, 0, False
    harmless = (life.start,) if machine.harmless else ()
    words = b"|".join(re.escape(word) for word in sorted({word.encode() for each in life.transitions for word in each.on}, reverse=True))
    for match in re.finditer(rb"(?:bra|" + words + rb")(?![\w:$%])[\w.:]*", text):
        at = Happening(match.start(), match[0], machine.number(text, match.start(), match[0]))
        made = [each for each in machine.counting(state, count, at) if not each.after]
        branch = starts(match[0], b"bra")
        branched = branched or branch
        ends = (branch and state not in harmless) or any(not each.to for each in made)
        if (not made and not ends) or (life.meets and PARTIAL.match(text, match.start())):
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
            if made[-1].to not in machine.left:
                return state != life.start or not branched
            state = made[-1].to
    return False


def _looks_back(each: Transition) -> bool:
    """Return whether the instructions that led to a state matter to a transition from it."""
    return bool(not each.to or each.keeps or each.counted or each.adds)


def is_made(each: Transition, opcode: bytes) -> bool:
    """Return whether an instruction makes a transition in any of its states."""
    return is_named(each, opcode) and not any(has_modifier(opcode, name) for name in each.without)


def is_named(each: Transition | Counterpart, opcode: bytes) -> bool:
    """Return whether a part of a protocol names an instruction."""
    return is_any(opcode, each.on) and all(has_modifier(opcode, name) for name in each.modifiers)


def has_modifier(opcode: bytes, name: str) -> bool:
    """Return whether an opcode has a modifier, with or without more after ``::``."""
    return any(part == name.encode() or part.split(b"::")[0] == name.encode() for part in opcode.split(b"."))
