"""The text of a module in pieces, without comments and strings, and the place of each piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Characters of a line that are shown on each side of a place.
MOST_AROUND = 120

_NOT_BRACES = bytes(sorted(set(range(256)) - set(b"{}")))
_CONTINUATION = bytes(range(0x80, 0xC0))
#: Blanks for everything but newlines.
_BLANKS = bytes(byte if byte == 0x0A else 0x20 for byte in range(256))
#: The marks that begin comments and strings, with the marks that end them.
_ENDS = {b"//": b"\n", b"/*": b"*/", b'"': b'"'}
#: A piece ends at a blank or a semicolon if there is one among so many of its last bytes: no word is cut in two.
_WORD = 256
#: Comments that nvcc leaves in every kernel, with the blanks that they become.  The blank before each shows that no other one goes on.
_FREQUENT = [
    (mark, mark[:1] + b" " * (len(mark) - 2) + b"\n") for mark in (b"\t// begin inline asm\n", b"\t// end inline asm\n", b"\n//\n")
]


class Piece(NamedTuple):
    """Some bytes of a module.

    Attributes:
        raw: the bytes as they were read.
        clean: the same without comments and strings, which are blanks; ``raw`` itself where it has none.
        line, column: the place of the first byte, from 1; columns in characters.
    """

    raw: bytes
    clean: bytes
    line: int
    column: int


def after(raw: bytes, line: int, column: int) -> tuple[int, int]:
    """Line and column after a text that begins at a line and column."""
    newline = raw.rfind(b"\n")
    if newline < 0:
        return line, column + characters(raw)
    return line + raw.count(b"\n"), 1 + characters(raw[newline + 1 :])


def characters(data: bytes) -> int:
    """Characters in UTF-8; every byte that cannot continue one counts."""
    return len(data) if data.isascii() else len(data.translate(None, _CONTINUATION))


def cleaned(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Chunks of any size, each with its text without comments and strings, so that no word is cut in two, unless it is a very long one."""
    cleaner = Cleaner()
    raw = clean = b""
    for chunk in chunks:
        fresh = cleaner.clean(chunk)
        same = clean is raw and fresh is chunk
        raw += chunk
        clean = raw if same else clean + fresh  # shorter than raw by what is undecided
        del chunk, fresh
        cut = _cut(clean)
        if cut:
            head, raw = raw[:cut], raw[cut:]
            code, clean = (head, raw) if same else (clean[:cut], clean[cut:])
            yield head, code
            del head, code
    clean += cleaner.rest()
    if clean:
        yield raw, clean


def _cut(clean: bytes) -> int:
    tail = max(0, len(clean) - _WORD)
    for place in range(len(clean) - 1, tail - 1, -1):
        if clean[place] in b" \t\r\n;":
            return place + 1
    return tail


class Cleaner:
    """Blanks out comments and strings, chunk by chunk."""

    def __init__(self) -> None:
        self._end = b""  # what ends the comment or string in which the last chunk ended
        self._kept = b""  # a last byte that is undecided: "/" or, in a comment, "*"

    def clean(self, chunk: bytes) -> bytes:
        """The chunk with what was kept of the one before, and without what must wait for the next one."""
        text = self._kept + chunk
        self._kept = b""
        for mark, blank in (*_FREQUENT, _FREQUENT[-1]):  # twice the one that overlaps with the next of its kind
            text = text.replace(mark, blank)
        done: list[bytes] = []
        place = 0
        if self._end:
            place = self._skip(text, 0, done)
        slash, quote = text.find(b"/", place), text.find(b'"', place)  # searching for single bytes is fastest
        while slash >= 0 or quote >= 0:
            start = slash if quote < 0 or 0 <= slash < quote else quote
            begin = b'"' if start == quote else text[slash : slash + 2]
            if begin not in _ENDS:
                slash = text.find(b"/", slash + 1)
                continue
            done.append(text[place:start])
            stop = text.find(b"\n", start) if begin == b"//" else -1
            if stop >= 0:
                done.append(b" " * (stop - start))
                place = stop
            else:
                self._end = _ENDS[begin]
                place = self._skip(text, start, done, len(begin))
            if 0 <= slash < place:
                slash = text.find(b"/", place)
            if 0 <= quote < place:
                quote = text.find(b'"', place)
        if place < len(text) and text.endswith(b"/"):
            text, self._kept = text[:-1], b"/"
        if not done:
            return text
        done.append(text[place:])
        return b"".join(done)

    def rest(self) -> bytes:
        """The bytes kept of the last chunk."""
        kept, self._kept = self._kept, b""
        return kept.translate(_BLANKS) if self._end else kept

    def _skip(self, text: bytes, start: int, done: list[bytes], opening: int = 0) -> int:
        """Blank out a comment or string from ``start`` on; returns where code goes on."""
        end = text.find(self._end, start + opening)
        if end < 0:
            stop = len(text)
            if self._end == b"*/" and stop > start + opening and text.endswith(b"*"):
                stop, self._kept = stop - 1, b"*"
        else:
            stop = end if self._end == b"\n" else end + len(self._end)
            self._end = b""
        done.append(text[start:stop].translate(_BLANKS))
        return stop + len(self._kept)


def divided(piece: Piece) -> tuple[Piece, Piece]:
    """A piece up to its last semicolon, and the rest."""
    cut = piece.clean.rfind(b";") + 1
    head, rest = piece.raw[:cut], piece.raw[cut:]
    same = piece.clean is piece.raw
    line, column = after(head, piece.line, piece.column)
    return (
        Piece(head, head if same else piece.clean[:cut], piece.line, piece.column),
        Piece(rest, rest if same else piece.clean[cut:], line, column),
    )


def excerpt(line: str, index: int) -> tuple[str, int]:
    """A line cut to some hundred characters around its character ``index``, and the index of that character in it."""
    start = max(0, index - MOST_AROUND)
    return line[start : index + MOST_AROUND], index - start


def braces(clean: bytes) -> tuple[int, int]:
    """The number of blocks that a text closes and did not open, and the number that it leaves open; whole blocks in it do not count."""
    left = clean.translate(None, _NOT_BRACES)
    for _ in range(4):  # lists and a few levels of blocks
        if b"{}" in left:
            left = left.replace(b"{}", b"")
    if b"{}" not in left:
        return left.count(b"}"), left.count(b"{")
    closes = opens = 0
    for byte in left:
        if byte == b"{"[0]:
            opens += 1
        elif opens:
            opens -= 1
        else:
            closes += 1
    return closes, opens
