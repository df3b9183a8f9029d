"""Graphs of a function's blocks: their order and their loops, the blocks where all ways meet, and facts that spread along the ways."""

from __future__ import annotations

import functools
import heapq
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def reachable(starts: Iterable[_Node], following: Callable[[_Node], Iterable[_Node]]) -> dict[_Node, None]:
    """Some nodes, and all to which ways lead from them, in the order in which they are found."""
    found = dict.fromkeys(starts)
    waiting = [*found]
    for node in waiting:
        for after in following(node):
            if after not in found:
                found[after] = None
                waiting.append(after)
    return found


def spread(
    facts: dict[_Node, int],
    ways: Callable[[_Node], Iterable[tuple[_Node, int]]],
    begins: Iterable[_Node] | None = None,
    rank: Callable[[_Node], Any] = lambda node: node,
) -> dict[_Node, int]:
    """Spread facts over a graph until nothing changes, and return the facts of all nodes that any come to.

    This is a data-flow problem whose facts are the bits of masks.  Where ways meet, a fact holds that holds on any of them.

    Args:
        facts: the facts with which nodes begin; the others are added.
        ways: the ways out of a node, which it is asked for once: the next node, and a mask of the facts that go on to it.
        begins: the nodes from which they spread; all that have any where it is None.
        rank: the key by which nodes are visited, the lowest first: so a node seldom comes before another one from which a way leads to it.
    """
    fresh = {*(facts if begins is None else begins)}
    waiting = [(rank(node), node) for node in fresh]
    heapq.heapify(waiting)
    leaving: dict[_Node, Iterable[tuple[_Node, int]]] = {}
    while waiting:
        _, node = heapq.heappop(waiting)
        fresh.discard(node)
        going = facts[node]
        if node not in leaving:
            leaving[node] = tuple(ways(node))
        for after, mask in leaving[node]:
            known = facts.get(after, 0)
            if going & mask & ~known:
                facts[after] = known | going & mask
                if after not in fresh:
                    fresh.add(after)
                    heapq.heappush(waiting, (rank(after), after))
    return facts


