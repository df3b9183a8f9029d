"""PTX inside other sources: the strings of ``asm`` statements in C and C++, and string literals in Python.

What is read is what can be known without a compiler.  A string that a macro or a format makes, an operand whose constraint cannot be
seen and a number that a template gives are unknown, and nothing is said of them.  Every place is one of the original source.
"""

from __future__ import annotations

import bisect
import io
import re
import tokenize
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.findings import excerpt
from ptxmma.check.reader import Function, Module, Opcodes, Statement
from ptxmma.check.scopes import Scopes
from ptxmma.check.text import Cleaner, Piece
from ptxmma.check.values import ANYTHING

if TYPE_CHECKING:
    from ptxmma.model import Spec

#: The endings of the names of files that are read here.
C_SUFFIXES = frozenset({".cu", ".cuh", ".h", ".hpp", ".cpp"})
PYTHON_SUFFIXES = frozenset({".py"})
SUFFIXES = C_SUFFIXES | PYTHON_SUFFIXES

#: Characters of the longest string that is looked at.
_LONGEST = 1 << 20


def functions(data: bytes, suffix: str, opcodes: Opcodes, spec: Spec) -> Iterator[Function]:
    """Each string of a source that holds matrix instructions, as if it were a function.

    Args:
        data: the source; bytes that are not UTF-8 are replaced.
        suffix: one of :data:`SUFFIXES`.
        opcodes: how matrix instructions start.
        spec: what says which register a constraint of ``asm`` asks for.
    """
    if not opcodes.places(data):
        return
    source = _Source(data.decode("utf-8", "replace"))
    reader = _Reader(source, opcodes, _constraints(spec))
    yield from reader.of_python() if suffix in PYTHON_SUFFIXES else reader.of_c(_Text(source.text, None))


def _constraints(spec: Spec) -> dict[str, str]:
    """The type of the register that a constraint asks for."""
    found: dict[str, str] = {}
    for register in spec.types.registers:
        found.setdefault(register.constraint, register.name)
    return found


# --- texts whose characters come from somewhere else ---------------------------------------------------------------------------


class _Source:
    """A source with its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, place: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect.bisect_right(self._lines, place)
        return line, place - self._lines[line - 1] + 1

    def place(self, line: int, column: int) -> int:
        """The character at a line, from 1, and a column, from 0."""
        return self._lines[line - 1] + column if line <= len(self._lines) else len(self.text)

    def line(self, place: int) -> tuple[str, int]:
        """The line of a character, as a finding shows it."""
        line, column = self.position(place)
        start = self._lines[line - 1]
        stop = self._lines[line] - 1 if line < len(self._lines) else len(self.text)
        return excerpt(self.text[start:stop].rstrip("\r"), column - 1)


class _Text(NamedTuple):
    """Characters, and the place of each in the source; None where all stand where they stood."""

    chars: str
    places: array[int] | None

    def place(self, index: int) -> int:
        return index if self.places is None else self.places[index]


class _Maker:
    """Puts a text together."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._chars: list[str] = []
        self._places = array("q")

    def keep(self, start: int, stop: int) -> None:
        """Characters as they stand."""
        self._chars.append(self._text.chars[start:stop])
        self._places.extend(range(start, stop) if self._text.places is None else self._text.places[start:stop])

    def put(self, chars: str, index: int) -> None:
        """Characters that something else stands for."""
        self._chars.append(chars)
        self._places.extend([self._text.place(index)] * len(chars))

    def made(self) -> _Text:
        return _Text("".join(self._chars), self._places)


class _Escapes(NamedTuple):
    """How a language writes characters in its literals."""

    pattern: re.Pattern[str]
    unknown: str  # what stands for the backslash before a character that no escape begins with


