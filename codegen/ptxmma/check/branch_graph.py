"""The blocks of a function that can be reached, and how."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence


class Graph:
    """The blocks that can be reached, and the ways to them.

    Attributes:
        order: the blocks, each before the blocks that follow it, except where a loop closes.
        before: the predecessors of each block: first the blocks from which it is entered, without branches round a loop that
            others went through, then the blocks from which a loop is repeated.
    """

    #: Of more loops in a function it is not looked which blocks went through them.
    _MOST_LOOPS = 1000

    def __init__(self, follows: Sequence[Sequence[int]]) -> None:
        self.order = _reverse_postorder(follows)
        rank = {number: place for place, number in enumerate(self.order)}
        entering: dict[int, list[int]] = {number: [] for number in self.order}
        repeating: dict[int, list[int]] = {number: [] for number in self.order}
        for number in self.order:
            for after in follows[number]:
                (entering if rank[number] < rank[after] else repeating)[after].append(number)
        heads = {number for number in self.order if repeating[number]}
        if len(heads) > self._MOST_LOOPS:
            heads.clear()
        bits = {number: 1 << place for place, number in enumerate(sorted(heads))}
        through: dict[int, int] = {}  # a mask of the loops that were entered on the way to a block
        self.before: dict[int, tuple[list[int], list[int]]] = {}
        for number in self.order:
            if len(entering[number]) > 1:
                most = _largest({through[other] for other in entering[number]})
                entering[number] = [other for other in entering[number] if through[other] in most]
            common = functools.reduce(operator.and_, [through[other] for other in entering[number]]) if entering[number] else 0
            through[number] = common | bits.get(number, 0)
            self.before[number] = entering[number], repeating[number]


def _largest(masks: set[int]) -> set[int]:
    """The masks that are part of no other one."""
    largest: list[int] = []
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        if all(mask & ~other for other in largest):
            largest.append(mask)
    return {*largest}


def _reverse_postorder(follows: Sequence[Sequence[int]]) -> list[int]:
    """The blocks that can be reached, each before those that follow it except where a loop closes."""
    seen, order = {0}, []
    path: list[tuple[int, Iterator[int]]] = [(0, iter(follows[0]))]
    while path:
        number, rest = path[-1]
        for after in rest:
            if after not in seen:
                seen.add(after)
                path.append((after, iter(follows[after])))
                break
        else:
            order.append(number)
            path.pop()
    return order[::-1]
