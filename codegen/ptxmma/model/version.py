"""Versions of the PTX ISA and of CUDA."""

from __future__ import annotations

import functools


class Version(str):
    """A version such as ``8.7``: a string that is ordered by its numbers, so that ``8.10`` comes after ``8.9``.

    It may be compared with plain strings.  The empty version comes before all others.

    Raises:
        ValueError: one of the strings that are compared is not a version.
    """

    __slots__ = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its parts, e.g. ``(8, 7)``."""
        return _numbers(self)

    def __lt__(self, other: str) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: str) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: str) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: str) -> bool:
        return _numbers(self) >= _numbers(other)


@functools.cache
def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("."))) if text else ()
