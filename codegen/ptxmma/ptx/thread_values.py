"""Numbers that registers have in the threads of a block, where a function computes them from ``%tid.x`` and constants."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from ptxmma.ptx import literals

#: Threads of the largest block.
_MOST_THREADS = 1024
WARP = 32
#: The special register that numbers the threads of a block.
INDEX = b"%tid.x"
#: The most threads that a kernel says it has in the first dimension, or in all.
_LIMIT = re.compile(rb"\.(?:req|max)ntid\s+([\d\s,]+)")
_OPERATION = re.compile(
    rb"(?P<what>mov|cvt|shl|shr|and|or|xor|not|neg|min|max|add|sub|mul\.(?:lo|hi|wide)|mad\.lo|div|rem|selp|setp\.\w\w|shfl\.sync\.idx)"
    rb"(?:\.(?:[bu](?P<to>16|32|64)|(?P<signed>s)(?P<width>16|32|64)|pred))(?:\.[us](?P<of>16|32|64))?"
)
_MASKS = {b"16": (1 << 16) - 1, b"32": (1 << 32) - 1, b"64": (1 << 64) - 1}
#: Results of instructions for the numbers of one thread.
_RESULTS: Mapping[bytes, Callable[..., int]] = {
    b"mov": operator.pos,
    b"cvt": operator.pos,
    b"shl": lambda one, places: one << min(places % (1 << 32), 64),
    b"shr": lambda one, places: one >> min(places % (1 << 32), 64),
    b"and": operator.and_,
    b"or": operator.or_,
    b"xor": operator.xor,
    b"not": operator.invert,
    b"neg": operator.neg,
    b"add": operator.add,
    b"sub": operator.sub,
    b"min": min,
    b"max": max,
    b"mul.lo": operator.mul,
    b"mul.hi": operator.mul,
    b"mul.wide": operator.mul,
    b"mad.lo": lambda one, other, added: one * other + added,
    b"div": operator.floordiv,
    b"rem": operator.mod,
    b"selp": lambda one, other, which: one if which else other,
    **{b"setp." + name: getattr(operator, name.decode()) for name in (b"eq", b"ne", b"lt", b"le", b"gt", b"ge")},
    **{b"setp.lo": operator.lt, b"setp.ls": operator.le, b"setp.hi": operator.gt, b"setp.hs": operator.ge},
}


def warps_of(threads: int) -> set[int]:
    """The numbers of the warps of which a mask has threads."""
    return {thread // WARP for thread in range(threads.bit_length()) if threads >> thread & 1}


def is_limited(text: bytes) -> bool:
    """Return whether a kernel says how many threads its blocks have."""
    return _LIMIT.search(text, 0, text.find(b"{")) is not None


def threads_of(text: bytes) -> int:
    """The number of threads that a block of a kernel may have in the first dimension."""
    limit = _LIMIT.search(text, 0, text.find(b"{"))
    if limit is None:
        return _MOST_THREADS
    sizes = [int(size) for size in limit[1].split(b",") if size.strip()]
    most = 1
    for size in sizes if limit[0].startswith(b".max") else sizes[:1]:
        most *= size
    return max(1, min(most, _MOST_THREADS))  # none is a mistake, which assemblers report


def result(opcode: bytes, operands: Sequence[Sequence[int] | None]) -> list[int] | None:
    """The numbers that an instruction computes in each thread; None where it is not known.

    A number that is the same in all threads stands once.

    Args:
        opcode: the opcode.
        operands: the numbers of each operand that it reads; None for an operand that is not known.
    """
    match = _OPERATION.fullmatch(opcode)
    if match is None or not operands:
        return None
    numbers = [each for each in operands if each is not None]
    if match["what"].startswith(b"shfl"):
        return _shuffled(operands)
    if len(numbers) < len(operands):
        return None
    limit = _MASKS.get(match["to"] or match["width"] or b"", 1)
    read = _MASKS.get(match["of"], limit)
    numbers = [each if min(each) >= 0 and max(each) <= read else [number & read for number in each] for each in numbers]
    if b".s" in opcode:
        if match["what"] in (b"cvt", b"div", b"rem") and any(number > read >> 1 for each in numbers for number in each):
            return None  # a negative number, of which Python's quotient is another
        numbers = [[number - limit - 1 if number > limit >> 1 else number for number in each] for each in numbers]
    make, shift = _RESULTS.get(match["what"]), 0
    if make is None:
        return None
    if match["what"].startswith(b"setp"):
        limit = 1
    elif match["what"] == b"mul.wide":
        limit += limit << limit.bit_length()
    elif match["what"] == b"mul.hi":
        shift = limit.bit_length()
    alike = all(len(each) == 1 for each in numbers)
    spread = (each if alike or len(each) > 1 else itertools.repeat(each[0]) for each in numbers)
    try:
        return [number >> shift & limit for number in map(make, *spread)]
    except (ZeroDivisionError, TypeError):
        return None


def constant(word: bytes) -> list[int] | None:
    """A constant, which is the same in all threads; None for anything else."""
    number = literals.integer(word)
    return None if number is None else [number]


def _shuffled(operands: Sequence[Sequence[int] | None]) -> list[int] | None:
    """The number that each thread receives if all lanes of its warp read the same lane."""
    values, lane, clamp = operands[:3] if len(operands) > 3 else (None, None, None)
    if values is None or lane is None or clamp is None or {*clamp} != {WARP - 1} or len({*lane}) != 1:
        return None
    if len(values) == 1:
        return [*values]
    sources = [number - number % WARP + lane[0] % WARP for number in range(len(values))]
    return [values[source] if source < len(values) else 0 for source in sources]
