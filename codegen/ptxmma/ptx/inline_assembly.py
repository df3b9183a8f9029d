"""PTX inside other sources: the strings of ``asm`` statements in C and C++, and string literals in Python.

Only what is known without a compiler is read.  Strings that a macro or a format makes, operands whose constraints cannot be seen, and
numbers that a template gives are unknown, and nothing is reported about them.  Every place is one of the original source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ptxmma.ptx.mapped_text import C_ESCAPES, Source, Text, TextBuilder, places_of_bytes, unescaped
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.python_strings import add_literal, strings
from ptxmma.ptx.scopes import Scopes
from ptxmma.ptx.statements import Function, Module, Opcodes, Statement
from ptxmma.ptx.tokens import Cleaner, Piece

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
    source = Source(data.decode("utf-8", "replace"))
    reader = _Reader(source, opcodes, _constraints(spec))
    yield from reader.of_python() if suffix in PYTHON_SUFFIXES else reader.of_c(Text(source.text, None))


def _constraints(spec: Spec) -> dict[str, str]:
    """The type of the register that a constraint asks for."""
    types: dict[str, str] = {}
    for register in spec.types.registers:
        types.setdefault(register.constraint, register.name)
    return types


# --- what the checker sees -----------------------------------------------------------------------------------------------------

_NAMES = re.compile(rb"[A-Za-z_$%][\w$%]*(?:\.[xyzwrgba]\b)?")
_NUMBERED = re.compile(rb"%\d+")


class _Snippet(Function):
    """A string of PTX: what it does not declare is unknown."""

    def __init__(
        self,
        source: Source,
        text: Text,
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
        self._source, self._places, self._wanted = source, places_of_bytes(text), wanted
        given = dict.fromkeys(_NAMES.findall(self.text), ANYTHING)
        given.pop(b"_", None)
        if numbered:  # every numbered operand is known: compilers refuse others
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

# An unclosed comment or literal extends to the end.  Escapes separate runs of other characters, so that a long literal takes no memory.
_BLANK = r"//[^\n\\]*(?:\\.[^\n\\]*)*|/\*.*?(?:\*/|\Z)|\s+|\\\r?\n"
_RAW = r'R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\((?P<raw>.*?)(?:\)(?P=mark)"|\Z)'
_LITERAL = rf'(?:u8|[uUL])?(?:{_RAW}|"(?P<inside>[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*)")'
_OTHER = r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\.?\d(?:[eEpP][+-]|'?[\w.])*|(?P<word>[A-Za-z_]\w*)"
_TOKEN = re.compile(f"(?P<blank>{_BLANK})|(?P<literal>{_LITERAL})|{_OTHER}|.", re.DOTALL)
_DIRECTIVE = r"#[ \t]*(?P<directive>if(?:n?def)?|elif|else|endif)\b(?P<condition>[^\n]*)"
_WORDS = re.compile(f"{_BLANK}|{_LITERAL}|{_OTHER}|{_DIRECTIVE}", re.DOTALL)
_ASM = frozenset({"asm", "__asm", "__asm__"})
_QUALIFIERS = frozenset({"volatile", "__volatile", "__volatile__", "inline", "__inline__", "goto"})
_PLACEHOLDER = re.compile(r"%(?:%|[{}|=]|\[(\w+)\])")


class _Tokens:
    """The tokens of C from a place on, without blanks."""

    def __init__(self, text: Text, start: int) -> None:
        self._rest = _TOKEN.finditer(text.chars, start)
        self.now: re.Match[str] | None = None
        self.step()

    def step(self) -> None:
        """Go on to the next token."""
        self.now = next((match for match in self._rest if match["blank"] is None), None)

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


class _Conditions:
    """The conditional sections of C that are open; code in those of ``#if 0`` does not exist."""

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []  # the condition, and whether its section is dead

    def follow(self, directive: str, condition: str) -> None:
        """Go past a directive."""
        if directive.startswith("if"):
            text = re.split("//|/[*]", condition)[0].strip() if directive == "if" else ""
            self._open.append((text, text == "0"))
        elif self._open:
            text, _ = self._open.pop()
            if directive != "endif":
                self._open.append((text, text == "1"))

    @property
    def alive(self) -> bool:
        """Whether code is compiled here, as far as can be seen."""
        return not any(dead for _, dead in self._open)


class _Reader:
    """Finds the snippets of a source."""

    def __init__(self, source: Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> None:
        self._source, self._opcodes, self._constraints = source, opcodes, constraints

    def of_c(self, text: Text) -> Iterator[Function]:
        """The ``asm`` statements of C or C++."""
        if "asm" in text.chars:
            conditions = _Conditions()
            for match in _WORDS.finditer(text.chars):
                if match["directive"]:
                    conditions.follow(match["directive"], match["condition"])
                elif match["word"] in _ASM and conditions.alive:
                    yield from self._statement(text, match.end())

    def _statement(self, text: Text, start: int) -> Iterator[Function]:
        tokens = _Tokens(text, start)
        while tokens.text in _QUALIFIERS:
            tokens.step()
        if not tokens.take("("):
            return
        maker = TextBuilder(text)
        while tokens.now and tokens.now["literal"] is not None:
            match = tokens.now
            if match["raw"] is not None:
                maker.keep(*match.span("raw"))
            else:
                unescaped(maker, text.chars, *match.span("inside"), C_ESCAPES)
            tokens.step()
        if tokens.text not in (":", ")"):  # a macro makes a part of it
            return
        made = maker.made()
        if len(made.chars) <= _LONGEST and self._opcodes.places(made.chars.encode("utf-8", "replace")):
            types = self._operands(tokens) if tokens.text == ":" else {}
            yield _Snippet(self._source, _with_names(made), self._opcodes, types, _any, numbered=bool(types))

    def _operands(self, tokens: _Tokens) -> dict[str, str]:
        """The types of the placeholders of an ``asm`` statement, as far as they can be seen."""
        operands: list[tuple[str, str]] = []
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
                operands.append((name, operands[number][1] if 0 <= number < len(operands) else self._constraints.get(constraint, ANYTHING)))
        types = {f"%{number}": kind for number, (_, kind) in enumerate(operands)}
        return types | {f"%_{name}_": kind for name, kind in operands if name}

    # --- Python ---

    def of_python(self) -> Iterator[Function]:
        """The string literals of Python."""
        for literals, constraints in strings(self._source):
            maker = TextBuilder(Text(self._source.text, None))
            for start, stop in literals:
                add_literal(maker, self._source.text, start, stop)
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


def _with_names(text: Text) -> Text:
    """The text of ``asm`` as PTX: ``%0`` and ``%[x]`` become names, ``%%`` is a percent sign."""
    return _replaced(text, _PLACEHOLDER, lambda match: f"%_{match[1]}_" if match[1] else match[0][1].replace("=", "0"))


def _with_dollars(text: Text) -> Text:
    """The text of LLVM's ``asm`` as PTX: ``$0`` is a name already, ``$$`` is a dollar sign."""
    return _replaced(text, re.compile(r"\$\$|\$\{(\d+)(?::\w+)?\}|%%"), lambda match: f"${match[1]}" if match[1] else match[0][0])


def _replaced(text: Text, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> Text:
    maker = TextBuilder(text)
    start = 0
    for match in pattern.finditer(text.chars):
        maker.keep(start, match.start())
        maker.put(by(match), match.start())
        start = match.end()
    maker.keep(start, len(text.chars))
    return maker.made()
