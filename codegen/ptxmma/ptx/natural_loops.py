"""Loops of a function: a block to which a branch goes back, and all blocks from which that branch can be reached without it."""

from __future__ import annotations

from collections.abc import Sequence


def natural_loops(follows: Sequence[Sequence[int]], order: Sequence[int]) -> list[frozenset[int]]:
    """The blocks of each loop, the smallest loop first.

    Args:
        follows: the blocks that may follow each; -1 for the end.
        order: the blocks that can be reached, each before its followers except where a loop closes.
    """
    rank = {number: place for place, number in enumerate(order)}
    before: dict[int, list[int]] = {}
    for number in order:
        for after in follows[number]:
            before.setdefault(after, []).append(number)
    loops: list[frozenset[int]] = []
    for head in order:
        body = {head}
        waiting = [number for number in before.get(head, ()) if rank[head] <= rank[number]]
        for number in waiting:
            if number not in body:
                body.add(number)
                waiting += before.get(number, ())
        if waiting:
            loops.append(frozenset(body))
    return sorted(loops, key=len)
