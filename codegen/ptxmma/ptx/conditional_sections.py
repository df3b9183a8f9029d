"""The conditional sections of C: code that does not exist, and the architectures for which code is compiled."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_COMMENT = re.compile(r"//.*|/\*.*?\*/")
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
            self._open.append(_Section(directive, _COMMENT.sub("", condition).partition("/*")[0].strip()))
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
