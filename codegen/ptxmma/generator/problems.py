"""What is wrong with a spec, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple


class Position(NamedTuple):
    """A place in a file; line and column count from 1.  ``added``: the file belongs to an overlay."""

    file: str
    line: int = 1
    column: int = 1
    added: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One thing that is wrong: where, and in words what is wrong and what is allowed."""

    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.message}"


def clash(message: str, here: Position, other: Position) -> Problem:
    """Two places that do not go together: the problem is ``here``, or at the ``other`` one where that alone belongs to an overlay."""
    if other.added and not here.added:
        here, other = other, here
    return Problem(here, f"{message}; see also {other}")


def of_use(message: str, entry: Position, use: Position) -> Problem:
    """What is wrong with an entry as something uses it: at the entry, or at the use where that alone belongs to an overlay."""
    return clash(message, entry, use) if use.added and not entry.added else Problem(entry, message)


#: Problems of one file that a message shows: the first few tell what is wrong with the rest.
_MOST_SHOWN = 100


class SpecError(Exception):
    """A spec that cannot be used; ``problems`` holds every problem that the failing stage found, in order of place.

    Its text has a line for each, and for a file with very many says how many more there are.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(_lines(self.problems)))


def _lines(problems: Iterable[Problem]) -> Iterator[str]:
    for file, group in groupby(problems, lambda problem: problem.position.file):
        listed = list(group)
        yield from map(str, listed[:_MOST_SHOWN])
        if len(listed) > _MOST_SHOWN:
            yield f"{file}: and {len(listed) - _MOST_SHOWN} more problems"
