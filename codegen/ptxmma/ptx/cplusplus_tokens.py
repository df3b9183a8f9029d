"""The tokens of C and C++, and what a search through its text must know: comments, literals, directives and their conditions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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


# --- conditional sections ----------------------------------------------------------------------------------------------------


_LINE_COMMENT = re.compile(r"//.*|/\*.*?\*/")
#: The parts of a condition, with any parentheses.
_DEFINED = re.compile(r"[\s(]*defined[\s(]*__CUDA_ARCH__[\s)]*")
_COMPARISON = re.compile(r"[\s(]*__CUDA_ARCH__\s*(>=|<=|==|>|<)\s*(\d+)[\s)]*")
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
#: A condition that lets a header be read once.
_ONCE = re.compile(r"\w+_(?:H|HPP|CUH|INCLUDED|GUARD)_*", re.IGNORECASE)


class Guard(NamedTuple):
    """Conditions on the architecture.

    Attributes:
        text: the innermost one as it is written, ``"__CUDA_ARCH__ >= 900"``.
        comparisons: each with what ``__CUDA_ARCH__`` is compared with.
    """

    text: str
    comparisons: tuple[tuple[str, int], ...]

    def holds(self, number: int) -> bool:
        """Return whether code is compiled for a compute capability times ten."""
        return all(_COMPARED[how](10 * number, with_) for how, with_ in self.comparisons)


class _Section(NamedTuple):
    directive: str
    condition: str

    @property
    def dead(self) -> bool:
        """True if the section does not exist."""
        return (self.directive, self.condition) in {("if", "0"), ("after", "1")}


class Conditions:
    """The conditional sections that are open."""

    def __init__(self) -> None:
        self._open: list[_Section] = []

    def follow(self, directive: str, condition: str) -> None:
        """Go past a directive."""
        if directive.startswith("if"):
            self._open.append(_Section(directive, _LINE_COMMENT.sub("", condition).partition("/*")[0].strip()))
        elif self._open:
            first = self._open.pop()
            if directive != "endif":
                self._open.append(_Section("after", first.condition if first.directive in ("if", "after") else ""))

    @property
    def alive(self) -> bool:
        """True if code is compiled here, as far as can be seen."""
        return not any(section.dead for section in self._open)

    @property
    def guard(self) -> Guard | None:
        """The conditions on the architecture here; None without one, or where other conditions may say more of it."""
        sections = [each for each in self._open if not (each.directive == "ifndef" and _ONCE.fullmatch(each.condition))]
        text = ""
        comparisons: list[tuple[str, int]] = []
        for section in sections:
            found = _comparisons(section)
            if found is None:
                return None
            text = section.condition if found else text
            comparisons += found
        return Guard(text, tuple(comparisons)) if comparisons else None


def _comparisons(section: _Section) -> Sequence[tuple[str, int]] | None:
    """The comparisons that a section is; None if it is something else."""
    if section.directive == "ifdef" and section.condition == "__CUDA_ARCH__":
        return ()
    matches = [_COMPARISON.fullmatch(part) for part in section.condition.split("&&") if not _DEFINED.fullmatch(part)]
    if section.directive != "if" or not all(matches):
        return None
    return [(match[1], int(match[2])) for match in matches if match]
