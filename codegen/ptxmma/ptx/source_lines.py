"""The places in a source of which a compiler made the lines of a module, as ``.loc`` and ``.file`` tell them."""

from __future__ import annotations

import bisect
import re
from typing import NamedTuple

_FILE = re.compile(rb'^[ \t]*\.file[ \t]+(\d+)[ \t]+"((?:[^"\\\n]|\\.)*)"', re.M)
#: A place; the place of the call, if the function is inlined there; or the end of a function.
_LINE = re.compile(
    rb"^[ \t]*\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)(?:[^\n]*\binlined_at[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+))?[^\n]*$|^\}", re.M
)


class SourcePlace(NamedTuple):
    """A place in a source.

    Attributes:
        file: its name as the compiler has it.
        line, column: both from 1.
    """

    file: str
    line: int
    column: int


class SourceLines:
    """The source of each line of a module.

    Args:
        module: the text of PTX, as ``nvcc -lineinfo`` makes it.
    """

    def __init__(self, module: bytes) -> None:
        self._files = {int(number): name.decode(errors="replace") for number, name in _FILE.findall(module)}
        self._starts: list[int] = []
        self._chains: list[tuple[tuple[int, int, int], ...]] = []
        chains: dict[tuple[int, int, int], tuple[tuple[int, int, int], ...]] = {}
        line = 1
        offset = 0
        for match in _LINE.finditer(module):
            line += module.count(b"\n", offset, match.start())
            offset = match.start()
            if match[1] is None:
                chain: tuple[tuple[int, int, int], ...] = ()
            else:
                numbers = [int(each) for each in match.groups() if each is not None]
                place = (numbers[0], numbers[1], numbers[2])
                # The place of a call precedes what is inlined there, with the call of its own function if that is inlined, too.
                call = (numbers[3], numbers[4], numbers[5]) if len(numbers) > 3 else None
                chain = chains[place] = (place, *(chains.get(call, (call,)) if call else ()))
            self._starts.append(line)
            self._chains.append(chain)

    def of(self, line: int) -> tuple[SourcePlace, ...]:
        """The places of a line, counted from 1: in the innermost function, then the call of each function that is inlined there."""
        index = bisect.bisect_right(self._starts, line) - 1
        chain = self._chains[index] if index >= 0 else ()
        return tuple(SourcePlace(self._files.get(file, "?"), number, column) for file, number, column in chain)
