"""The statements that matter to asynchronous instructions, and stretches of those that may."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ptxmma.ptx.block_scopes import BlockScopes

#: A name, and all of them in a text.
NAME = rb"[\w$%]+"
words_of = re.compile(NAME).findall
#: An instruction: its predicate, and its opcode.
_INSTRUCTION = re.compile(rb"\s*(@!?\s*" + NAME + rb"\s+)?([a-z][\w.:]*)\s*")
OPERAND = re.compile(rb"\{[^{}]*\}|[^,{}]+")
#: Blanks for everything between words.
_SEPARATED = bytes(byte if chr(byte).isalnum() or byte in b"_$%" or byte >= 0x80 else 0x20 for byte in range(256))
_LOCATED = re.compile(rb"(?:\s+|\.(?:loc|file)\b[^\n]*|" + NAME + rb"\s*:(?!:))*")
_COPIED = rb"(\{[^{}]*\}|[\w$%]+)"
_COPY = re.compile(_COPIED + rb"\s*,\s*" + _COPIED + rb"\s*")
_COPIES = re.compile(rb"mov\.(?<![\w$%]mov\.)[a-z]\d+\s+" + _COPY.pattern).findall


class Asynchronous(NamedTuple):
    """The opcodes of asynchronous instructions and of the instructions that order them.

    Attributes:
        issues: the start of each asynchronous instruction's opcode, with the roles of its operands that may be lists of registers:
            ``"accumulator"`` or ``"fragment"``, by the number of the operand.
        fence, commit, wait: the start of the other instructions' opcodes; empty without one.
        others: the starts of further opcodes, whose operands are not read.
        counts: whether one of these opcodes matters.
    """

    issues: Mapping[bytes, Mapping[int, str]]
    fence: bytes = b""
    commit: bytes = b""
    wait: bytes = b""
    others: tuple[bytes, ...] = ()
    counts: Callable[[bytes], bool] = lambda _: True

    @property
    def words(self) -> tuple[bytes, ...]:
        """The starts of all of these opcodes."""
        return (*self.issues, *filter(None, (self.fence, self.commit, self.wait)), *self.others)


class Event(NamedTuple):
    """A statement that matters."""

    kind: str  # "issue", "fence", "commit", "wait", "call", "copy" or "access"
    offset: int  # the place of the opcode; of an access, the place of its first register that is followed
    predicated: bool
    opcode: bytes
    written: Sequence[bytes] = ()  # issue: its accumulators; copy: its targets
    read: Sequence[bytes] = ()  # issue: its other registers; copy: its sources; access: all that it names
    pending: int = 0  # wait: the groups that may go on


class Issue(NamedTuple):
    """An asynchronous instruction as it is written."""

    offset: int  # the place of its opcode
    opcode: bytes
    operands: Sequence[bytes]


class Stretch:
    """Statements, without a branch between them, that do not order anything.

    Attributes:
        kind: ``"stretch"``, in place of the kind of an event.
        leads: whether an asynchronous instruction may come before the next fence.

    Args:
        text: the function's text.
        start, stop: its place.
        scopes: the function's scopes.
        skipped: starts and ends, ascending, of statements of the function that a branch may skip.
    """

    kind = "stretch"

    def __init__(self, text: bytes, start: int, stop: int, scopes: BlockScopes, skipped: Sequence[tuple[int, int]]) -> None:
        self._text, self._start, self._stop, self._scopes, self._skipped = text, start, stop, scopes, skipped
        self.leads = False

    @functools.cached_property
    def names(self) -> set[bytes]:
        """All words in it, registers as events name them, and perhaps others of the same names if no event names one of an inner scope."""
        if not self._scopes.renamed:
            return {*self._words(self._start, self._stop)}
        parts = self._scopes.parts(self._start, self._stop)
        return {name for start, stop, scope in parts for name in self._scopes.names(scope, self._words(start, stop))}

    def _words(self, start: int, stop: int) -> list[bytes]:
        return self._text[start:stop].translate(_SEPARATED).split()

    def events(self, followed: set[bytes]) -> Iterator[Event]:
        """The statements that access some registers.

        Args:
            followed: the registers, as they are written; more may be added after each event.
        """
        for place, stop, scope in self._scopes.parts(self._start, self._stop):
            for chunk in self._text[place:stop].split(b";"):
                if not followed.isdisjoint(words_of(chunk)):
                    match = _INSTRUCTION.match(chunk, _LOCATED.match(chunk).end())  # type: ignore[union-attr]  # it matches everywhere
                    if match:
                        yield from self._access(chunk[match.end() :], place, scope, match, followed)
                place += len(chunk) + 1

    def _access(self, operands: bytes, start: int, scope: int, match: re.Match[bytes], followed: set[bytes]) -> Iterator[Event]:
        names = functools.partial(self._scopes.names, scope)
        offset = start + match.end()
        predicated = match[1] is not None or self.may_be_skipped(offset)
        copy = _COPY.fullmatch(operands) if match[2].startswith(b"mov.") else None
        sources = _registers(copy[2]) if copy else []
        if copy and not followed.isdisjoint(sources):
            yield Event("copy", offset, predicated, match[2], names(words_of(copy[1])), names(sources))
        elif words := [word for word in re.finditer(NAME, operands) if word[0] in followed]:
            first = OPERAND.match(operands)
            written = names(words_of(first[0])) if first and not operands.startswith(b"[") else []
            yield Event("access", offset + words[0].start(), predicated, match[2], written, names([word[0] for word in words]))

    def may_be_skipped(self, place: int) -> bool:
        """Return whether a branch may skip the statement at a place."""
        before = bisect.bisect(self._skipped, (place,))
        return before > 0 and place < self._skipped[before - 1][1]


def joined(text: bytes, names: set[bytes]) -> set[bytes]:
    """Names of registers, with the names of all registers that copies in a text join to them."""
    reached = list(names)
    joins: dict[bytes, list[bytes]] = {}
    for target, source in _COPIES(text) if names else ():
        targets, sources = _registers(target), _registers(source)
        for name in targets:
            joins.setdefault(name, []).extend(sources)
        for name in sources:
            joins.setdefault(name, []).extend(targets)
    names = {*names}
    while reached:
        fresh = {name for name in joins.pop(reached.pop(), ()) if name not in names}
        names |= fresh
        reached += fresh
    return names


def _registers(operand: bytes) -> list[bytes]:
    """The names in an operand of a copy, without constants."""
    return [name for name in words_of(operand) if not name[:1].isdigit()]


#: Functions of the system (PTX Writer's Guide to Interoperability, 5): they have nothing to do with asynchronous instructions.
_SYSTEM = {b"vprintf", b"__assertfail", b"malloc", b"free"}
#: The operands of all calls in a text.
calls_of = re.compile(rb"call(?<![\w$%.]call)(?:\.uni)?\b([^;]*)").findall


def may_do_anything(operands: bytes) -> bool:
    """Return whether a call with these operands is of a function that is not one of the system."""
    return _SYSTEM.isdisjoint(words_of(operands))
