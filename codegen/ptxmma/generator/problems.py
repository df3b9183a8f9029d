"""The problems of a spec, and their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple


class Position(NamedTuple):
    """A place in a file; line and column count from 1.  ``added`` if the file belongs to an overlay."""

    file: str
    line: int = 1
    column: int = 1
    added: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One error in a spec: its position, what is wrong and what is allowed."""

    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.message}"


def clash(message: str, here: Position, other: Position) -> Problem:
    """A conflict of two places, reported ``here``, or at the ``other`` place if only that one belongs to an overlay."""
    if other.added and not here.added:
        here, other = other, here
    return Problem(here, f"{message}; see also {other}")


def of_use(message: str, entry: Position, use: Position) -> Problem:
    """A problem of an entry in one use, reported at the entry, or at the use if only the use belongs to an overlay."""
    return clash(message, entry, use) if use.added and not entry.added else Problem(entry, message)


#: Problems of one file that a message shows; later ones mostly repeat the first.
_MOST_SHOWN = 100


class SpecError(Exception):
    """A spec is invalid; ``problems`` has every problem that the failing stage reported, in the order of their places.

    Its text has a line for each problem.  For a file with very many it ends with the number of the others.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(_lines(self.problems)))

    def __reduce__(self) -> tuple[type[SpecError], tuple[list[Problem]]]:
        """Make a copy in another process from the problems, not from the text."""
        return SpecError, (self.problems,)


def _lines(problems: Iterable[Problem]) -> Iterator[str]:
    for file, group in groupby(problems, lambda problem: problem.position.file):
        listed = list(group)
        yield from map(str, listed[:_MOST_SHOWN])
        if len(listed) > _MOST_SHOWN:
            yield f"{file}: and {len(listed) - _MOST_SHOWN} more problems"
