"""Which bits of a register are known: those that are the same wherever the function writes it.

Neither branches nor the order of instructions count, so that what is known holds at every place.  Copies, shifts, sums and bitwise
operations are followed; the result of every other instruction is unknown.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from ptxmma.ptx import literals

_WRITES = re.compile(rb"(?<![\w$%.])(call|[a-z]\w*\.[\w.:]*)\s+\(?\s*(\{[^{};]*\}|[\w$%|]+)\s*[,)]([^;]*)")
_REST = rb"\s+(\{[^{};]*\}|[\w$%|]+)\s*,([^;]*)"
#: The instructions whose results are known, one by one: a search for what begins with a word is fast.
_COMPUTED = [
    re.compile(b"(" + opcode + rb"(?:16|32|64))" + _REST)
    for opcode in (rb"mov\.[bus]", rb"or\.b", rb"and\.b", rb"add\.[us]", rb"shl\.b", rb"shr\.[bu]", rb"bfi\.b", rb"cvt\.u\d\d\.u")
]
_OPERAND = re.compile(rb"\{[^{}]*\}|[^,{}\s][^,{}]*")
_WORDS = re.compile(rb"[\w$%]+")
_OPCODE = re.compile(rb"((?:mov|or|and|add|shl|bfi)(?=\.[bus])|shr(?=\.[bu])|cvt\.u(16|32|64)(?=\.u))\.[bus](16|32|64)")
_Doubt = TypeVar("_Doubt")
#: Instructions between a register and the constants that it is made of: of more, nothing is known.
_DEEPEST = 64


class Bits(NamedTuple):
    """A number of which some bits are known.

    Attributes:
        value: the bits that are known, 0 elsewhere.
        unknown: a mask of the others.
    """

    value: int
    unknown: int = 0

    def within(self, width: int) -> Bits:
        """The lowest bits of it, the others 0."""
        mask = (1 << width) - 1
        return Bits(self.value & mask, self.unknown & mask)

    def __and__(self, other: Bits) -> Bits:
        value = self.value & other.value
        return Bits(value, (self.value | self.unknown) & (other.value | other.unknown) & ~value)

    def __or__(self, other: Bits) -> Bits:
        value = self.value | other.value
        return Bits(value, (self.unknown | other.unknown) & ~value)

    def plus(self, other: Bits) -> Bits:
        """The sum; a bit is unknown if a bit or a carry that it depends on is."""
        least, unknown = self.value + other.value, self.unknown + other.unknown
        unknown = ((least + unknown) ^ least) | self.unknown | other.unknown
        return Bits(least & ~unknown, unknown)

    def shifted(self, places: int) -> Bits:
        """Shifted to the left, or to the right by a negative number of places."""
        if places < 0:
            return Bits(self.value >> -places, self.unknown >> -places)
        return Bits(self.value << places, self.unknown << places)

    def either(self, other: Bits) -> Bits:
        """What is known of a number that is one of the two."""
        unknown = self.unknown | other.unknown | (self.value ^ other.value)
        return Bits(self.value & ~unknown, unknown)


_UNKNOWN = Bits(0, (1 << 64) - 1)


class KnownBits:
    """The bits that are known of the registers of a function.

    Registers of one name in several scopes count as one.

    Args:
        text: of the function.
        guess: whether to take only the instructions that are followed for writes, which is faster: no bit that is known is unknown then.
    """

    def __init__(self, text: bytes, *, guess: bool = False) -> None:
        self._writes: dict[bytes, list[tuple[bytes, int, int, bytes]]] = {}
        for opcode, target, rest in itertools.chain.from_iterable(each.findall(text) for each in (_COMPUTED if guess else [_WRITES])):
            names = _WORDS.findall(target)
            for place, name in enumerate(names):
                self._writes.setdefault(name, []).append((opcode, place, len(names), rest))
        self._known: dict[bytes, Bits] = {}
        self._depth = 0

    def of(self, operand: bytes) -> Bits:
        """The 64 bits of a register or a constant, of a narrower register with zeros above."""
        number = literals.integer(operand)
        if number is not None:
            return Bits(number).within(64)
        known = self._known.get(operand)
        if known is None:
            self._known[operand] = _UNKNOWN  # for those that it is made of, if it is one of them
            writes = self._writes.get(operand, ())
            if writes and self._depth < _DEEPEST:
                self._depth += 1
                known = functools.reduce(Bits.either, [self._written(*write) for write in writes])
                self._depth -= 1
            self._known[operand] = known = known or _UNKNOWN
        return known

    def _written(self, opcode: bytes, place: int, count: int, rest: bytes) -> Bits:
        """What an instruction writes into one of the registers of its first operand."""
        match = _OPCODE.fullmatch(opcode)
        if match is None:
            return _UNKNOWN
        operands, width = [operand.strip() for operand in _OPERAND.findall(rest)], int(match[3])
        if match[2]:
            return self.of(operands[0]).within(width).within(int(match[2]))
        if match[1] == b"mov":
            part = width // count
            return self._packed(operands[0], width).shifted(-place * part).within(part)
        made = _MADE[match[1]](*[self.of(operand).within(width) for operand in operands])
        return made.within(width)

    def _packed(self, operand: bytes, width: int) -> Bits:
        """A register, a constant, or a list that is joined, the lowest first."""
        if not operand.startswith(b"{"):
            return self.of(operand).within(width)
        parts = [name.strip() for name in operand[1:-1].split(b",")]
        part = width // len(parts)
        return functools.reduce(Bits.__or__, [self.of(name).within(part).shifted(place * part) for place, name in enumerate(parts)])


class RegisterBits:
    """What is known of the registers of a function, found out when it is asked.

    Args:
        text: of the function.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text

    @functools.cached_property
    def _known(self) -> KnownBits:
        return KnownBits(self._text)

    @functools.cached_property
    def _guessed(self) -> KnownBits:
        return KnownBits(self._text, guess=True)

    def doubts(self, about: Callable[[KnownBits], Iterator[_Doubt]]) -> Iterator[_Doubt]:
        """What is doubtful about the registers.

        Most functions have nothing doubtful, even if what writes registers otherwise is left out.
        """
        if any(True for _ in about(self._guessed)):
            yield from about(self._known)


def _shifted(number: Bits, places: Bits, sign: int) -> Bits:
    return _UNKNOWN if places.unknown else number.shifted(sign * min(places.value, 64))


def _inserted(field: Bits, number: Bits, first: Bits, length: Bits) -> Bits:
    if first.unknown or length.unknown:
        return _UNKNOWN
    place, count = min(first.value & 0xFF, 64), min(length.value & 0xFF, 64)
    return field.within(count).shifted(place) | (number & Bits(~((1 << count) - 1 << place)).within(64))


#: What instructions make of their operands.
_MADE: dict[bytes, Callable[..., Bits]] = {
    b"or": Bits.__or__,
    b"and": Bits.__and__,
    b"add": Bits.plus,
    b"shl": functools.partial(_shifted, sign=1),
    b"shr": functools.partial(_shifted, sign=-1),
    b"bfi": _inserted,
}
