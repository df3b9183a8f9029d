"""The blocks of a function, with the statements that matter to asynchronous instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

_Entry = TypeVar("_Entry")


class Asynchronous(NamedTuple):
    """The opcodes of asynchronous instructions and of those that order them.

    Attributes:
        issues: the start of each asynchronous instruction's opcode, with the roles of its operands that may be lists of registers:
            ``"accumulator"`` or ``"fragment"``, by the number of the operand.
        fence, commit, wait: how the other instructions start.
    """

    issues: Mapping[bytes, Mapping[int, str]]
    fence: bytes
    commit: bytes
    wait: bytes


class NotFollowedError(ValueError):
    """The function cannot be followed."""


class Event(NamedTuple):
    """A statement that matters."""

    kind: str  # "issue", "fence", "commit", "wait", "call", "copy" or "access"
    offset: int  # of the opcode; of an access, of its first register that is followed
    predicated: bool
    opcode: bytes
    written: Sequence[bytes] = ()  # issue: its accumulators; copy: its targets
    read: Sequence[bytes] = ()  # issue: its other registers; copy: its sources; access: all that it names
    pending: int = 0  # wait: the groups that may go on


class _Block:
    """Statements without a branch between them, and the blocks that may follow."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.branches: list[tuple[int, bytes]] = []  # labels, each with the scope from which it is looked up
        self.falls = True  # whether the next block may follow


_NAME = rb"[\w$%]+"
_WORDS = re.compile(_NAME).findall
#: Blanks for everything between words.
_SEPARATED = bytes(byte if chr(byte).isalnum() or byte in b"_$%" or byte >= 0x80 else 0x20 for byte in range(256))
#: What may precede an instruction: blanks, line information, scopes, labels.
_HEAD = re.compile(rb"\s+|\.(?:loc|file)\b[^\n]*|([{}])|(" + _NAME + rb")\s*:(?!:)")
_INSTRUCTION = re.compile(rb"\s*(@!?\s*" + _NAME + rb"\s+)?([a-z][\w.:]*)\s*")
_COPIED = rb"(\{[^{}]*\}|[\w$%]+)"
_COPY = re.compile(_COPIED + rb"\s*,\s*" + _COPIED + rb"\s*")
_COPIES = re.compile(rb"mov\.(?<![\w$%]mov\.)[a-z]\d+\s+" + _COPY.pattern).findall
#: A list in braces; a block has statements, or nothing.
_VECTOR = re.compile(rb"\{[^{};]*\}")
_OPERAND = re.compile(rb"\{[^{}]*\}|[^,{}]+")
_DECLARED = re.compile(rb"(" + _NAME + rb")(?:<(\d+)>)?")
_ENDS = (b"ret", b"exit", b"trap")
#: Functions of the system (PTX Writer's Guide to Interoperability, 5): they have nothing to do with asynchronous instructions.
_SYSTEM = {b"vprintf", b"__assertfail", b"malloc", b"free"}
#: Bytes of statements whose words are looked at together.
_STRETCH = 512
_CONTROL = (b"bra", b"brx", b"call", *_ENDS)
#: Registers that an inner scope may declare; of more, it is not followed.
_MOST_DECLARED = 4096
#: Branches of a function, those that a table lists counted each time: of more, it is not followed.
_MOST_BRANCHES = 200_000


