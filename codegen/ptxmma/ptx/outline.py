"""Outline of a function: labels, branches, asynchronous instructions and the instructions that order these.

Most statements are neither branches nor have to do with asynchronous instructions.  They are not read here.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ptxmma.ptx.block_scopes import BlockScopes
from ptxmma.ptx.flow_events import NAME, OPERAND, Asynchronous, Event, Issue, joined, may_do_anything, words_of

_Entry = TypeVar("_Entry")
_ENDS = (b"ret", b"exit", b"trap")
_CONTROL = (b"bra", b"brx", b"call", *_ENDS)
#: Text between the end of a statement and an opcode or a colon: scopes, line information, a predicate, or the name of a label.
_BEFORE = re.compile(rb"[\s{}]*(?:\.(?:loc|file)\b[^\n]*\n[\s{}]*)*(?:(@!?\s*" + NAME + rb"\s+)|(" + NAME + rb")\s*)?")
_COLON = b":"
_MARKS = (re.compile(rb":(?<!::)(?!:)"), re.compile(rb"\.branchtargets\b"))


#: The place of a label that is missing.
MISSING = -1


class Label(NamedTuple):
    """A label."""

    begin: int
    stop: int  # the place after its colon


class Branch(NamedTuple):
    """A statement that may not go on with the next one."""

    begin: int
    stop: int
    opcode: bytes
    labels: Sequence[bytes]  # the labels where it may go on
    scope: int  # the scope from which the labels are looked up
    predicate: bytes  # b"!%p1": it goes to its labels where this holds; empty: always


class Ordered(NamedTuple):
    """A statement that issues or orders asynchronous instructions."""

    begin: int
    stop: int
    event: Event


Mark = Label | Branch | Ordered


class Outline:
    """The labels, the branches and the asynchronous instructions of a function.

    Registers that an inner scope declares get names of their own; labels are looked up from the inside outwards.

    Attributes:
        text: the function's text.
        start: the start of its body.
        scopes: its scopes.
        marks: all of these, in order.
        issues: its asynchronous instructions.
        labels: the labels, each with its place.
        branches: the label of each branch, with the place after the branch.
    """

    def __init__(self, text: bytes, opcodes: Asynchronous) -> None:
        self.text, self._opcodes = text, opcodes
        self.start = text.find(b"{") + 1 if text.startswith((b".entry", b".func")) else 0
        self.scopes = BlockScopes(text, self.start)
        self.marks: list[Mark] = []
        self.issues: list[Issue] = []
        self.labels: list[tuple[bytes, int]] = []
        self.branches: list[tuple[bytes, int]] = []
        self._labels: dict[tuple[int, bytes], int] = {}
        self._lists: dict[tuple[int, bytes], list[bytes]] = {}  # what brx.idx chooses from
        self._registers: dict[bytes, list[bytes]] = {}  # of lists, by their texts
        self._kinds: dict[bytes, str] = {}  # of opcodes
        self._roles: dict[bytes, Mapping[int, str]] = {}  # of the operands of asynchronous instructions
        unread = self.start
        for start, end in self._places():
            begin = text.rfind(b";", unread, start) + 1 or unread
            if begin <= start and (before := _BEFORE.fullmatch(text, begin, start)):
                self._statement(before, start, end)
                unread = self.marks[-1].stop if self.marks else unread

    @functools.cached_property
    def followed(self) -> set[bytes]:
        """The registers in the lists of asynchronous instructions, and those that copies join to them."""
        return joined(self.text, {name for names in self._registers.values() for name in names})

    def targets(self, branch: Branch) -> list[int]:
        """The places of the labels of a branch."""
        places = (self._looked_up(self._labels, branch.scope, label) for label in branch.labels)
        return [MISSING if place is None else place for place in places]

    def _places(self) -> list[tuple[int, int]]:
        """The places that may be labels or instructions that matter: start and end of a colon or an opcode."""
        patterns = (*_MARKS, *_searches((*_CONTROL, *self._opcodes.words)))
        searches = (each.finditer(self.text, self.start, self.scopes.stop) for each in patterns)
        return sorted(match.span() for match in itertools.chain.from_iterable(searches))

    def _statement(self, before: re.Match[bytes], start: int, end: int) -> None:
        """Read a label, a list of labels, or an instruction, after the text that precedes it."""
        word = self.text[start:end]
        predicate, label = before.groups()
        if word == _COLON:
            if label:
                place = before.start(2)
                self.marks.append(Label(place, end))
                self.labels.append((label, place))
                self._labels[self.scopes.at(place), label] = place
        elif label:
            pass  # an operand
        elif word.startswith(b"."):
            if self.labels:
                label, place = self.labels[-1]
                self._lists[self.scopes.at(place), label] = words_of(self.text[end : self._end(end)])
        else:
            self._instruction(word, start, before.start(1) if predicate else start, predicate or b"")

    def _instruction(self, opcode: bytes, start: int, begin: int, predicate: bytes) -> None:
        """Read an instruction, which begins with its predicate."""
        kind = self._kinds.get(opcode)
        if kind is None:
            kind = self._kinds[opcode] = self._kind(opcode)
        end, predicate, scope = self._end(start), b"".join(predicate[1:].split()), self.scopes.at(start)
        operands = self.text[start + len(opcode) : end]
        if kind == "branch":
            labels = words_of(operands)[-1:] if opcode.startswith(b"br") else []
            listed_labels = self._looked_up(self._lists, scope, labels[0]) if labels else None
            if opcode.startswith(b"bra"):
                self.branches += [(label, end) for label in labels]
            self.marks.append(Branch(begin, end + 1, opcode, listed_labels or labels, scope, predicate))
        elif kind == "issue":
            listed = [text for text in map(bytes.strip, OPERAND.findall(operands)) if text]
            self.issues.append(Issue(start, opcode, listed))
            names = self._names(listed, self._roles[opcode], scope)
            self.marks.append(Ordered(begin, end + 1, Event(kind, start, bool(predicate), opcode, *names)))
        elif kind and (kind != "call" or may_do_anything(operands)):
            number = operands.strip()
            pending = int(number) if kind == "wait" and number.isdigit() else 0
            self.marks.append(Ordered(begin, end + 1, Event(kind, start, bool(predicate), opcode, pending=pending)))

    def _end(self, place: int) -> int:
        """The end of a statement."""
        end = self.text.find(b";", place)
        return end if end >= 0 else len(self.text)

    def _kind(self, opcode: bytes) -> str:
        """The kind of an instruction: "branch", or the kind of an event; empty if it does not matter."""
        name = opcode.partition(b".")[0]
        for issued, roles in self._opcodes.issues.items():
            if starts(opcode, issued):
                self._roles[opcode] = roles
                return "issue"
        if name in _ENDS or name in (b"bra", b"brx"):
            return "branch"
        known = {"fence": self._opcodes.fence, "commit": self._opcodes.commit, "wait": self._opcodes.wait, "call": b"call"}
        kind = next((kind for kind, start in known.items() if starts(opcode, start)), "")
        return kind or ("access" if self._opcodes.counts(opcode) else "")

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


@functools.lru_cache(maxsize=1 << 5)
def _searches(words: tuple[bytes, ...]) -> list[re.Pattern[bytes]]:
    """Searches for opcodes that begin with one of some words, one for those that begin alike: then it is fast."""
    alike: dict[bytes, list[bytes]] = {}
    for word in words:
        alike.setdefault(word[:2], []).append(re.escape(word))
    return [re.compile(rb"(?:" + b"|".join(each) + rb")(?![\w:$%])[\w.:]*") for each in alike.values()]


def opcodes_of(text: bytes, words: Iterable[bytes]) -> list[re.Match[bytes]]:
    """The places in a text, in order, of opcodes that begin with one of some words."""
    matches = itertools.chain.from_iterable(each.finditer(text) for each in _searches(tuple(sorted(words, reverse=True))))
    # "mbarrier" is no "barrier", and "cp.async.mbarrier.arrive" no "mbarrier.arrive".
    whole = (match for match in matches if not (before := text[match.start() - 1 : match.start()]).isalnum() and before != b".")
    return sorted(whole, key=re.Match.start)


def starts(opcode: bytes, start: bytes) -> bool:
    """Return whether an opcode is another one, with more modifiers or without."""
    return opcode == start or opcode.startswith(start + b".")


@functools.lru_cache(maxsize=1 << 12)
def is_any(opcode: bytes, words: tuple[str, ...]) -> bool:
    """Return whether an opcode is one of some others, with more modifiers or without."""
    return any(starts(opcode, word.encode()) for word in words)