_OF_C = _Escapes(re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL), "")
_OF_PYTHON = _Escapes(re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL), "\\")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unescaped(maker: _Maker, chars: str, start: int, stop: int, escapes: _Escapes) -> None:
    """The inside of a literal."""
    for match in escapes.pattern.finditer(chars, start, stop):
        maker.keep(start, match.start())
        start = match.end()
        what = match[1]
        if what[0] in "xuU" and len(what) > 1:
            maker.put(_character(int(what[1:], 16)), match.start())
        elif what[0] in "01234567":
            maker.put(_character(int(what, 8)), match.start())
        elif not what.endswith("\n"):
            maker.put(_ESCAPED.get(what, what if what in "\"'?\\" else escapes.unknown + what), match.start())
    maker.keep(start, stop)


def _character(number: int) -> str:
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\N{REPLACEMENT CHARACTER}"


# --- what the checker sees -----------------------------------------------------------------------------------------------------

_NAMES = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.[xyzwrgba]\b)?")
_NUMBERED = re.compile(rb"%\d+")


class _Snippet(Function):
    """A string of PTX: what it does not declare is unknown."""

    def __init__(
        self,
        source: _Source,
        text: _Text,
        opcodes: Opcodes,
        types: Mapping[str, str],
        wanted: Callable[[Statement], bool],
        *,
        numbered: bool = False,
    ) -> None:
        raw = text.chars.encode("utf-8", "replace")
        cleaner = Cleaner()
        module = Module()
        super().__init__(module, [Piece(raw, cleaner.clean(raw) + cleaner.rest(), 1, 1)], opcodes)
        module.read(self.text)
        self._source, self._places, self._wanted = source, _of_bytes(text), wanted
        given = dict.fromkeys(_NAMES.findall(self.text), ANYTHING)
        given.pop(b"_", None)
        if numbered:  # every number that stands for an operand is known: compilers refuse others
            given = {name: kind for name, kind in given.items() if not _NUMBERED.fullmatch(name)}
        self.registers = Scopes(self.text, given=given | {name.encode(): kind for name, kind in types.items()})

    def statements(self) -> Iterator[Statement]:
        return filter(self._wanted, super().statements())

    def position(self, offset: int) -> tuple[int, int]:
        return self._source.position(self._place(offset))

    def source(self, offset: int) -> tuple[str, int]:
        return self._source.line(self._place(offset))

    def _place(self, offset: int) -> int:
        return self._places[min(offset, len(self._places) - 1)]


def _of_bytes(text: _Text) -> Sequence[int]:
    """The place of each byte of a text in UTF-8."""
    places = range(len(text.chars)) if text.places is None else text.places
    if text.chars.isascii():
        return places
    return array("q", (place for char, place in zip(text.chars, places, strict=True) for _ in char.encode("utf-8", "replace")))


def _any(_: Statement) -> bool:
    return True


_PLAIN = re.compile(rb"\{[\w$%,\s!-]*\}|!?-?[\w$%]+")


def _complete(statement: Statement) -> bool:
    """Whether a statement in any string is an instruction, and not a word in a sentence or a piece of one."""
    if statement.broken is not None or not all(_PLAIN.fullmatch(operand) for operand in statement.operands):
        return False
    if not statement.operands:
        return statement.opcode.count(b".") > 1
    return any(mark in operand for operand in statement.operands for mark in (b"%", b"$", b"{"))


# --- C and C++ -----------------------------------------------------------------------------------------------------------------