class Parser:
    """Splits a function into blocks with the events that matter.

    Registers that an inner scope declares get names of their own; labels are looked up from the inside outwards.
    """

    def __init__(self, text: bytes, opcodes: Asynchronous) -> None:
        self._text, self._opcodes = text, opcodes
        self._followed = _followed(text, opcodes)
        self._blocks = [_Block()]
        self._labels: dict[tuple[int, bytes], int] = {}
        self._lists: dict[tuple[int, bytes], list[bytes]] = {}  # what brx.idx chooses from
        self._parents = [-1]  # of each scope
        self._scope = 0
        self._own: dict[int, set[bytes]] = {}  # names that an inner scope declares
        self._branches = 0
        self._kinds: dict[bytes, str] = {}  # of opcodes
        self._roles: dict[bytes, Mapping[int, str]] = {}  # of the operands of asynchronous instructions

    def parse(self) -> list[tuple[Sequence[Event], Sequence[int]]]:
        """The events of each block, and which blocks may follow; the first block is the entry."""
        for chunk, place in self._mattering():
            self._statement(chunk, place)
            if self._scope < 0:  # the end of the function's body
                break
        if self._scope > 0:
            raise NotFollowedError
        return [(block.events, self._after(number)) for number, block in enumerate(self._blocks)]

    def _mattering(self) -> Iterator[tuple[bytes, int]]:
        """The statements that may matter, without their semicolons, and their places.

        Most do not: a look at the words of some tells so of all of them, then one at the words of each.
        """
        words = {*self._followed, *_CONTROL}
        known = (*self._opcodes.issues, self._opcodes.fence, self._opcodes.commit, self._opcodes.wait)
        words |= {opcode.partition(b".")[0] for opcode in known}
        text = self._text
        place = text.find(b"{") + 1 if text.startswith((b".entry", b".func")) else 0
        while place < len(text):
            stop = text.find(b";", place + _STRETCH) + 1 or len(text)
            stretch = text[place:stop]
            if _matters(stretch, words):
                for chunk in stretch.split(b";"):
                    if _matters(chunk, words):
                        yield chunk, place
                    place += len(chunk) + 1
            place = stop

    def _statement(self, chunk: bytes, start: int) -> None:
        match = _INSTRUCTION.match(chunk)
        if match is None or b":" in match[2] or chunk.startswith(b":", match.end()):
            match = self._headed(chunk)
        if match is not None:
            self._instruction(chunk, start, match)

    def _headed(self, chunk: bytes) -> re.Match[bytes] | None:
        """The instruction behind scopes, labels and a directive."""
        place, label = 0, b""
        while match := _HEAD.match(chunk, place):
            place = match.end()
            if match[1]:
                self._brace(match[1])
                if self._scope < 0:
                    return None
            elif match[2]:
                label = match[2]
                if self._blocks[-1].events:
                    self._blocks.append(_Block())
                self._labels[self._scope, label] = len(self._blocks) - 1
        if chunk.startswith(b".", place):
            self._directive(chunk[place:], label)
            return None
        return _INSTRUCTION.match(chunk, place)

    def _brace(self, brace: bytes) -> None:
        if brace == b"{":
            self._parents.append(self._scope)
            self._scope = len(self._parents) - 1
        else:
            self._scope = self._parents[self._scope]

    def _directive(self, text: bytes, label: bytes) -> None:
        name, _, rest = text.partition(b" ")
        if name == b".branchtargets":
            self._lists[self._scope, label] = _WORDS(rest)
        elif text.startswith(b".reg") and self._scope:
            own = self._own.setdefault(self._scope, set())
            for declared, count in _DECLARED.findall(text[4:]):
                if count and int(count) > _MOST_DECLARED:
                    raise NotFollowedError
                own |= {b"%s%d" % (declared, number) for number in range(int(count))} if count else {declared}

    def _instruction(self, chunk: bytes, start: int, match: re.Match[bytes]) -> None:
        opcode = match[2]
        kind = self._kinds.get(opcode)
        if kind is None:
            kind = self._kinds[opcode] = self._kind(opcode)
        block, operands = self._blocks[-1], chunk[match.end() :]
        if kind == "access":
            self._access(operands, start, match)
        elif kind == "branch":
            if opcode.startswith(b"br"):
                label = _WORDS(operands)[-1:]
                block.branches += [(self._scope, name) for listed in label for name in self._listed(listed)]
                self._branches += len(block.branches)
                if self._branches > _MOST_BRANCHES:
                    raise NotFollowedError
            block.falls = match[1] is not None
            self._blocks.append(_Block())
        elif kind != "call" or _SYSTEM.isdisjoint(_WORDS(operands)):
            written, read = self._lists_of(operands, self._roles[opcode]) if kind == "issue" else ([], [])
            number = operands.strip()
            pending = int(number) if kind == "wait" and number.isdigit() else 0
            block.events.append(Event(kind, start + match.start(2), match[1] is not None, opcode, written, read, pending))

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

    def _access(self, operands: bytes, start: int, match: re.Match[bytes]) -> None:
        if self._followed.isdisjoint(_WORDS(operands)):
            return
        events, offset, predicated = self._blocks[-1].events, start + match.end(), match[1] is not None
        copy = _COPY.fullmatch(operands) if match[2].startswith(b"mov.") else None
        sources = _registers(copy[2]) if copy else []
        if copy and not self._followed.isdisjoint(sources):
            events.append(Event("copy", offset, predicated, match[2], self._names(_WORDS(copy[1])), self._names(sources)))
            return
        followed = [word for word in re.finditer(_NAME, operands) if word[0] in self._followed]
        first = _OPERAND.match(operands)
        written = self._names(_WORDS(first[0])) if first and not operands.startswith(b"[") else []
        read = self._names(word[0] for word in followed)
        events.append(Event("access", offset + followed[0].start(), predicated, match[2], written, read))

    def _lists_of(self, operands: bytes, roles: Mapping[int, str]) -> tuple[list[bytes], list[bytes]]:
        """The accumulators and the other registers in the lists of an asynchronous instruction."""
        names: dict[str, list[bytes]] = {"accumulator": [], "fragment": []}
        for place, operand in enumerate(text for text in _OPERAND.findall(operands) if text.strip()):
            if place in roles and operand.startswith(b"{"):
                names[roles[place]] += self._names(_WORDS(operand))
        return names["accumulator"], names["fragment"]

    def _names(self, names: Iterable[bytes]) -> list[bytes]:
        return [self._name(name) for name in names]

    def _name(self, name: bytes) -> bytes:
        """A register's name, distinct from those of other scopes."""
        scope = self._scope
        while scope > 0:
            if name in self._own.get(scope, ()):
                return b"%s in scope %d" % (name, scope)
            scope = self._parents[scope]
        return name

    def _listed(self, label: bytes) -> list[bytes]:
        labels = self._looked_up(self._lists, self._scope, label)
        return [label] if labels is None else labels

    def _looked_up(self, table: Mapping[tuple[int, bytes], _Entry], scope: int, label: bytes) -> _Entry | None:
        while scope >= 0:
            if (scope, label) in table:
                return table[scope, label]
            scope = self._parents[scope]
        return None

    def _after(self, number: int) -> list[int]:
        block = self._blocks[number]
        blocks = [self._looked_up(self._labels, scope, label) for scope, label in block.branches]
        if None in blocks:
            raise NotFollowedError
        follows = [place for place in blocks if place is not None]
        return [*follows, number + 1] if block.falls and number + 1 < len(self._blocks) else follows


