"""The ``asm`` statements of C and C++."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence

from ptxmma.ptx.cplusplus_tokens import PLAIN_LITERAL, WORDS, Conditions, Tokens, after_last_line
from ptxmma.ptx.literals import integer
from ptxmma.ptx.mapped_text import C_ESCAPES, Source, Text, TextBuilder, unescaped
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.operand_values import ANYTHING
from ptxmma.ptx.snippets import Snippet, replaced
from ptxmma.ptx.statements import AsmOperand, Function, Statement

#: Characters of the longest string that is looked at, as written.
LONGEST = 1 << 20
#: Combinations of values inside the opcodes of one statement that are tried.
_MOST_CHOICES = 100

_QUALIFIERS = ("volatile", "__volatile", "__volatile__", "inline", "__inline__", "goto")
# The usual way to write a statement, which needs no tokens.  Each part of it ends in one way only: what does not fit fails quickly.
_GAP = r"\s+(?!\s)|\\\r?\n"
_HEAD = re.compile(rf"(?:{_GAP}|(?:{'|'.join(_QUALIFIERS)})\b){{0,16}}\(((?:{_GAP}|{PLAIN_LITERAL}){{0,1000}})[:)]", re.DOTALL)
_INSIDE = re.compile(rf"{PLAIN_LITERAL[:1]}({PLAIN_LITERAL[1:-1]}){PLAIN_LITERAL[-1:]}", re.DOTALL)
#: An escape that may make a letter: "\x6dma" is "mma".
_ESCAPED = re.compile(r"\\(?![nrt\"'\\])")
_NESTED = r"[^()\"'/\\]*(?:\([^()\"'/\\]*(?:\([^()\"'/\\]*\)[^()\"'/\\]*)*\)[^()\"'/\\]*)*"
_USUAL_OPERAND = re.compile(rf'\s*(?:\[\s*([A-Za-z_]\w*)\s*\]\s*)?"([^"\\\n]*)"\s*\(({_NESTED})\)\s*,?')
_OF_EXPRESSION = re.compile(r"\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*|\S")
#: An operand, or anything else that a percent sign begins.
_PLACEHOLDER = re.compile(r"(?P<operand>%(?:\d+|\[\w+\]))|%[%{}|=]")
#: The constraints of operands that are texts, and of registers of integers that are only read.
_TEXTS, _INTEGERS = ("n", "i", "C"), ("h", "r", "l")


class AsmReader:
    """Finds the ``asm`` statements of a source.

    Args:
        source: the file.
        opcodes: the first words of matrix instructions.
        constraints: the type of the register that a constraint asks for.
    """

    def __init__(self, source: Source, opcodes: Opcodes, constraints: Mapping[str, str]) -> None:
        self._source, self._opcodes, self._constraints = source, opcodes, constraints
        self._constants = Constants(source.text)

    def statements(self, text: Text) -> Iterator[Function]:
        """The ``asm`` statements with matrix instructions in a text of C or C++."""
        if "asm" in text.chars:
            yield from self._between(text, Conditions(), 0, len(text.chars), last=True)

    def of_part(self, conditions: Conditions, start: int, *, last: bool) -> Generator[Function, None, int]:
        """Yield what :meth:`statements` yields, of a part of a file from a place on.

        Args:
            conditions: the sections that are open there; they are followed.
            start: the place.
            last: whether nothing follows; otherwise the next part gets what may go on after its last line.

        Returns:
            The place from which the next part must be read.
        """
        text = Text(self._source.text, None)
        end = len(text.chars) if last else after_last_line(text.chars, start)
        return (yield from self._between(text, conditions, start, end, last=last))

    def _between(self, text: Text, conditions: Conditions, start: int, end: int, *, last: bool) -> Generator[Function, None, int]:
        """The statements between two places, and the start of the rest, which may go on after the end if this is not the last part."""
        for match in WORDS.finditer(text.chars, start, end):
            if match.end() == end and not last:
                return match.start()
            kind = match.lastgroup
            if kind == "condition":
                conditions.follow(match["directive"], match["condition"])
            elif kind == "word" and conditions.alive and self._may_concern(text.chars, match.end(), end):
                tokens = Tokens(text, match.end(), end)
                statement = [*self._statement(text, tokens)]
                if tokens.now is None and not tokens.broken and not last:
                    return match.start()
                for snippet in statement:
                    snippet.guard = conditions.guard
                yield from statement
        return end

    def _may_concern(self, chars: str, start: int, end: int) -> bool:
        """Return whether a statement may have a matrix instruction, as far as its strings show without being read one by one."""
        head = _HEAD.match(chars, start, end)
        if head is None:
            return True
        written = "".join(_INSIDE.findall(head[1]))
        return _ESCAPED.search(written) is not None or self._opcodes.mentioned(written.encode("utf-8", "replace"))

    def _statement(self, text: Text, tokens: Tokens) -> Iterator[Function]:
        while tokens.text in _QUALIFIERS:
            tokens.step()
        if not tokens.take("("):
            return
        maker = TextBuilder(text)
        if not _add_literals(maker, text, tokens):
            return
        known = tokens.text in (":", ")")
        while tokens.text not in (":", ")", ""):  # a macro makes a part of it
            tokens.step()
            maker.put(" ", 0)
            if not _add_literals(maker, text, tokens):
                return
        made = maker.made()
        if not self._opcodes.places(made.chars.encode("utf-8", "replace")):
            return
        operands = self._operands(tokens) if known else []
        if tokens.broken:
            known, operands = False, []
        types = {f"%{number}": operand.type for number, operand in enumerate(operands)}
        types |= {f"%_{operand.name}_": operand.type for operand in operands if operand.name}
        passed = {
            name.encode(): operand.passed
            for number, operand in enumerate(operands)
            for name in operand.names(number)
            if operand.passed is not None
        }
        texts = (_as_ptx(made, values) for values in _choices(made, operands))
        first, *others = (Snippet(self._source, text, self._opcodes, types, _any, numbered=bool(types), known=known) for text in texts)
        first.alternatives = tuple(others)
        for snippet in (first, *others):
            snippet.operands = operands
            snippet.passed = passed
        yield first

    def _operands(self, tokens: Tokens) -> list[AsmOperand]:
        """The operands of an ``asm`` statement; none where a macro makes some of them."""
        operands: list[AsmOperand] = []
        for _ in ("outputs", "inputs"):
            if not tokens.take(":"):
                break
            while tokens.text not in (":", ")", ""):
                for match in tokens.usual(_USUAL_OPERAND):
                    name, constraint, written = match.groups("")
                    operands.append(self._operand(name, constraint, " ".join(_OF_EXPRESSION.findall(written)), operands))
                if tokens.text in (":", ")", ""):
                    break
                name = ""
                if tokens.take("["):
                    name = tokens.text
                    tokens.step()
                    tokens.take("]")
                if not tokens.now or tokens.now["inside"] is None:
                    return []  # nobody knows how many there are
                constraint = tokens.now["inside"]
                tokens.step()
                expression = _parenthesised(tokens)
                if expression is None:
                    return []
                tokens.take(",")
                operands.append(self._operand(name, constraint, expression, operands))
        return operands

    def _operand(self, name: str, written: str, expression: str, before: Sequence[AsmOperand]) -> AsmOperand:
        constraint = written.lstrip("=+&")
        values = self._constants.values(expression) if constraint in _TEXTS else ()
        passed = integer(expression.strip("() ").encode("utf-8", "replace")) if written in _INTEGERS else None
        return AsmOperand(name, written, expression, self._type(constraint, before), values, passed)

    def _type(self, constraint: str, operands: Sequence[AsmOperand]) -> str:
        number = int(constraint) if constraint.isdecimal() and len(constraint) < 4 else -1
        return operands[number].type if 0 <= number < len(operands) else self._constraints.get(constraint, ANYTHING)


def _any(_: Statement) -> bool:
    return True


def _add_literals(maker: TextBuilder, text: Text, tokens: Tokens) -> bool:
    """Add adjacent literals, which form one string; whether it is short enough to be looked at."""
    while tokens.now and tokens.now.start("literal") >= 0:
        match = tokens.now
        raw = match.start("raw") >= 0
        start, stop = match.span("raw" if raw else "inside")
        if maker.size + stop - start > LONGEST:
            return False
        if raw:
            maker.keep(start, stop)
        else:
            unescaped(maker, text.chars, start, stop, C_ESCAPES)
        tokens.step()
    return maker.size <= LONGEST


def _parenthesised(tokens: Tokens) -> str | None:
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
    """The values that the operands that are constants may have together, each by how the text names it; at least one choice."""
    named = {f"%{number}": operand.values for number, operand in enumerate(operands) if operand.values}
    named |= {f"%[{operand.name}]": operand.values for operand in operands if operand.name and operand.values}
    inside = {match["operand"] for match in _PLACEHOLDER.finditer(text.chars)} if named else ()
    known = {name: values for name, values in named.items() if name in inside}
    if math.prod(map(len, known.values())) > _MOST_CHOICES:
        known = {name: values for name, values in known.items() if len(values) == 1}
    return (dict(zip(known, values, strict=True)) for values in itertools.product(*known.values()))


def _as_ptx(text: Text, values: Mapping[str, str]) -> Text:
    """The text of ``asm`` as PTX: ``%%`` is a percent sign, and ``%[x]`` becomes a name.

    An operand that is a constant is replaced by its value, if that is known: ``m16n8k%14`` with ``"n"(16)``.
    """

    def by(match: re.Match[str]) -> str:
        word = match["operand"]
        if word is None:
            return match[0][1].replace("=", "0")
        return values.get(word) or (f"%_{word[2:-1]}_" if word[1] == "[" else word)

    return replaced(text, _PLACEHOLDER, by)


_INITIALISED = re.compile(r"\b(?:constexpr|const)\b[^;={}()]*?\b(\w+)\s*(?:\[\s*\]\s*)?=\s*([^;]+);")
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]+)$", re.MULTILINE)
_CHOICE = re.compile(r"[^?]*\?([^?:]+):([^?:]+)")
_STRING = re.compile(r'"([\w.:]*)"')
_NAME = re.compile(r"(?:[\w\s]+(?:<[^;]*>)?\s*:\s*:\s*)*(\w+)")


class Constants:
    """The constants that a source defines.

    Args:
        text: the source's text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, tuple[str, ...]] = {}  # by name

    def values(self, expression: str) -> tuple[str, ...]:
        """The values that an expression may have: several where a template or a condition chooses; none where one of them is unknown.

        Of a name such as ``T::value``, any definition of ``value`` may be meant.
        """
        expression = expression.strip()
        if direct := _value(expression):
            return (direct,)
        name = _NAME.fullmatch(expression)
        if name is None:
            return ()
        if name[1] not in self._found:
            self._found[name[1]] = self._defined(name[1])
        return self._found[name[1]]

    def _defined(self, name: str) -> tuple[str, ...]:
        if re.search(rf"\btemplate\s*<[^;{{}}()]*[\w.]\s+{name}\s*[,>=]", self._text):  # a parameter of a template
            return ()
        values: list[str] = []
        for definition in self._all.get(name, ()):
            choice = _CHOICE.fullmatch(definition)
            known = [_value(part.strip()) for part in (choice.groups() if choice else (definition,))]
            if not all(known):
                return ()
            values += known
        return tuple(dict.fromkeys(values))

    @functools.cached_property
    def _all(self) -> dict[str, list[str]]:
        """Every definition of each name."""
        definitions: dict[str, list[str]] = {}
        for pattern in (_INITIALISED, _DEFINED):
            for name, value in pattern.findall(self._text):
                definitions.setdefault(name, []).append(value.split("//")[0].strip())
        return definitions


def _value(text: str) -> str:
    """The text that a literal puts into an opcode; empty for what is not one."""
    if match := _STRING.fullmatch(text):
        return match[1]
    number = integer(text.strip("() ").encode("utf-8", "replace"))
    return "" if number is None else str(number)