# What is not closed goes on to the end; escapes stand between runs of other characters, so that a long literal takes no memory.
_BLANK = r"//[^\n\\]*(?:\\.[^\n\\]*)*|/\*.*?(?:\*/|\Z)|\s+|\\\r?\n"
_RAW = r'R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\((?P<raw>.*?)(?:\)(?P=mark)"|\Z)'
_LITERAL = rf'(?:u8|[uUL])?(?:{_RAW}|"(?P<inside>[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*)")'
_OTHER = r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\.?\d(?:[eEpP][+-]|'?[\w.])*|(?P<word>[A-Za-z_]\w*)"
_TOKEN = re.compile(f"(?P<blank>{_BLANK})|(?P<literal>{_LITERAL})|{_OTHER}|.", re.DOTALL)
_WORDS = re.compile(f"{_BLANK}|{_LITERAL}|{_OTHER}", re.DOTALL)
_ASM = frozenset({"asm", "__asm", "__asm__"})
_QUALIFIERS = frozenset({"volatile", "__volatile", "__volatile__", "inline", "__inline__", "goto"})
_PLACEHOLDER = re.compile(r"%(?:%|[{}|=]|\[(\w+)\])")


class _Tokens:
    """The tokens of C from a place on, without blanks."""

    def __init__(self, text: _Text, start: int) -> None:
        self._found = _TOKEN.finditer(text.chars, start)
        self.now: re.Match[str] | None = None
        self.step()

    def step(self) -> None:
        """Go on to the next token."""
        self.now = next((match for match in self._found if match["blank"] is None), None)

    @property
    def text(self) -> str:
        """The token; ``""`` at the end."""
        return self.now[0] if self.now else ""

    def take(self, text: str) -> bool:
        """Go on if this is the token."""
        if self.text != text:
            return False
        self.step()
        return True


class _Reader:
    """Finds the snippets of a source."""

    def __init__(self, source: _Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> None:
        self._source, self._opcodes, self._constraints = source, opcodes, constraints

    def of_c(self, text: _Text) -> Iterator[Function]:
        """The ``asm`` statements of C or C++."""
        if "asm" in text.chars:
            for match in _WORDS.finditer(text.chars):
                if match["word"] in _ASM:
                    yield from self._statement(text, match.end())

    def _statement(self, text: _Text, start: int) -> Iterator[Function]:
        tokens = _Tokens(text, start)
        while tokens.text in _QUALIFIERS:
            tokens.step()
        if not tokens.take("("):
            return
        maker = _Maker(text)
        while tokens.now and tokens.now["literal"] is not None:
            match = tokens.now
            if match["raw"] is not None:
                maker.keep(*match.span("raw"))
            else:
                _unescaped(maker, text.chars, *match.span("inside"), _OF_C)
            tokens.step()
        if tokens.text not in (":", ")"):  # a macro makes a part of it
            return
        made = maker.made()
        if len(made.chars) <= _LONGEST and self._opcodes.places(made.chars.encode("utf-8", "replace")):
            types = self._operands(tokens) if tokens.text == ":" else {}
            yield _Snippet(self._source, _with_names(made), self._opcodes, types, _any, numbered=bool(types))

    def _operands(self, tokens: _Tokens) -> dict[str, str]:
        """The types of the placeholders of an ``asm`` statement, as far as they can be seen."""
        found: list[tuple[str, str]] = []
        for _ in ("outputs", "inputs"):
            if not tokens.take(":"):
                break
            while tokens.text not in (":", ")", ""):
                name = ""
                if tokens.take("["):
                    name = tokens.text
                    tokens.step()
                    tokens.take("]")
                if not tokens.now or tokens.now["inside"] is None:
                    return {}  # a macro makes operands, nobody knows how many
                constraint = tokens.now["inside"].lstrip("=+&")
                tokens.step()
                if not _parenthesised(tokens):
                    return {}
                tokens.take(",")
                number = int(constraint) if constraint.isdecimal() and len(constraint) < 4 else -1
                found.append((name, found[number][1] if 0 <= number < len(found) else self._constraints.get(constraint, ANYTHING)))
        types = {f"%{number}": kind for number, (_, kind) in enumerate(found)}
        return types | {f"%_{name}_": kind for name, kind in found if name}

    # --- Python ---

    def of_python(self) -> Iterator[Function]:
        """The string literals of Python."""
        for literals, constraints in _strings(self._source):
            maker = _Maker(_Text(self._source.text, None))
            for start, stop in literals:
                _literal(maker, self._source.text, start, stop)
            text = maker.made()
            if len(text.chars) > _LONGEST or not self._opcodes.places(text.chars.encode("utf-8", "replace")):
                continue
            if any(match["word"] in _ASM for match in _WORDS.finditer(text.chars)):
                yield from self.of_c(text)
            else:
                kinds = [self._constraints.get(each.strip().lstrip("=+&"), ANYTHING) for each in constraints.split(",")]
                types = {f"{mark}{number}": kind for number, kind in enumerate(kinds) for mark in "$%"} if constraints else {}
                yield _Snippet(self._source, _with_dollars(text), self._opcodes, types, _complete)


def _parenthesised(tokens: _Tokens) -> bool:
    """Go past an expression in parentheses; False where there is none."""
    depth = 0
    while tokens.now:
        depth += {"(": 1, ")": -1}.get(tokens.text, 0)
        if depth == 0 and tokens.text != ")":
            return False
        tokens.step()
        if depth == 0:
            return True
    return False


def _with_names(text: _Text) -> _Text:
    """The text of ``asm`` as PTX: ``%0`` and ``%[x]`` become names, ``%%`` is a percent sign."""
    return _replaced(text, _PLACEHOLDER, lambda match: f"%_{match[1]}_" if match[1] else match[0][1].replace("=", "0"))


def _with_dollars(text: _Text) -> _Text:
    """The text of LLVM's ``asm`` as PTX: ``$0`` is a name already, ``$$`` is a dollar sign."""
    return _replaced(text, re.compile(r"\$\$|\$\{(\d+)(?::\w+)?\}|%%"), lambda match: f"${match[1]}" if match[1] else match[0][0])


def _replaced(text: _Text, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> _Text:
    maker = _Maker(text)
    start = 0
    for match in pattern.finditer(text.chars):
        maker.keep(start, match.start())
        maker.put(by(match), match.start())
        start = match.end()
    maker.keep(start, len(text.chars))
    return maker.made()


_PREFIX = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
_CONSTRAINTS = re.compile(r"\s*[=+][\w&]+(?:\s*,\s*[=+&~]*[\w{}]+)*\s*")
#: Tokens that mean nothing.
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT})
#: Strings with expressions in them: their prefixes, and from Python 3.12 on the tokens that they begin with.
_FORMATS = frozenset("ft")
_FORMATTED = frozenset(getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name))
_STARTS = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