def _matters(text: bytes, words: set[bytes]) -> bool:
    """Whether statements have one of some words, a label, or a brace that does not belong to a list."""
    if not words.isdisjoint(text.translate(_SEPARATED).split()):
        return True
    if b"{" in text or b"}" in text:
        text = _VECTOR.sub(b"", text)
        if b"{" in text or b"}" in text:
            return True
    return b":" in text and b":" in text.replace(b"::", b"")


def starts(opcode: bytes, start: bytes) -> bool:
    """Whether an opcode is another one, with more modifiers or without."""
    return opcode == start or opcode.startswith(start + b".")


def _followed(text: bytes, opcodes: Asynchronous) -> set[bytes]:
    """The registers in the lists of asynchronous instructions, and those that copies join to them."""
    followed: set[bytes] = set()
    for opcode in opcodes.issues:
        for statement in re.findall(re.escape(opcode) + rb"[^;]*", text):
            for operand in re.findall(rb"\{[^{}]*\}", statement):
                followed.update(_WORDS(operand))
    joined: dict[bytes, list[bytes]] = {}
    for target, source in _COPIES(text) if followed else ():
        targets, sources = _registers(target), _registers(source)
        for name in targets:
            joined.setdefault(name, []).extend(sources)
        for name in sources:
            joined.setdefault(name, []).extend(targets)
    reached = list(followed)
    while reached:
        fresh = {name for name in joined.pop(reached.pop(), ()) if name not in followed}
        followed |= fresh
        reached += fresh
    return followed


def _registers(operand: bytes) -> list[bytes]:
    """The names in an operand of a copy, without constants."""
    return [name for name in _WORDS(operand) if not name[:1].isdigit()]