class Graph:
    """The blocks that can be reached, and the ways to them.

    Args:
        follows: the blocks that may follow each; -1 for the end.  Nothing follows a trap.

    Attributes:
        order: the blocks, each before the blocks that follow it, except where a loop closes.
        begins: the nodes from which they spread; all that have any where it is None.
        rank: the place of each block in this order.
    """

    #: Of more loops in a function it is not looked which blocks went through them.
    _MOST_LOOPS = 1000

    def __init__(self, follows: Sequence[Sequence[int]]) -> None:
        self._follows = follows
        self._beyond: dict[int, frozenset[int]] = {}
        self.order = _reverse_postorder(follows)
        self.rank = {number: place for place, number in enumerate(self.order)}

    @functools.cached_property
    def leading(self) -> list[list[int]]:
        """The blocks that lead to each, of those that can be reached."""
        leading: list[list[int]] = [[] for _ in self._follows]
        for number in self.order:
            for after in self._follows[number]:
                if after >= 0:
                    leading[after].append(number)
        return leading

    @functools.cached_property
    def before(self) -> dict[int, tuple[list[int], list[int]]]:
        """The predecessors of each block: first the blocks from which it is entered, then those from which a loop is repeated.

        Branches round a loop that others went through are left out.
        """
        rank = self.rank
        entering = {number: [other for other in self.leading[number] if rank[other] < rank[number]] for number in self.order}
        repeating = {number: [other for other in self.leading[number] if rank[other] >= rank[number]] for number in self.order}
        heads = {number for number in self.order if repeating[number]}
        if len(heads) > self._MOST_LOOPS:
            heads.clear()
        bits = {number: 1 << place for place, number in enumerate(sorted(heads))}
        through: dict[int, int] = {}  # a mask of the loops that were entered on the way to a block
        for number in self.order:
            if len(entering[number]) > 1:
                most = _largest({through[other] for other in entering[number]})
                entering[number] = [other for other in entering[number] if through[other] in most]
            common = functools.reduce(operator.and_, [through[other] for other in entering[number]]) if entering[number] else 0
            through[number] = common | bits.get(number, 0)
        return {number: (entering[number], repeating[number]) for number in self.order}

    @functools.cached_property
    def closing(self) -> frozenset[int]:
        """The blocks from which a way goes back: it closes a loop."""
        rank, end = self.rank, len(self.order)
        return frozenset(number for number in self.order if any(rank.get(after, end) <= rank[number] for after in self._follows[number]))

    @functools.cached_property
    def loops(self) -> list[frozenset[int]]:
        """The blocks of each loop, the smallest loop first: a block to which a way goes back, and all that lead there without it."""
        return sorted(filter(None, map(self._loop, self.order)), key=len)

    def _loop(self, head: int) -> frozenset[int]:
        back = [number for number in self.leading[head] if self.rank[head] <= self.rank[number]]
        return frozenset(reachable([head, *back], lambda number: self.leading[number] if number != head else ()) if back else ())

    @functools.cached_property
    def connected(self) -> dict[int, frozenset[int]]:
        """For each block, itself and all blocks on ways from it back to it: the strongly connected components (Kosaraju)."""
        found: dict[int, frozenset[int]] = {}
        for number in self.order:
            if number not in found:
                component = frozenset(reachable([number], lambda each: (other for other in self.leading[each] if other not in found)))
                found.update(dict.fromkeys(component, component))
        return found

    def beyond(self, number: int) -> frozenset[int]:
        """The blocks to which ways lead from one."""
        if number not in self._beyond:
            self._beyond[number] = frozenset(reachable(self._follows[number], lambda after: self._follows[after] if after >= 0 else ()))
        return self._beyond[number]

    def past(self, number: int, blocks: Collection[int], ways: Callable[[int], Iterable[int]] | None = None) -> set[int]:
        """The blocks that follow one past a part which always comes to one of some blocks: a loop of them without a round.

        Args:
            number: the block.
            blocks: the blocks of which the part has one on every way.
            ways: the blocks that follow each, if not all count.
        """
        follows = ways or self._follows.__getitem__

        def from_(begin: int, stops: Collection[int]) -> Collection[int]:
            ends = {-1, number, *stops}
            return reachable([begin], lambda each: follows(each) if each not in ends else ())

        afters = {*follows(number)} - {-1}
        pairs = ((after, other) for after in afters for other in afters - {after} if not self.beyond(other).isdisjoint(blocks))
        return {after for after, other in pairs if after in from_(other, ()) and after not in from_(other, blocks)}

    @functools.cached_property
    def meets(self) -> list[int]:
        """For each block, the first other one through which every way from it to the end leads; -1: the end, or none."""
        everything = (1 << len(self._follows)) - 1
        ends = {number: everything & ~(1 << number) for number in self.order if -1 in self._follows[number]}
        # Masks of the blocks that some way to the end avoids.
        avoided = spread(
            ends,
            lambda number: ((other, ~(1 << other)) for other in self.leading[number]),
            rank=lambda number: -self.rank[number],
        )
        found = [-1] * len(self._follows)
        on_all = {number: everything & ~avoided.get(number, 0) for number in self.order}
        for number, mask in on_all.items():
            rest = mask & ~(1 << number)
            while rest:
                other = rest.bit_length() - 1
                if on_all.get(other, everything).bit_count() == mask.bit_count() - 1:
                    found[number] = other
                    break
                rest ^= 1 << other
        return found


def _largest(masks: set[int]) -> set[int]:
    """The masks that are part of no other one."""
    largest: list[int] = []
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        if all(mask & ~other for other in largest):
            largest.append(mask)
    return {*largest}


def _reverse_postorder(follows: Sequence[Sequence[int]]) -> list[int]:
    """The blocks that can be reached, each before those that follow it except where a loop closes."""
    seen, order = {-1, 0}, []
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
