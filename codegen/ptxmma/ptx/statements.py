"""Reads PTX: finds the matrix instructions of a module, and the types of the registers that they name.

A module is read once, from front to back, in pieces.  Comments and strings are blanked out first, byte for byte, so that every place
stays where it was.  One :class:`Function` is in memory at a time.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ptxmma.ptx import tokens
from ptxmma.ptx.conditions import Predicates
from ptxmma.ptx.cplusplus_tokens import Guard
from ptxmma.ptx.flow_events import calls_of, may_do_anything
from ptxmma.ptx.lane_values import LaneValues
from ptxmma.ptx.opcodes import BEFORE, WORD, Opcodes
from ptxmma.ptx.scopes import Opened, Scopes, Variables

#: The start of something new: a function, or another module in the same file.
_BEGIN = re.compile(rb"\.(?:entry|func|version)\b")
_NAME = re.compile(rb"\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?([\w$%]+)")
_VERSION = re.compile(rb"\.version\s+(\d+\.\d+)")
_TARGET = re.compile(rb"\.target\s+([\w\s,]+)")
_WORDS = re.compile(rb"\w+")
_ARCHITECTURE = re.compile(rb"sm_\w+")
#: A predicate, which may precede an instruction.  Several are an error, as is one without its mark or its name, or with an operator.
_PREDICATE = re.compile(rb"(?:@[\s!]*(?:[\w$%]+\s*)?)+(?:[|&^,+*-][\s!\w$%|&^,+*-]*)?\Z|(?<=[;{}:])\s*(?P<unmarked>!?\s*%[\w$%]+)\Z")
#: The directive that ends without a semicolon.
_LOCATION = re.compile(rb"(?:^|[;{}:\n])\s*\.loc\s[^;{}:\n]*\Z")
_OPCODE = re.compile(rb"[\w$]+(?:\s*\.[\w:]+)*")
OPERAND = re.compile(rb"\{[^{}]*\}|\[[^\[\]]*\][^,{}]*|[^\s,{}][^,{}]*")
_LISTED = re.compile(rb"\s*(?:%b)\s*," % OPERAND.pattern)
_BLANKS = b" \t\n\r\f\v"

#: Bytes outside functions that are kept at a time.
_MOST_OUTSIDE = 1 << 20
#: Bytes of a function that are kept at a time: no compiler writes one that is nearly as long.
_MOST_INSIDE = 1 << 25
#: Bytes of the longest instruction that is read: the largest of all has some two thousand.
_LONGEST = 1 << 16


class Token(NamedTuple):
    """A piece of text and its place.

    Attributes:
        text: the text as it is written, without the blanks around it.
        offset: byte offset in :attr:`Function.text`.
    """

    text: bytes
    offset: int


#: Constraints of operands that need not occur in the text: they say what the statement depends on.
_OTHERS = frozenset("mniCX")


class AsmOperand(NamedTuple):
    """An operand of an ``asm`` statement.

    Attributes:
        name: ``"x"`` of ``[x] "r"(value)``; ``""`` without one.
        constraint: the constraint as it is written, ``"=f"``.
        expression: the expression that is bound to it, with blanks between its tokens.
        type: the type of the register that its constraint asks for; anything where that cannot be seen.
        values: the constants that it may be, as the text writes them; none where that cannot be seen.
        passed: the number that its register has at first; None where that cannot be seen.
    """

    name: str
    constraint: str
    expression: str
    type: str
    values: tuple[str, ...]
    passed: int | None

    def names(self, number: int) -> list[str]:
        """Its names in PTX text, if it has this number."""
        return [f"%{number}", *([f"%_{self.name}_"] if self.name else [])]

    @property
    def is_register(self) -> bool:
        """True if it is a register of its own."""
        plain = self.constraint.lstrip("=+&%")
        return plain.isalpha() and _OTHERS.isdisjoint(plain)

    def __str__(self) -> str:
        return f'"{self.constraint}"({self.expression.replace(" ", "")})'


class Statement(NamedTuple):
    """One matrix instruction.

    Attributes:
        opcode: the opcode with its modifiers, ``mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32``; blanks before a dot are kept.
        start: byte offset of the opcode in :attr:`Function.text`.
        operands: the texts between the commas outside braces and brackets, without blanks around them; a list keeps its braces.
        predicate: the predicate before it, ``@!%p1``, or several of these; None without one.
        broken: byte offset where the operands stop being a list that can be read; None in a sound one.
        end: byte offset of its semicolon; of an unterminated one, where reading stopped.
    """

    opcode: bytes
    start: int
    operands: tuple[bytes, ...]
    predicate: Token | None
    broken: int | None
    end: int


class Module:
    """The directives of a module so far.

    Attributes:
        version: its ``.version``, ``"8.0"``; ``""`` before one is seen.
        target: the architecture in its ``.target``, ``"sm_90a"``; ``""`` before one is seen.
        debug: whether its ``.target`` says that it is compiled for debugging.
        variables: the variables that it declares outside functions.
    """

    def __init__(self) -> None:
        self.version = ""
        self.target = ""
        self.debug = False
        self.variables = Variables()
        self._unfinished = b""

    def read(self, text: bytes, *, goes_on: bool = False) -> None:
        """Read directives outside functions; the last one of the text before may go on in it."""
        if goes_on:
            text = self._unfinished + text
        self._unfinished = text[text.rfind(b";") + 1 :][-_LONGEST:]
        for match in _VERSION.finditer(text):
            self.version = match[1].decode()
        for match in _TARGET.finditer(text):
            if architecture := _ARCHITECTURE.search(match[1]):
                self.target = architecture[0].decode()
                self.debug = b"debug" in _WORDS.findall(match[1])
        self.variables.declare(text)


class Function:
    """A function, or the text outside functions.

    Attributes:
        module: the directives of the module up to here.
        name: ``"kernel"``; ``""`` for the text outside functions.
        text: bytes from the ``.entry`` or ``.func`` on, up to what follows its closing brace; comments and strings are blanks,
            newlines are kept.
        line: the line of the text's first byte, from 1.
        whole: whether the text is all of the function; one that is very long comes in parts.
    """

    alternatives: tuple[Function, ...] = ()  # other texts that a compiler may make of the same source
    operands: Sequence[AsmOperand] = ()  # the operands of the asm statement that has the text
    guard: Guard | None = None  # the conditions on the architecture under which C++ has the text
    uncovered = 0  # instructions that are not among its statements, because only a part of them is written

    def __init__(
        self, module: Module, pieces: list[tokens.Piece], opcodes: Opcodes, *, before: Opened | None = None, whole: bool = True
    ) -> None:
        self.module = module
        self.passed: Mapping[bytes, int] = {}  # the numbers that registers have at first, by their names
        self.whole = whole and before is None
        self.text = pieces[0].clean if len(pieces) == 1 else b"".join(piece.clean for piece in pieces)
        # Most functions have no comments: one text is enough.
        self._raw = [self.text] if all(piece.clean is piece.raw for piece in pieces) else [piece.raw for piece in pieces]
        name = _NAME.match(self.text)
        self.name = name[1].decode(errors="replace") if name else ""
        self.line, self._column = pieces[0].line, pieces[0].column
        self._opcodes = opcodes
        self._counted = (0, self.line)
        self.registers = Scopes(self.text, outer=1 if self.name or before else 0, module=module.variables, before=before)

    @functools.cached_property
    def predicates(self) -> Predicates:
        """Its predicates, and what its registers are computed from."""
        return Predicates(self.text)

    @functools.cached_property
    def lanes(self) -> LaneValues:
        """The numbers of its registers in the lanes of a warp."""
        return LaneValues(self.text, self.predicates, self.registers.variable)

    @functools.cached_property
    def calls_others(self) -> bool:
        """True if it calls any but the system's functions."""
        return any(map(may_do_anything, calls_of(self.text)))

    def statements(self) -> Iterator[Statement]:
        """Its matrix instructions, in order."""
        end = 0
        for start in self.places:
            if start >= end:
                statement = self.statement(start)
                if statement is not None:
                    end = statement.end
                    yield statement

    def statements_of(self, opcode: bytes) -> list[Statement]:
        """The matrix instructions that have an opcode, spelt as it is, in order."""
        found: list[Statement] = []
        place = -1
        while (place := self.text.find(opcode, place + 1)) >= 0:
            statement = self.statement(place) if self.text[place - 1] not in WORD else None
            if statement is not None and statement.opcode == opcode:
                found.append(statement)
        return found

    @functools.cached_property
    def places(self) -> list[int]:
        """The places where a matrix instruction may begin, in order, outside other instructions."""
        return self._opcodes.places(self.text)

    def statement(self, start: int) -> Statement | None:
        """The matrix instruction that may begin at a place; None where the word is an operand."""
        text = self.text
        before = text[max(0, start - BEFORE) : start]
        before_it = before.rstrip()
        predicate = None
        if before_it and before_it[-1] not in b";{}:":
            match = _PREDICATE.search(before_it)
            if match:
                group = "unmarked" if match["unmarked"] else 0
                predicate = Token(match[group], start - len(before) + match.start(group))
            elif (b"\n" not in before[len(before_it) :] and not _LOCATION.search(before_it)) or before_it[-1] in b",(=":
                return None  # an operand that is named like an instruction
        opcode = _OPCODE.match(text, start, start + _LONGEST)
        assert opcode  # places() saw a word
        end = text.find(b";", opcode.end(), opcode.end() + _LONGEST)
        if end < 0:
            end = min(len(text), opcode.end() + _LONGEST)
            return Statement(opcode[0], start, (), predicate, _broken(text, opcode.end(), end), end)
        body = text[opcode.end() : end]
        operands = OPERAND.findall(body)
        # Single commas must lie between the operands.
        sound = body.translate(None, _BLANKS) == b",".join(operands).translate(None, _BLANKS)
        broken = None if sound else _broken(text, opcode.end(), end)
        return Statement(opcode[0], start, tuple(map(bytes.strip, operands)), predicate, broken, end)

    def is_meant(self, _: Statement, /) -> bool:
        """Return whether a statement counts: in a module, each does."""
        return True

    def operand(self, statement: Statement, number: int) -> Token:
        """An operand of a statement with its place."""
        matches = OPERAND.finditer(self.text, statement.start + len(statement.opcode), statement.end)
        return Token(statement.operands[number], next(itertools.islice(matches, number, None)).start())

    def position(self, offset: int) -> tuple[int, int]:
        """``(line, column)`` of a byte of the text, both from 1, columns in characters.  Quick where offsets ascend."""
        seen, line = self._counted
        if offset < seen:
            seen, line = 0, self.line
        line += self.text.count(b"\n", seen, offset)
        self._counted = (offset, line)
        start = self.text.rfind(b"\n", 0, offset) + 1
        return line, tokens.characters(self._cut(start, offset)) + (1 if start else self._column)

    def source(self, offset: int) -> tuple[str, int]:
        """The line round a byte of the text as a finding has it, and the byte's place in it."""
        reach = 4 * tokens.MOST_AROUND
        start = max(self.text.rfind(b"\n", max(0, offset - reach), offset) + 1, offset - reach, 0)
        stop = self.text.find(b"\n", offset, offset + reach)
        raw = self._cut(start, stop if stop >= 0 else min(len(self.text), offset + reach))
        head = raw[: offset - start].decode(errors="replace")
        return tokens.excerpt(head + raw[offset - start :].decode(errors="replace").rstrip("\r"), len(head))

    def line_at(self, offset: int) -> str:
        """The whole line round a byte of the text, comments included."""
        start, stop = self.text.rfind(b"\n", 0, offset) + 1, self.text.find(b"\n", offset)
        return self._cut(start, stop if stop >= 0 else len(self.text)).decode(errors="replace")

    def _cut(self, start: int, stop: int) -> bytes:
        """The bytes as they were read."""
        parts = []
        for piece in self._raw:
            if start < len(piece) and stop > 0:
                parts.append(piece[max(0, start) : stop])
            start, stop = start - len(piece), stop - len(piece)
        return b"".join(parts)


