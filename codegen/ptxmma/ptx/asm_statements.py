"""The ``asm`` statements of C and C++."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence

from ptxmma.ptx.asm_operand import AsmOperand
from ptxmma.ptx.constants import Constants
from ptxmma.ptx.mapped_text import C_ESCAPES, Source, Text, TextBuilder, unescaped
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.snippets import Snippet, replaced
from ptxmma.ptx.statements import Function, Statement

#: Characters of the longest string that is looked at.
LONGEST = 1 << 20
#: Combinations of values inside the opcodes of one statement that are tried.
_MOST_CHOICES = 100

# An unclosed comment or literal extends to the end.  Escapes separate runs of other characters, so that a long literal takes no memory.
_BLANK = r"//[^\n\\]*(?:\\.[^\n\\]*)*|/\*.*?(?:\*/|\Z)|\s+|\\\r?\n"
_RAW = r'R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\((?P<raw>.*?)(?:\)(?P=mark)"|\Z)'
_LITERAL = rf'(?:u8|[uUL])?(?:{_RAW}|"(?P<inside>[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*)")'
_OTHER = r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\.?\d(?:[eEpP][+-]|'?[\w.])*|(?P<word>[A-Za-z_]\w*)"
_TOKEN = re.compile(f"(?P<blank>{_BLANK})|(?P<literal>{_LITERAL})|{_OTHER}|.", re.DOTALL)
_DIRECTIVE = r"#[ \t]*(?P<directive>if(?:n?def)?|elif|else|endif)\b(?P<condition>[^\n]*)"
# What a search for statements must know: comments, literals, keywords, conditions.  Each begins with a plain character, for speed.
_PREFIX = r"(?:(?<!\w.)|(?<=\bu8.)|(?<=\b[uUL].))"  # before the character that was read
_STRING = rf'R{_PREFIX}{_RAW[1:]}|"[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*"'
_CHARACTER = rf"'{_PREFIX}[^'\\\n]*(?:\\.[^'\\\n]*)*'"
_COMMENT = r"//[^\n\\]*(?:\\.[^\n\\]*)*|/\*.*?(?:\*/|\Z)"
_KEYWORD = r"(?P<word>asm(?<!\wasm)|__asm(?<!\w__asm)(?:__)?)(?!\w)"
_WORDS = re.compile(f"{_COMMENT}|{_STRING}|{_CHARACTER}|{_KEYWORD}|{_DIRECTIVE}", re.DOTALL)
#: The ends of lines that do not go on.
_LINE_ENDS = re.compile(r"(?<!\\)(?<!\\\r)\n")
_QUALIFIERS = frozenset({"volatile", "__volatile", "__volatile__", "inline", "__inline__", "goto"})
#: An operand behind a character of an opcode, or anything else that a percent sign begins.
_PLACEHOLDER = re.compile(r"(?<=[\w.:])(?P<operand>%(?:\d+|\[\w+\]))|%(?:%|[{}|=]|\[(?P<name>\w+)\])")


class _Tokens:
    """The tokens of C between two places, without blanks."""

    def __init__(self, text: Text, start: int, end: int) -> None:
        self._rest = _TOKEN.finditer(text.chars, start, end)
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


class Conditions:
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


def holds_assembly(text: str) -> bool:
    """Whether a text has an ``asm`` statement of C."""
    return "asm" in text and any(match["word"] for match in _WORDS.finditer(text))


class AsmReader:
    """Finds the ``asm`` statements of a source.

    Args:
        source: the file.
        opcodes: how matrix instructions start.
        constraints: the type of the register that a constraint asks for.
    """

    def __init__(self, source: Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> None:
        self._source, self._opcodes, self._constraints = source, opcodes, constraints
        self._constants = Constants(source.text)

    def statements(self, text: Text) -> Iterator[Function]:
        """The ``asm`` statements with matrix instructions in a text of C or C++."""
        if "asm" in text.chars:
            conditions = Conditions()
            for match in _WORDS.finditer(text.chars):
                if match["directive"]:
                    conditions.follow(match["directive"], match["condition"])
                elif match["word"] and conditions.alive:
                    yield from self._statement(text, _Tokens(text, match.end(), len(text.chars)))

    def of_part(self, conditions: Conditions, start: int, *, last: bool) -> Generator[Function, None, int]:
        """As :meth:`statements` of a part of a file, from a place on.

        Args:
            conditions: the sections that are open there; they are followed.
            start: the place.
            last: whether nothing follows; otherwise what may go on behind its last line is left to the next part.

        Returns:
            The place from which the next part must be read.
        """
        text = Text(self._source.text, None)
        end = len(text.chars) if last else max((match.end() for match in _LINE_ENDS.finditer(text.chars, start)), default=start)
        for match in _WORDS.finditer(text.chars, start, end):
            if match.end() == end and not last:
                return match.start()
            if match["directive"]:
                conditions.follow(match["directive"], match["condition"])
            elif match["word"] and conditions.alive:
                tokens = _Tokens(text, match.end(), end)
                statement = [*self._statement(text, tokens)]
                if tokens.now is None and not last:
                    return match.start()
                yield from statement
        return end

    def _statement(self, text: Text, tokens: _Tokens) -> Iterator[Function]:
        while tokens.text in _QUALIFIERS:
            tokens.step()
        if not tokens.take("("):
            return
        maker = TextBuilder(text)
        _add_literals(maker, text, tokens)
        known = tokens.text in (":", ")")
        while tokens.text not in (":", ")", ""):  # a macro makes a part of it
            tokens.step()
            maker.put(" ", 0)
            _add_literals(maker, text, tokens)
        made = maker.made()
        if len(made.chars) > LONGEST or not self._opcodes.places(made.chars.encode("utf-8", "replace")):
            return
        operands = self._operands(tokens) if known else []
        types = {f"%{number}": operand.type for number, operand in enumerate(operands)}
        types |= {f"%_{operand.name}_": operand.type for operand in operands if operand.name}
        texts = (_as_ptx(made, values) for values in _choices(made, operands))
        first, *others = (Snippet(self._source, text, self._opcodes, types, _any, numbered=bool(types), known=known) for text in texts)
        first.alternatives = tuple(others)
        for snippet in (first, *others):
            snippet.operands = operands
        yield first

    def _operands(self, tokens: _Tokens) -> list[AsmOperand]:
        """The operands of an ``asm`` statement; none where a macro makes some of them."""
        operands: list[AsmOperand] = []
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
                    return []  # nobody knows how many there are
                written = tokens.now["inside"]
                constraint = written.lstrip("=+&")
                tokens.step()
                expression = _parenthesised(tokens)
                if expression is None:
                    return []
                tokens.take(",")
                values = self._constants.values(expression) if constraint in ("n", "i", "C") else ()
                operands.append(AsmOperand(name, written, expression, self._type(constraint, operands), values))
        return operands

    def _type(self, constraint: str, operands: Sequence[AsmOperand]) -> str:
        number = int(constraint) if constraint.isdecimal() and len(constraint) < 4 else -1
        return operands[number].type if 0 <= number < len(operands) else self._constraints.get(constraint, ANYTHING)


def _any(_: Statement) -> bool:
    return True


def _add_literals(maker: TextBuilder, text: Text, tokens: _Tokens) -> None:
    """Add adjacent literals, which form one string."""
    while tokens.now and tokens.now["literal"] is not None:
        match = tokens.now
        if match["raw"] is not None:
            maker.keep(*match.span("raw"))
        else:
            unescaped(maker, text.chars, *match.span("inside"), C_ESCAPES)
        tokens.step()


def _parenthesised(tokens: _Tokens) -> str | None:
    """Skip an expression in parentheses and return the text inside; None if the next token does not open one."""
    depth = 0
    inside: list[str] = []
    while tokens.now:
        depth += {"(": 1, ")": -1}.get(tokens.text, 0)
        if depth == 0 and tokens.text != ")":
            return None
        inside.append(tokens.text)
        tokens.step()
        if depth == 0:
            return " ".join(inside[1:-1])
    return None


def _choices(text: Text, operands: Sequence[AsmOperand]) -> Iterator[dict[str, str]]:
    """The values that the operands inside opcodes may have together, each by how the text names it; at least one choice."""
    named = {f"%{number}": operand.values for number, operand in enumerate(operands)}
    named |= {f"%[{operand.name}]": operand.values for operand in operands if operand.name}
    inside = {match["operand"] for match in _PLACEHOLDER.finditer(text.chars)}
    known = {name: values for name, values in named.items() if values and name in inside}
    if math.prod(map(len, known.values())) > _MOST_CHOICES:
        known = {name: values for name, values in known.items() if len(values) == 1}
    return (dict(zip(known, values, strict=True)) for values in itertools.product(*known.values()))


def _as_ptx(text: Text, values: Mapping[str, str]) -> Text:
    """The text of ``asm`` as PTX: ``%%`` is a percent sign, and ``%[x]`` becomes a name.

    An operand inside an opcode is replaced by its value, if that is known: ``m16n8k%14`` with ``"n"(16)``.
    """

    def by(match: re.Match[str]) -> str:
        word = match["operand"]
        if word is None:
            return str((match["name"] and f"%_{match['name']}_") or match[0][1].replace("=", "0"))
        return values.get(word) or (f"%_{word[2:-1]}_" if word[1] == "[" else word)

    return replaced(text, _PLACEHOLDER, by)
