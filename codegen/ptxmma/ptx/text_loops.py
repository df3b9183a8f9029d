"""Loops of a function as stretches of its text, as compilers write them: from a label to the last branch that goes back to it."""

from __future__ import annotations

import bisect
import collections
import functools
import re
from collections.abc import Iterator, Sequence

from ptxmma.ptx.sums import Rounds

#: The end of a label, and its name: a search for a colon is fast.
_COLON, _NAME = re.compile(rb":(?<=[\w$%]:)(?!:)"), re.compile(rb"(?<=[\s;{}])[\w$%]+\Z")
_LONGEST = 256
_COUNTS = re.compile(rb"\b(?:add|sub|bra)\b")
_BRANCH = re.compile(rb"bra(?<!\wbra)(?:\.uni)?\s+([\w$%]+)\s*;")  # a search for what begins with a word is fast


def labels_of(text: bytes) -> Iterator[tuple[bytes, int]]:
    """The labels of a text with their places, in order."""
    for colon in map(re.Match.start, _COLON.finditer(text)):
        if name := _NAME.search(text, max(0, colon - _LONGEST), colon):
            yield name[0], name.start()


class TextLoops:
    """The loops of a function, without loops whose labels several scopes declare: inline assembly polls in them.

    Args:
        text: the function's text.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.around = functools.lru_cache(maxsize=None)(self._around)

    @functools.cached_property
    def _parts(self) -> tuple[list[range], list[int]]:
        """The loops, each before those in it, and the places at which blocks begin."""
        labels: dict[bytes, list[int]] = {}
        for name, place in labels_of(self._text):
            labels.setdefault(name, []).append(place)
        branches = [(match.start(), labels[match[1]][0]) for match in _BRANCH.finditer(self._text) if len(labels.get(match[1], ())) == 1]
        ends = {head: at for at, head in branches if head < at}  # the last one counts
        loops = sorted((range(head, end) for head, end in ends.items()), key=lambda loop: (loop.start, -loop.stop))
        # Instructions before and after a poll are executed equally often: it counts nothing, and only itself goes back to it.
        times = collections.Counter(head for _, head in branches)
        polls = [loop for loop in loops if times[loop.start] == 1 and not _COUNTS.search(self._text, loop.start, loop.stop)]
        begins = {place for branch in branches for place in branch}
        return loops, sorted(begins.difference(*((loop.start, loop.stop) for loop in polls)))

    def _around(self, at: int) -> Sequence[range]:
        """The loops that repeat an instruction at a place, the largest first."""
        return [loop for loop in self._parts[0] if at in loop]

    def smallest(self, at: int) -> int:
        """The place of the smallest loop that repeats an instruction at a place; -1 where none does."""
        return max((loop.start for loop in self.around(at)), default=-1)

    def may_precede(self, at: int, loop: range) -> bool:
        """Return whether an instruction outside a loop may come before it: it does in the text, or a larger loop repeats both."""
        return at < loop.start or any(loop.start in other and loop != other for other in self.around(at))

    def rounds(self, loop: range, at: int) -> Rounds:
        """The number of times that an instruction at a place was executed since a loop began."""
        return Rounds(loop.start, bisect.bisect(self._parts[1], at))
