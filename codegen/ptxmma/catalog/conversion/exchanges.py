"""Elements between the registers of a warp's threads: the steps that bring each from its place to another.

A place is the bits of ``i``, the number of an element in its thread, and of ``lane``.  Where each bit of a target place is one bit of a
source place, three steps are enough: each thread arranges its elements in words, the threads exchange whole words, and each thread
arranges them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

#: The bits of a thread's number in its quad: four threads.
_QUAD_BITS = 2
#: The bits that ``shfl.sync`` moves.
SHUFFLED = 32

#: Conversions by their cost.
Kind = Literal["same", "registers", "prmt", "quad", "warp", "memory"]


#: The meaning of each kind, the cheapest first.
TEXTS: dict[Kind, str] = {
    "same": "the same registers of the same threads",
    "registers": "the same threads, other registers",
    "prmt": "the same threads, other places within registers (prmt)",
    "quad": "a shuffle within each quad",
    "warp": "a shuffle within the warp",
    "memory": "an exchange through shared memory",
}


class Bit(NamedTuple):
    """One bit of a part of a place, or of an axis: ``Bit("lane", 2)``."""

    name: str
    bit: int


class Arrange(msgspec.Struct, frozen=True, tag="arrange"):
    """New registers of each thread, from its own.

    Attributes:
        registers: for each new register its elements, lowest first, by their numbers in the registers before: the first step counts as
            ``i`` of the source does, through all its fragments, a later one through the registers of the step before.
    """

    registers: tuple[tuple[int, ...], ...]


class Shuffle(msgspec.Struct, frozen=True, tag="shuffle"):
    """One exchange of a register by all threads of a warp.

    Attributes:
        lanes: for each lane, the lane from which it takes a register: its own where ``mask`` is 0.
        sends: for each lane, the register that it sends.
        takes: for each lane, the new register that it fills.
    """

    lanes: tuple[int, ...]
    sends: tuple[int, ...]
    takes: tuple[int, ...]

    @property
    def mask(self) -> int | None:
        """The mask of ``shfl.sync.bfly``; 0 where every thread keeps what it has, None where the lanes need ``shfl.sync.idx``."""
        masks = {lane ^ other for lane, other in enumerate(self.lanes)}
        return masks.pop() if len(masks) == 1 else None


Step = Arrange | Shuffle


def expression(values: Sequence[int]) -> str:
    """Return a number for each lane as a formula: ``((lane & 1) * 2) ^ 1``; each bit of it is one bit of the lane, or constant."""
    terms = []
    bits, bit = len(values).bit_length() - 1, 0
    while bit < bits:
        moved, width = values[1 << bit] ^ values[0], 1
        while moved and bit + width < bits and values[1 << bit + width] ^ values[0] == moved << width:
            width += 1
        if moved:
            part = f"lane >> {bit}" if bit else "lane"
            part += "" if bit + width == bits else f" & {(1 << width) - 1}"
            terms.append((part, moved))
        bit += width
    if not terms:
        return str(values[0])
    alone = len(terms) == 1 and not values[0]
    texts = [part if part == "lane" or (alone and moved == 1) else f"({part})" for part, moved in terms]
    total = " + ".join(text if moved == 1 else f"{text} * {moved}" for text, (_, moved) in zip(texts, terms, strict=True))
    if not values[0]:
        return total
    return f"({total}) ^ {values[0]}" if "*" in total or "+" in total else f"{total} ^ {values[0]}"


def word_size(steps: Sequence[Step], register: int) -> int:
    """Return the number of elements of a register in a shuffle, where a register of the source has ``register``."""
    first = steps[0] if steps else None
    return len(first.registers[0]) if isinstance(first, Arrange) else register


class Registers(NamedTuple):
    """The elements of a thread: ``bits``, the bits of ``i`` that are in use, of which the lowest ``inside`` count within a register."""

    bits: tuple[int, ...]
    inside: int


def plan(origin: Mapping[Bit, Bit], source: Registers, target: Registers, *, free: bool) -> tuple[Kind, tuple[Step, ...]]:
    """Return the kind of a conversion within a warp, and its steps.

    Args:
        origin: for each bit of a target place, ``i`` or ``lane``, the bit of the source place; a bit of ``i`` without one leads to copies.
        source: the elements of a thread.
        target: the same of the target, with copies.
        free: true where the elements of the source are in no registers yet, because a conversion of types packs them.
    """
    moved = {bit for bit, old in origin.items() if "lane" in (bit.name, old.name) and bit != old}
    if not moved:
        return _within(origin, source, target, free=free)
    kept = {bit.bit: old.bit for bit, old in origin.items() if bit.name == old.name == "i"}
    chosen = _chosen(kept, source, target, free=free)
    words = [bit for bit in source.bits if bit not in chosen]
    taken = [bit for bit in target.bits if Bit("i", bit) in origin and kept.get(bit) not in chosen]
    first = Arrange(
        tuple(tuple(_spread(word, words) | _spread(place, chosen) for place in range(1 << len(chosen))) for word in range(1 << len(words)))
    )
    back = {old: new for new, old in kept.items()}
    inside = [back[bit] for bit in chosen]
    last = Arrange(
        tuple(
            tuple(
                _gathered(number, taken) << len(inside) | _gathered(number, inside)
                for number in range(register << target.inside, register + 1 << target.inside)
            )
            for register in range(1 << len(target.bits) - target.inside)
        )
    )
    steps: list[Step] = [] if not free and _unchanged(first, len(chosen), source.inside) else [first]
    steps += _rounds(origin, words, taken)
    steps += [] if _unchanged(last, len(chosen), target.inside) else [last]
    lanes = {each.bit for bit in moved for each in (bit, origin[bit]) if each.name == "lane"}
    return "quad" if max(lanes) < _QUAD_BITS else "warp", tuple(steps)


def _within(origin: Mapping[Bit, Bit], source: Registers, target: Registers, *, free: bool) -> tuple[Kind, tuple[Step, ...]]:
    """The steps where every element stays in its thread."""
    bits = [origin[place].bit if (place := Bit("i", bit)) in origin else None for bit in target.bits]
    numbers = [sum((number >> bit & 1) << old for bit, old in enumerate(bits) if old is not None) for number in range(1 << len(bits))]
    size = 1 << target.inside
    step = Arrange(tuple(tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)))
    if bits == list(range(len(bits))) and (free or source.inside == target.inside):
        return "same", (step,)
    return "registers" if free or bits[: target.inside] == list(range(source.inside)) else "prmt", (step,)


def _chosen(kept: Mapping[int, int], source: Registers, target: Registers, *, free: bool) -> list[int]:
    """The bits of ``i`` of the source that count within a word of the exchange: as many as a register takes of those that stay in ``i``.

    What is within a register before or after comes first: then there is less to arrange.
    """

    def cost(new: int) -> tuple[bool, bool]:
        before, after = free or kept[new] < source.inside, new < target.inside
        return not (before and after), not (after if free else before)

    best = sorted(sorted(kept), key=cost)[: target.inside]
    return [kept[new] for new in sorted(best)]


def _rounds(origin: Mapping[Bit, Bit], words: Sequence[int], taken: Sequence[int]) -> Iterator[Shuffle]:
    """The exchange of whole words.

    In a round all threads send and take one word each.  So a thread takes in round t the word t, in which the bits that come from lanes are
    changed by its own bits that come from words: then no two threads need different words of one thread.
    """
    come = {word: origin[Bit("i", bit)].bit for word, bit in enumerate(taken) if origin[Bit("i", bit)].name == "lane"}
    go = [bit.bit for bit, old in origin.items() if bit.name == "lane" and old.name == "i"]
    partners = {word: lane for word, lane in come.items() if lane in go}  # the same bit on both sides: the threads swap
    rest = [lane for lane in sorted(go) if lane not in partners.values()]
    partners |= dict(zip((word for word in come if word not in partners), rest, strict=True))
    lane_bits = sum(bit.name == "lane" for bit in origin)
    for turn in range(1 << len(taken)):
        lanes, takes, sends = [], [], [0] * (1 << lane_bits)
        for lane in range(1 << lane_bits):
            word = turn ^ sum((lane >> bit & 1) << place for place, bit in partners.items())
            old = {"lane": 0, "i": 0}
            for bit in range(lane_bits):
                old[origin[Bit("lane", bit)].name] |= (lane >> bit & 1) << origin[Bit("lane", bit)].bit
            for place, bit in enumerate(taken):
                old[origin[Bit("i", bit)].name] |= (word >> place & 1) << origin[Bit("i", bit)].bit
            lanes.append(old["lane"])
            takes.append(word)
            sends[old["lane"]] = _gathered(old["i"], words)
        yield Shuffle(tuple(lanes), tuple(sends), tuple(takes))


def _spread(number: int, bits: Sequence[int]) -> int:
    """The bits of a number at new places."""
    return sum((number >> place & 1) << bit for place, bit in enumerate(bits))


def _gathered(number: int, bits: Sequence[int]) -> int:
    """The inverse of :func:`_spread`."""
    return sum((number >> bit & 1) << place for place, bit in enumerate(bits))


def _unchanged(step: Arrange, inside: int, before_or_after: int) -> bool:
    """Return whether each register stays as it is: it holds as many elements of a word, and in their order."""
    flat = [number for register in step.registers for number in register]
    return inside == before_or_after and flat == list(range(len(flat)))
