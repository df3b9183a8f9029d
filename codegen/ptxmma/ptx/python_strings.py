"""The string literals of a Python source whose text is known."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

from ptxmma.ptx.mapped_text import PYTHON_ESCAPES, Source, TextBuilder, unescaped

_PREFIX = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
_CONSTRAINTS = re.compile(r"\s*[=+][\w&]+(?:\s*,\s*[=+&~]*[\w{}]+)*\s*")
#: Tokens that mean nothing.
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT})
#: Strings with expressions in them: their prefixes, and from Python 3.12 on the tokens that they begin with.
_FORMATS = frozenset("ft")
_FORMATTED = frozenset(getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name))
_STARTS = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


class _Run(NamedTuple):
    """Adjacent literals, which form one string."""

    literals: list[tuple[int, int]]
    before: tokenize.TokenInfo | None
    after: tokenize.TokenInfo | None

    @property
    def whole(self) -> bool:
        """Whether the string is used unchanged: not documentation, and not completed by an operator or a method."""
        starts = self.before is None or self.before.type in _STARTS
        if starts and self.after is not None and self.after.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            return False
        beside = (each.string for each in (self.before, self.after) if each is not None and each.type == tokenize.OP)
        return not any(text in ("+", "%", ".", "+=", "%=") for text in beside)


def strings(source: Source) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """The strings of a Python source that are known: their literals, and the constraints in the same call."""
    runs = list(_runs(source))
    for number, run in enumerate(runs):
        if run.whole:
            yield (
                run.literals,
                next((constraints for other in runs[number + 1 : number + 2] if (constraints := _of_constraints(source, other))), ""),
            )


def _of_constraints(source: Source, run: _Run) -> str:
    """The constraints of an ``asm`` that a string lists; ``""`` if it is another string."""
    if len(run.literals) != 1:
        return ""
    start, stop = run.literals[0]
    inside = source.text[start:stop].strip("\"'")
    return inside if _CONSTRAINTS.fullmatch(inside) else ""


def _runs(source: Source) -> Iterator[_Run]:
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


def add_literal(maker: TextBuilder, text: str, start: int, stop: int) -> None:
    """Add what a literal between two places of a source says."""
    match = _PREFIX.match(text, start)
    assert match  # tokenize saw a string
    first, last = match.end(), stop - len(match[2])
    if "r" in match[1].lower():
        maker.keep(first, last)
    else:
        unescaped(maker, text, first, last, PYTHON_ESCAPES)
