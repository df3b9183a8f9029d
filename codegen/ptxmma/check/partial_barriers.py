"""Barriers of a thread block for a number of its threads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.ptx import thread_values
from ptxmma.ptx.outline import starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The barrier that an instruction names, and the number of threads that it waits for.
_PARTIAL = re.compile(rb"(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+([\w$%]+)\s*,\s*([\w$%]+)")


def is_partial(text: bytes, place: int) -> bool:
    """Return whether an instruction is a barrier for a number of threads."""
    return _PARTIAL.match(text, place) is not None


def apart(
    text: bytes, reached: Iterable[tuple[int, bytes, int]], together: Iterable[tuple[int, bytes, int]], words: Iterable[str]
) -> Iterator[int]:
    """The places of barriers that may not wait for the threads which execute some instructions.

    None of the threads that come to the barrier has executed one, or met one that has; or all threads of the block come to a barrier
    that waits for fewer.  Where a register names a barrier, it may be any.

    Args:
        text: the kernel's text.
        reached: the instructions that it may execute: the place, the opcode, and a mask of the threads that may come to it.
        together: the same instructions, with threads that all come to them in some launch.
        words: the first words of the instructions.
    """
    named = {place: match for place, _, _ in reached if (match := _PARTIAL.match(text, place)) is not None}
    coming = {match[1]: 0 for match in named.values()}
    if not named or any(name.startswith(b"%") for name in coming):
        return
    met, exist = 0, 1 << (thread_values.threads_of(text) - 1) if b".reqntid" in text[: text.find(b"{")] else 1
    for place, opcode, threads in reached:
        if place in named:
            coming[named[place][1]] |= threads
        met |= threads if any(starts(opcode, word.encode()) for word in words) else 0
        exist = max(exist, threads & -threads)  # the kernel is for blocks that have such a thread
    for _ in coming:  # in each round, one barrier more may have met them
        for threads in coming.values():
            met |= threads if threads & met else 0
    for place, _, threads in together:
        if place in named:
            _, name, number = named[place].group(0, 1, 2)
            waits_for_fewer = number.isdigit() and (threads & (2 * exist - 1)).bit_count() > int(number)
            if waits_for_fewer or not coming[name] & met:
                yield place
