"""The blocks of a function, with the statements that order asynchronous instructions.

Most statements are neither branches nor have to do with asynchronous instructions.  They are not read here: the stretches between those
that are can be read later, if anything depends on them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ptxmma.ptx.block_scopes import BlockScopes
from ptxmma.ptx.calls import may_do_anything
from ptxmma.ptx.flow_events import INSTRUCTION, NAME, OPERAND, Asynchronous, Event, Issue, Stretch, joined, words_of

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


_BLANK = re.compile(rb"\s*")
_COLON = re.compile(rb":(?<!::)(?!:)")
_ENDS = (b"ret", b"exit", b"trap")
_CONTROL = (b"bra", b"brx", b"call", *_ENDS)
#: Branches of a function, those that a table lists counted each time: of more, it is not followed.
_MOST_BRANCHES = 200_000


#: What may precede an instruction: scopes, labels, line information.
_HEAD = re.compile(rb"\s*(?:([{}])|(" + NAME + rb")\s*:(?!:)|\.(?:loc|file)\b[^\n]*)")
_DIRECTIVE = re.compile(rb"\s*\.")


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
        self.scopes = BlockScopes()
        self._blocks = [_Block()]
        self._labels: dict[tuple[int, bytes], int] = {}
        self._lists: dict[tuple[int, bytes], list[bytes]] = {}  # what brx.idx chooses from
        self._branches = 0
        self._registers: dict[bytes, list[bytes]] = {}  # of lists, by their texts
        self._kinds: dict[bytes, str] = {}  # of opcodes
        self._roles: dict[bytes, Mapping[int, str]] = {}  # of the operands of asynchronous instructions
        self._unread = 0  # where the stretch begins that goes on
        for start in self._starts():
            if start >= self._unread:
                self._statement(start)
            if self.scopes.now < 0:  # the end of the function's body
                break
        else:
            self._stretch(len(text))

    def blocks(self) -> list[Blocked]:
        """The events of each block, and which blocks may follow; the first block is the entry.

        Raises:
            NotFollowedError: a label is missing, a brace is not closed, or there are too many branches.
        """
        if self.scopes.now > 0 or self.scopes.lost or self._branches > _MOST_BRANCHES:
            raise NotFollowedError
        blocks: list[Blocked] = [(block.events, self._after(number)) for number, block in enumerate(self._blocks)]
        _lead(blocks)
        return blocks

    @functools.cached_property
    def followed(self) -> set[bytes]:
        """The registers in the lists of asynchronous instructions, and those that copies join to them."""
        return joined(self.text, {name for names in self._registers.values() for name in names})

    def _starts(self) -> Iterator[int]:
        """Where statements begin that may matter: by their first two characters, or because there is a label."""
        text = self.text
        first = text.find(b"{") + 1 if text.startswith((b".entry", b".func")) else 0
        self._unread = first
        words = (*_CONTROL, *self._opcodes.issues, self._opcodes.fence, self._opcodes.commit, self._opcodes.wait)
        first_letters, second_letters = (b"".join(sorted({word[place : place + 1] for word in words})) for place in (0, 1))
        begin = re.compile(rb";\s*(?:[{}.@]|[" + first_letters + b"][" + second_letters + b"])")
        starts = {match.start() + 1 for match in begin.finditer(text, first)}
        starts |= {max(first, text.rfind(b";", first, match.start()) + 1) for match in _COLON.finditer(text, first)}
        return iter(sorted(starts | {first}))

    def _statement(self, start: int) -> None:
        text = self.text
        match = INSTRUCTION.match(text, start)
        if match is None or b":" in match[2] or text.startswith(b":", match.end()):
            match = self._headed(start)
        if match is not None:
            kind = self._kinds.get(match[2])
            if kind is None:
                kind = self._kinds[match[2]] = self._kind(match[2])
            if kind != "access":
                self._instruction(kind, match)

    def _headed(self, place: int) -> re.Match[bytes] | None:
        """The instruction behind scopes, labels and a directive."""
        text, label = self.text, b""
        while match := _HEAD.match(text, place):
            place = match.end()
            if match.lastindex:
                self._stretch(match.start(), place)
            if match[1]:
                self.scopes.brace(match[1])
                if self.scopes.now < 0:
                    return None
            elif match[2]:
                label = match[2]
                self.labels.append((label, match.start(2)))
                if self._blocks[-1].events:
                    self._blocks.append(_Block())
                self._labels[self.scopes.now, label] = len(self._blocks) - 1
        directive = _DIRECTIVE.match(text, place)
        if directive is None:
            return INSTRUCTION.match(text, place)
        place = directive.end() - 1
        end = self._end(place)
        self._stretch(place, end + 1)
        name, _, rest = text[place:end].partition(b" ")
        if name == b".branchtargets":
            self._lists[self.scopes.now, label] = words_of(rest)
        elif name.startswith(b".reg"):
            self.scopes.declare(text[place + 4 : end])
        return None

    def _stretch(self, stop: int, beyond: int = 0) -> None:
        """End a stretch; the next one may begin beyond what follows it."""
        if self._unread < stop and not _BLANK.fullmatch(self.text, self._unread, stop):
            self._blocks[-1].events.append(Stretch(self.text, self._unread, stop, self.scopes))
        self._unread = beyond

    def _instruction(self, kind: str, match: re.Match[bytes]) -> None:
        end = self._end(match.end())
        self._stretch(match.start(), end + 1)
        opcode, operands, predicated = match[2], self.text[match.end() : end], match[1] is not None
        block = self._blocks[-1]
        if kind == "branch":
            if opcode.startswith(b"br"):
                label = words_of(operands)[-1:]
                self.branches += [(name, end) for name in label if opcode.startswith(b"bra")]
                block.branches += [(self.scopes.now, name) for listed in label for name in self._listed(listed)]
                self._branches += len(block.branches)
            block.falls = predicated
            self._blocks.append(_Block())
        elif kind == "issue":
            listed = [text for text in map(bytes.strip, OPERAND.findall(operands)) if text]
            self.issues.append(Issue(match.start(2), opcode, listed))
            names = self._names(listed, self._roles[opcode])
            block.events.append(Event(kind, match.start(2), predicated, opcode, *names))
        elif kind != "call" or may_do_anything(operands):
            number = operands.strip()
            pending = int(number) if kind == "wait" and number.isdigit() else 0
            block.events.append(Event(kind, match.start(2), predicated, opcode, pending=pending))

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

    def _names(self, operands: Iterable[bytes], roles: Mapping[int, str]) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """The accumulators and the other registers in the lists of an asynchronous instruction."""
        names: dict[str, Sequence[bytes]] = {"accumulator": (), "fragment": ()}
        for place, operand in enumerate(operands):
            if operand.startswith(b"{"):
                words = self._registers.get(operand)
                if words is None:
                    words = self._registers[operand] = words_of(operand)
                if role := roles.get(place):
                    names[role] = self.scopes.names(self.scopes.now, words)
        return names["accumulator"], names["fragment"]

    def _listed(self, label: bytes) -> list[bytes]:
        labels = self._looked_up(self._lists, self.scopes.now, label)
        return [label] if labels is None else labels

    def _looked_up(self, table: Mapping[tuple[int, bytes], _Entry], scope: int, label: bytes) -> _Entry | None:
        for place in self.scopes.outwards(scope):
            if (place, label) in table:
                return table[place, label]
        return None

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
    before: list[list[int]] = [[] for _ in blocks]
    for number, (_, follows) in enumerate(blocks):
        for after in follows:
            before[after].append(number)
    leading = {*range(len(blocks))}  # blocks that may have to be looked at
    ends: set[int] = set()  # blocks whose end leads to an instruction
    while leading:
        number = leading.pop()
        leads = number in ends
        for event in reversed(blocks[number][0]):
            if isinstance(event, Stretch):
                event.leads = leads
            elif event.kind == "issue":
                leads = True
                used.update(event.written, event.read)
            elif event.kind in ("fence", "call"):
                leads = False
        if leads:
            fresh = [other for other in before[number] if other not in ends]
            ends.update(fresh)
            leading.update(fresh)
    marked = [event for events, _ in blocks for event in events if isinstance(event, Stretch) and event.leads]
    if all(used.isdisjoint(stretch.names) for stretch in marked):
        for stretch in marked:
            stretch.leads = False


def starts(opcode: bytes, start: bytes) -> bool:
    """Whether an opcode is another one, with more modifiers or without."""
    return opcode == start or opcode.startswith(start + b".")
