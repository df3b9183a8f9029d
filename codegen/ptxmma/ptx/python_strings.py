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
_FORMATTED_ENDS = frozenset(getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name))
_STARTS = frozenset({tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


class NotPythonError(ValueError):
    """The source cannot be read to its end."""


class PythonString(NamedTuple):
    """A string of a Python source.

    Attributes:
        literals: the start and the end of each of its literals; adjacent ones form one string.
        constraints: the list of constraints that follows in the same call, ``"=f,r"``; ``""`` without one.
        known: whether the string is used unchanged: not formatted, and not completed by an operator or a method.
    """

    literals: list[tuple[int, int]]
    constraints: str
    known: bool


class _Run(NamedTuple):
    """Adjacent literals, which form one string."""

    literals: list[tuple[int, int]]
    plain: bool
    before: tokenize.TokenInfo | None
    after: tokenize.TokenInfo | None

    @property
    def documents(self) -> bool:
        """True if the string is a statement of its own: documentation."""
        starts = self.before is None or self.before.type in _STARTS
        return starts and self.after is not None and self.after.type in (tokenize.NEWLINE, tokenize.ENDMARKER)

    @property
    def known(self) -> bool:
        """True if the string is used unchanged."""
        beside = (each.string for each in (self.before, self.after) if each is not None and each.type == tokenize.OP)
        return self.plain and not any(text in ("+", "%", ".", "+=", "%=") for text in beside)


def strings(source: Source) -> Iterator[PythonString]:
    """The strings of a Python source, without documentation.

    Raises:
        NotPythonError: Python's tokenizer gives up; the strings before that place were yielded.
    """
    waiting: PythonString | None = None
    for run in _runs(source):
        if waiting is not None:
            yield waiting._replace(constraints=_of_constraints(source, run) if run.plain else "")
        waiting = None if run.documents else PythonString(run.literals, "", run.known)
    if waiting is not None:
        yield waiting


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
    plain = True
    opened: list[tuple[int, int]] = []  # the starts of the formatted strings that go on here
    for token in _tokens(source.text):
        if token.type in _FORMATTED:
            opened.append(token.start)
        elif token.type in _FORMATTED_ENDS:
            start = opened.pop()
            if not opened:
                plain = False
                literals.append((source.place(*start), source.place(*token.end)))
        elif opened:
            continue
        elif token.type == tokenize.STRING:
            plain = plain and _FORMATS.isdisjoint(token.string.partition(token.string[-1])[0].lower())
            literals.append((source.place(*token.start), source.place(*token.end)))
        elif token.type not in _LAYOUT:
            if literals:
                yield _Run(literals, plain, before, token)
            literals, plain, before = [], True, token


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of Python, as far as it is Python."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except tokenize.TokenError as error:
        raise NotPythonError(f"line {error.args[1][0]} is not Python: {error.args[0]}") from None
    except SyntaxError as error:
        raise NotPythonError(f"line {error.lineno} is not Python: {error.msg}") from None


def add_literal(maker: TextBuilder, text: str, start: int, stop: int) -> None:
    """Add what a literal between two places of a source says."""
    match = _PREFIX.match(text, start)
    assert match  # tokenize saw a string
    first, last = match.end(), stop - len(match[2])
    if "r" in match[1].lower():
        maker.keep(first, last)
    else:
        unescaped(maker, text, first, last, PYTHON_ESCAPES)
