"""The tokens of C and C++, and what a search through its text must know: comments, literals, directives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmma.ptx.mapped_text import Text

#: A literal without a prefix; it ends in one way only.
PLAIN_LITERAL = r'"[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*"'
# An unclosed comment or literal extends to the end.  Escapes separate runs of other characters, so that a long literal takes no memory.
_COMMENT = r"//[^\n\\]*(?:\\.[^\n\\]*)*|/\*.*?(?:\*/|\Z)"
_BLANK = rf"{_COMMENT}|\s+|\\\r?\n"
_RAW = r'R"(?P<mark>[^ ()\\\t\v\f\n"]{0,16})\((?P<raw>.*?)(?:\)(?P=mark)"|\Z)'
_LITERAL = rf'(?:u8|[uUL])?(?:{_RAW}|"(?P<inside>{PLAIN_LITERAL[1:-1]})")'
_OTHER = r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\.?\d(?:[eEpP][+-]|'?[\w.])*|(?P<word>[A-Za-z_]\w*)"
_TOKEN = re.compile(f"(?P<blank>{_BLANK})|(?P<literal>{_LITERAL})|{_OTHER}|.", re.DOTALL)
_DIRECTIVE = r"#[ \t]*(?P<directive>if(?:n?def)?|elif|else|endif)\b(?P<condition>[^\n]*)"
# All that matters to a search for statements: comments, literals, keywords, conditions.  Each begins with a plain character, for speed.
_PREFIX = r"(?:(?<!\w.)|(?<=\bu8.)|(?<=\b[uUL].))"  # before the character that was read
_STRING = rf"R{_PREFIX}{_RAW[1:]}|{PLAIN_LITERAL}"
_CHARACTER = rf"'{_PREFIX}[^'\\\n]*(?:\\.[^'\\\n]*)*'"
_KEYWORDS = ("asm", "__asm", "__asm__")
_KEYWORD = r"(?P<word>asm(?<!\wasm)|__asm(?<!\w__asm)(?:__)?)(?!\w)"
WORDS = re.compile(f"{_COMMENT}|{_STRING}|{_CHARACTER}|{_KEYWORD}|{_DIRECTIVE}", re.DOTALL)


class Tokens:
    """The tokens of C between two places, without blanks, up to the next ``asm``: no statement goes on after it.

    Attributes:
        now: the token; None at the end.
        broken: whether another ``asm`` is the end.
    """

    def __init__(self, text: Text, start: int, end: int) -> None:
        self._chars, self._end = text.chars, end
        self.now: re.Match[str] | None = None
        self.broken = False
        self._go(start)

    def step(self) -> None:
        """Go on to the next token."""
        self.now = next((match for match in self._rest if match["blank"] is None), None)
        if self.now is not None and self.now["word"] in _KEYWORDS:
            self.now, self.broken = None, True

    def usual(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """The matches of a pattern from here on, one directly after another; then go on after them."""
        start = place = self.now.start() if self.now else self._end
        while match := pattern.match(self._chars, place, self._end):
            yield match
            place = match.end()
        if place > start:
            self._go(place)

    def _go(self, place: int) -> None:
        self._rest = _TOKEN.finditer(self._chars, place, self._end)
        self.step()

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


def after_last_line(chars: str, start: int) -> int:
    """The place after the last line that does not go on in the next one; ``start`` if there is no such line."""
    end = chars.rfind("\n", start)
    while end >= 0 and chars.endswith(("\\", "\\\r"), 0, end):
        end = chars.rfind("\n", start, end)
    return end + 1 or start


def holds_assembly(text: str) -> bool:
    """Return whether a text has an ``asm`` statement of C."""
    return "asm" in text and any(match["word"] for match in WORDS.finditer(text))