class _Run(NamedTuple):
    """Literals that stand side by side: one string."""

    literals: list[tuple[int, int]]
    before: tokenize.TokenInfo | None
    after: tokenize.TokenInfo | None

    @property
    def whole(self) -> bool:
        """Whether it is a string that is used as it stands: no documentation, nothing that an operator or a method completes."""
        starts = self.before is None or self.before.type in _STARTS
        if starts and self.after is not None and self.after.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            return False
        beside = (each.string for each in (self.before, self.after) if each is not None and each.type == tokenize.OP)
        return not any(text in ("+", "%", ".", "+=", "%=") for text in beside)


def _strings(source: _Source) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """The strings of a Python source that are known: their literals, and the constraints that stand in the same call."""
    runs = list(_runs(source))
    for number, run in enumerate(runs):
        if run.whole:
            yield run.literals, next((found for other in runs[number + 1 : number + 2] if (found := _of_constraints(source, other))), "")


def _of_constraints(source: _Source, run: _Run) -> str:
    """The constraints of an ``asm`` that a string lists; ``""`` if it is another string."""
    if len(run.literals) != 1:
        return ""
    start, stop = run.literals[0]
    inside = source.text[start:stop].strip("\"'")
    return inside if _CONSTRAINTS.fullmatch(inside) else ""


def _runs(source: _Source) -> Iterator[_Run]:
    before: tokenize.TokenInfo | None = None
    literals: list[tuple[int, int]] = []
    known = True
    for token in _tokens(source.text):
        if token.type == tokenize.STRING or token.type in _FORMATTED:
            known = known and token.type == tokenize.STRING and _FORMATS.isdisjoint(token.string.partition(token.string[-1])[0].lower())
            literals.append((source.place(*token.start), source.place(*token.end)))
        elif token.type not in _LAYOUT:
            if literals and known:
                yield _Run(literals, before, token)
            literals, known, before = [], True, token


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of Python, as far as it is Python."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _literal(maker: _Maker, text: str, start: int, stop: int) -> None:
    match = _PREFIX.match(text, start)
    assert match  # tokenize saw a string
    first, last = match.end(), stop - len(match[2])
    if "r" in match[1].lower():
        maker.keep(first, last)
    else:
        _unescaped(maker, text, first, last, _OF_PYTHON)
