"""Blocks through which every way from a block to the end of a function leads."""

from __future__ import annotations

from collections.abc import Sequence


def next_on_every_way(follows: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """For each block, the first other one through which every way from it to the end leads; -1: the end, or none.

    Args:
        follows: the blocks that may follow each; -1 for the end.  A block that nothing follows, such as a trap, is not looked at.
        order: the blocks that can be reached, each before its followers except where a loop closes.
    """
    everything = (1 << len(follows)) - 1
    on_all = [everything] * len(follows)  # masks of the blocks on every way
    changed = True
    while changed:
        changed = False
        for number in reversed(order):
            mask = everything
            for after in follows[number]:
                mask &= on_all[after] if after >= 0 else 0
            mask |= 1 << number
            changed = changed or mask != on_all[number]
            on_all[number] = mask
    found = [-1] * len(follows)
    for number in order:
        size = on_all[number].bit_count()
        rest = on_all[number] & ~(1 << number)
        while rest:
            other = rest.bit_length() - 1
            if on_all[other].bit_count() == size - 1:
                found[number] = other
                break
            rest ^= 1 << other
    return found