def _broken(text: bytes, start: int, end: int) -> int:
    """The place between two offsets where the operands stop being a list."""
    while match := _LISTED.match(text, start, end):
        start = match.end()
    return start + len(text[start:end]) - len(text[start:end].lstrip())


def _after(text: bytes) -> bytes:
    """The directives of the module after the body of a function, or after its declaration, up to the next function.

    The last brace belongs to the body, unless it belongs to the value of a variable, which has no semicolon.
    """
    end = len(text)
    while (brace := text.rfind(b"}", 0, end)) >= 0:
        end = text.rfind(b";", 0, brace) + 1
        if b"=" not in text[end:brace]:
            return text[brace + 1 :]
    return text[text.find(b";") + 1 :]


def functions(chunks: Iterable[bytes], opcodes: Opcodes) -> Iterator[Function]:
    """The functions of a module and the text outside them, in order; together they have every byte."""
    module = Module()
    pieces: list[tokens.Piece] = []
    depth = 0
    inside = False  # whether the pieces begin with a function, or go on with one
    size = 0
    before: Opened | None = None

    def complete(*, last: bool = True) -> Iterator[Function]:
        nonlocal size, before
        if pieces:
            function = Function(module, pieces, opcodes, before=before, whole=last)
            pieces.clear()
            size = 0
            if last:
                if function.name or before:
                    module.read(_after(function.text))
                else:
                    module.read(function.text, goes_on=not function.text.startswith(b".version"))
            yield function
            before = None if last else function.registers.opened()
            del function  # before the next one is read

    line = column = 1
    for raw, clean in tokens.cleaned(chunks):
        starts = (match.start() for match in _BEGIN.finditer(clean))
        bounds = [0, *(start for start in starts if not start or clean[start - 1] not in WORD), len(clean)]
        for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
            if number:
                yield from complete()
                depth, inside = 0, not clean.startswith(b".version", start)
            if start < stop:
                part = raw[start:stop]
                piece = tokens.Piece(part, part if clean is raw else clean[start:stop], line, column)
                line, column = tokens.after(piece.raw, line, column)
                pieces.append(piece)
                size += len(piece.clean)
                if stop < len(clean):
                    continue  # it ends where the next one begins
                closes, opens = tokens.braces(piece.clean)
                opened = depth > 0 or opens > 0 or closes > 0
                depth = max(0, depth - closes) + opens
                if (opened and not depth) if inside else size >= _MOST_OUTSIDE:
                    yield from complete()
                    inside = False
                elif inside and size >= _MOST_INSIDE:
                    pieces[-1], rest = tokens.divided(pieces[-1])
                    yield from complete(last=False)
                    pieces.append(rest)
                    size = len(rest.clean)
    yield from complete()
