"""Text whose characters know their places in a source, through escapes and concatenation."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.ptx.tokens import excerpt


class Source:
    """A source with its lines.

    Args:
        text: the source's text, or a part of it that begins with a line.
        line: the number of that line.
    """

    def __init__(self, text: str, line: int = 1) -> None:
        self.text = text
        self._first = line

    @functools.cached_property
    def _lines(self) -> array[int]:
        """The start of each line, computed when it is needed: most sources need none."""
        return array("q", itertools.chain([0], (match.end() for match in re.finditer("\n", self.text))))

    def position(self, place: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect.bisect_right(self._lines, place)
        return self._first - 1 + line, place - self._lines[line - 1] + 1

    def place(self, line: int, column: int) -> int:
        """The character at a line, from 1, and a column, from 0."""
        return self._lines[line - 1] + column if line <= len(self._lines) else len(self.text)

    def line(self, place: int) -> tuple[str, int]:
        """The line of a character, as a finding shows it."""
        return excerpt(self.line_at(place).rstrip("\r"), self.position(place)[1] - 1)

    def line_at(self, place: int) -> str:
        """The whole line of a character."""
        line = bisect.bisect_right(self._lines, place)
        return self.text[self._lines[line - 1] : self._lines[line] - 1 if line < len(self._lines) else len(self.text)]


class Text(NamedTuple):
    """Characters, and the place of each in the source; None where the two are the same."""

    chars: str
    places: array[int] | None

    def place(self, index: int) -> int:
        """The place of a character in the source."""
        return index if self.places is None else self.places[index]


class TextBuilder:
    """Puts a text together."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._chars: list[str] = []
        self._places = array("q")

    def keep(self, start: int, stop: int) -> None:
        """Add characters unchanged."""
        self._chars.append(self._text.chars[start:stop])
        self._places.extend(range(start, stop) if self._text.places is None else self._text.places[start:stop])

    def put(self, chars: str, index: int) -> None:
        """Add characters that replace something at a place."""
        self._chars.append(chars)
        self._places.extend([self._text.place(index)] * len(chars))

    @property
    def size(self) -> int:
        """Characters so far."""
        return len(self._places)

    def made(self) -> Text:
        """The text as built so far."""
        return Text("".join(self._chars), self._places)


class Escapes(NamedTuple):
    """A language's notation for characters in its literals."""

    pattern: re.Pattern[str]
    unknown: str  # the replacement of a backslash that begins no escape


C_ESCAPES = Escapes(re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL), "")
PYTHON_ESCAPES = Escapes(re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL), "\\")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescaped(maker: TextBuilder, chars: str, start: int, stop: int, escapes: Escapes) -> None:
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


def places_of_bytes(text: Text) -> Sequence[int]:
    """The place of each byte of a text in UTF-8."""
    places = range(len(text.chars)) if text.places is None else text.places
    if text.chars.isascii():
        return places
    return array("q", (place for char, place in zip(text.chars, places, strict=True) for _ in char.encode("utf-8", "replace")))
