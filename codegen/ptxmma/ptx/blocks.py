"""The blocks of a function, with the statements that order asynchronous instructions.

Most statements are neither branches nor have to do with asynchronous instructions.  They are not read here: the stretches between those
that are can be read later, if anything depends on them.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ptxmma.ptx.block_scopes import BlockScopes
from ptxmma.ptx.calls import may_do_anything
from ptxmma.ptx.flow_events import NAME, OPERAND, Asynchronous, Event, Issue, Stretch, joined, words_of

_Entry = TypeVar("_Entry")
#: The events of a block, and the numbers of those that may follow.
Blocked = tuple[Sequence[Event | Stretch], Sequence[int]]


class NotFollowedError(ValueError):
    """The function cannot be followed."""


class _Block:
    """Statements without a branch between them, and the blocks that may follow."""

    def __init__(self) -> None:
        self.events: list[Event | Stretch] = []
        self.branches: list[tuple[int, bytes]] = []  # labels, each with the scope from which it is looked up
        self.falls = True  # whether the next block may follow


_NOTHING = re.compile(rb"[\s{}]*")
_ENDS = (b"ret", b"exit", b"trap")
_CONTROL = (b"bra", b"brx", b"call", *_ENDS)
#: Branches of a function, those that a table lists counted each time: of more, it is not followed.
_MOST_BRANCHES = 200_000

#: What may come between the end of a statement and an opcode, or a colon: scopes, line information, a predicate, or the name of a label.
_BEFORE = re.compile(rb"[\s{}]*(?:\.(?:loc|file)\b[^\n]*\n[\s{}]*)*(?:(@!?\s*" + NAME + rb"\s+)|(" + NAME + rb")\s*)?")
_COLON = b":"
_MARKS = (re.compile(rb":(?<!::)(?!:)"), re.compile(rb"\.branchtargets\b"))


class Outline:
    """Splits a function into blocks.

    Registers that an inner scope declares get names of their own; labels are looked up from the inside outwards.

    Attributes:
        text: of the function.
        issues: its asynchronous instructions, in order.
        labels: each with its place.
        branches: the label of each, with the place behind it.
        scopes: its scopes.
    """

    def __init__(self, text: bytes, opcodes: Asynchronous) -> None:
        self.text, self._opcodes = text, opcodes
        self.issues: list[Issue] = []
        self.labels: list[tuple[bytes, int]] = []
        self.branches: list[tuple[bytes, int]] = []
        self._unread = text.find(b"{") + 1 if text.startswith((b".entry", b".func")) else 0  # where the stretch begins that goes on
        self.scopes = BlockScopes(text, self._unread)
        self._blocks = [_Block()]
        self._labels: dict[tuple[int, bytes], int] = {}
        self._lists: dict[tuple[int, bytes], list[bytes]] = {}  # what brx.idx chooses from
        self._branches = 0
        self._registers: dict[bytes, list[bytes]] = {}  # of lists, by their texts
        self._kinds: dict[bytes, str] = {}  # of opcodes
        self._roles: dict[bytes, Mapping[int, str]] = {}  # of the operands of asynchronous instructions
        for start, end in self._places():
            begin = max(self._unread, text.rfind(b";", self._unread, start) + 1)
            if begin <= start and (before := _BEFORE.fullmatch(text, begin, start)):
                self._statement(before, start, end)
        self._stretch(self.scopes.stop, self.scopes.stop)

    def blocks(self) -> list[Blocked]:
        """The events of each block, and which blocks may follow; the first block is the entry.

        Raises:
            NotFollowedError: a label is missing, a brace is not closed, or there are too many branches.
        """
        if self.scopes.lost or self._branches > _MOST_BRANCHES:
            raise NotFollowedError
        blocks: list[Blocked] = [(block.events, self._after(number)) for number, block in enumerate(self._blocks)]
        _lead(blocks)
        return blocks

    @functools.cached_property
    def followed(self) -> set[bytes]:
        """The registers in the lists of asynchronous instructions, and those that copies join to them."""
        return joined(self.text, {name for names in self._registers.values() for name in names})

    def _places(self) -> list[tuple[int, int]]:
        """Where there may be labels and instructions that matter: start and end of a colon or an opcode."""
        words = (*_CONTROL, *self._opcodes.issues, self._opcodes.fence, self._opcodes.commit, self._opcodes.wait)
        searches = (each.finditer(self.text, self._unread, self.scopes.stop) for each in (*_MARKS, *_searches(words)))
        return sorted(match.span() for match in itertools.chain.from_iterable(searches))

    def _statement(self, before: re.Match[bytes], start: int, end: int) -> None:
        """Read a label, a list of labels, or an instruction behind what precedes it."""
        word = self.text[start:end]
        predicate, label = before.groups()
        if word == _COLON:
            if label:
                self._label(label, before.start(2), end)
        elif label:
            pass  # an operand
        elif word.startswith(b"."):
            if self.labels:
                label, place = self.labels[-1]
                self._lists[self.scopes.at(place), label] = words_of(self.text[end : self._end(end)])
        else:
            self._instruction(word, start, before.start(1) if predicate else start)

    def _label(self, label: bytes, start: int, end: int) -> None:
        self._stretch(start, end)
        self.labels.append((label, start))
        if self._blocks[-1].events:
            self._blocks.append(_Block())
        self._labels[self.scopes.at(start), label] = len(self._blocks) - 1

    def _stretch(self, stop: int, beyond: int) -> None:
        """End a stretch; the next one may begin beyond what follows it."""
        if not _NOTHING.fullmatch(self.text, self._unread, stop):
            self._blocks[-1].events.append(Stretch(self.text, self._unread, stop, self.scopes))
        self._unread = beyond

    def _instruction(self, opcode: bytes, start: int, begin: int) -> None:
        """Read an instruction, which begins with its predicate."""
        kind = self._kinds.get(opcode)
        if kind is None:
            kind = self._kinds[opcode] = self._kind(opcode)
        end, predicated, scope = self._end(start), begin < start, self.scopes.at(start)
        self._stretch(begin, end + 1)
        operands = self.text[start + len(opcode) : end]
        block = self._blocks[-1]
        if kind == "branch":
            if opcode.startswith(b"br"):
                for label in words_of(operands)[-1:]:
                    if opcode.startswith(b"bra"):
                        self.branches.append((label, end))
                    block.branches += [(scope, name) for name in self._looked_up(self._lists, scope, label) or [label]]
                self._branches += len(block.branches)
            block.falls = predicated
            self._blocks.append(_Block())
        elif kind == "issue":
            listed = [text for text in map(bytes.strip, OPERAND.findall(operands)) if text]
            self.issues.append(Issue(start, opcode, listed))
            names = self._names(listed, self._roles[opcode], scope)
            block.events.append(Event(kind, start, predicated, opcode, *names))
        elif kind != "call" or may_do_anything(operands):
            number = operands.strip()
            pending = int(number) if kind == "wait" and number.isdigit() else 0
            block.events.append(Event(kind, start, predicated, opcode, pending=pending))

    def _end(self, place: int) -> int:
        """Where a statement ends."""
        end = self.text.find(b";", place)
        return end if end >= 0 else len(self.text)

    def _kind(self, opcode: bytes) -> str:
        """What an instruction is: "branch", or the kind of an event."""
        name = opcode.partition(b".")[0]
        for issued, roles in self._opcodes.issues.items():
            if starts(opcode, issued):
                self._roles[opcode] = roles
                return "issue"
        if name in _ENDS or name in (b"bra", b"brx"):
            return "branch"
        known = {"fence": self._opcodes.fence, "commit": self._opcodes.commit, "wait": self._opcodes.wait, "call": b"call"}
        return next((kind for kind, start in known.items() if starts(opcode, start)), "access")

    def _names(self, operands: Iterable[bytes], roles: Mapping[int, str], scope: int) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """The accumulators and the other registers in the lists of an asynchronous instruction."""
        names: dict[str, Sequence[bytes]] = {"accumulator": (), "fragment": ()}
        for place, operand in enumerate(operands):
            if operand.startswith(b"{"):
                words = self._registers.get(operand)
                if words is None:
                    words = self._registers[operand] = words_of(operand)
                if role := roles.get(place):
                    names[role] = self.scopes.names(scope, words)
        return names["accumulator"], names["fragment"]

    def _looked_up(self, table: Mapping[tuple[int, bytes], _Entry], scope: int, label: bytes) -> _Entry | None:
        while scope >= 0 and (scope, label) not in table:
            scope = self.scopes.parents[scope]
        return table.get((scope, label))

    def _after(self, number: int) -> list[int]:
        block = self._blocks[number]
        blocks = [self._looked_up(self._labels, scope, label) for scope, label in block.branches]
        if None in blocks:
            raise NotFollowedError
        follows = [place for place in blocks if place is not None]
        return [*follows, number + 1] if block.falls and number + 1 < len(self._blocks) else follows


def _lead(blocks: Sequence[Blocked]) -> None:
    """Mark the stretches behind which an asynchronous instruction may come before a fence: what others write does not matter.

    Nor does what these write, if none of them names a register of such an instruction.
    """
    used: set[bytes] = set()
    marked: list[Stretch] = []
    before: list[list[int]] = [[] for _ in blocks]
    for number, (_, follows) in enumerate(blocks):
        for after in follows:
            before[after].append(number)
    # Blocks that have to be looked at: those that issue instructions, then those from which one of these can be reached.
    leading = {number for number, (events, _) in enumerate(blocks) if any(event.kind == "issue" for event in events)}
    ends: set[int] = set()  # blocks whose end leads to an instruction
    while leading:
        number = leading.pop()
        leads = number in ends
        for event in reversed(blocks[number][0]):
            if isinstance(event, Stretch):
                if leads and not event.leads:
                    event.leads = True
                    marked.append(event)
            elif event.kind == "issue":
                leads = True
                used.update(event.written, event.read)
            elif event.kind in ("fence", "call"):
                leads = False
        if leads:
            fresh = [other for other in before[number] if other not in ends]
            ends.update(fresh)
            leading.update(fresh)
    if all(used.isdisjoint(stretch.names) for stretch in marked):
        for stretch in marked:
            stretch.leads = False


@functools.lru_cache(maxsize=1 << 3)
def _searches(words: tuple[bytes, ...]) -> list[re.Pattern[bytes]]:
    """Searches for opcodes that begin with one of some words, one for those that begin alike: then it is fast."""
    alike: dict[bytes, list[bytes]] = {}
    for word in words:
        alike.setdefault(word[:2], []).append(re.escape(word))
    return [re.compile(rb"(?:" + b"|".join(each) + rb")(?![\w:$%])[\w.:]*") for each in alike.values()]


def starts(opcode: bytes, start: bytes) -> bool:
    """Whether an opcode is another one, with more modifiers or without."""
    return opcode == start or opcode.startswith(start + b".")
