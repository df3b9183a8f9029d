"""Contents of registers: bits that are the same wherever a function writes the register.

Neither branches nor the order of instructions count, so that what is known holds at every place.  Copies, shifts, sums and bitwise
operations are followed; the result of every other instruction is unknown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx import literals

if TYPE_CHECKING:
    from ptxmma.ptx.variables import Variable
    from ptxmma.ptx.writes import Write, Writes

_WORDS = re.compile(rb"[\w$%]+")
_OPCODE = re.compile(
    rb"((?:mov|or|and|xor|shfl\.sync\.idx|add|sub|shl|bfi|selp|(?:mul|mad)\.(?:lo|wide))(?=\.[bus])|shr(?=\.[bu])|cvt\.u(16|32|64)(?=\.u)"
    rb"|cvta(?=(?:\.to)?\.shared))(?:(?:\.to)?\.shared(?:::\w+)?)?\.[bus](16|32|64)"
)
#: Instructions between a register and the constants that it is made of: of more, nothing is known.
_DEEPEST = 64


_MASK = (1 << 64) - 1


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
        if not (self.value | self.unknown) >> width:
            return self
        mask = (1 << width) - 1
        return Bits(self.value & mask, self.unknown & mask)

    def __and__(self, other: Bits) -> Bits:
        value = self.value & other.value
        return Bits(value, (self.value | self.unknown) & (other.value | other.unknown) & ~value)

    def __xor__(self, other: Bits) -> Bits:
        unknown = self.unknown | other.unknown
        return Bits((self.value ^ other.value) & ~unknown, unknown)

    def __or__(self, other: Bits) -> Bits:
        value = self.value | other.value
        return Bits(value, (self.unknown | other.unknown) & ~value)

    def plus(self, other: Bits) -> Bits:
        """The sum; a bit is unknown if a bit or a carry that it depends on is."""
        least, unknown = self.value + other.value, self.unknown + other.unknown
        unknown = ((least + unknown) ^ least) | self.unknown | other.unknown
        return Bits(least & ~unknown, unknown)

    def minus(self, other: Bits) -> Bits:
        """The difference, modulo a power of two that the caller knows."""
        return self.plus(Bits(~(other.value | other.unknown) & _MASK, other.unknown)).plus(Bits(1))

    def shifted(self, places: int) -> Bits:
        """Shifted to the left, or to the right by a negative number of places."""
        if places < 0:
            return Bits(self.value >> -places, self.unknown >> -places)
        return Bits(self.value << places, self.unknown << places)

    def either(self, other: Bits) -> Bits:
        """The known bits of a number that is one of the two."""
        unknown = self.unknown | other.unknown | (self.value ^ other.value)
        return Bits(self.value & ~unknown, unknown)


_UNKNOWN = Bits(0, _MASK)


class KnownBits:
    """The bits that are known of the registers of a function.

    Registers of one name in several scopes count as one.

    Args:
        registers: the function's registers.
        passed: the numbers that registers have at first, by their names.
        variable_of: the variable that a name means, or None.
    """

    def __init__(self, registers: Writes, passed: Mapping[bytes, int], variable_of: Callable[[bytes], Variable | None]) -> None:
        self._registers, self._passed, self._variable_of = registers, passed, variable_of
        self._known: dict[bytes, Bits] = {}
        self._depth = 0

    def of(self, operand: bytes) -> Bits:
        """The 64 bits of a register or a constant, of a narrower register with zeros above."""
        known = self._known.get(operand)
        if known is None:
            self._known[operand] = _UNKNOWN  # for those that it is made of, if it is one of them
            known = self._known[operand] = self._computed(operand)
        return known

    def _address(self, name: bytes) -> Bits:
        """The address of a variable, whose alignment clears its lowest bits."""
        variable = self._variable_of(name)
        return _UNKNOWN if variable is None else Bits(0, _MASK & -(variable.alignment & -variable.alignment))

    def dropped(self, operand: bytes, low: int, count: int) -> int:
        """The known 1 bits among those that a shift to the right dropped below a field of a register, where the text shows the shift.

        Follows the field to the shift through registers that are written once, and through operations with one other number.

        Args:
            operand: the register.
            low: the field's lowest bit.
            count: the number of dropped bits next to the field.
        """
        for _ in range(_DEEPEST):
            writes = self._registers.writes(operand)
            if len(writes) != 1:
                return 0
            opcode, place, rest, _ = writes[0]
            what, width, converted = _operation(opcode)
            operands = [each.strip() for each in rest.split(b",")]
            if what in (b"shl", b"shr"):
                places = literals.integer(operands[-1])
                if places is None:
                    return 0
                if what == b"shr" and not low:
                    return self.of(operands[0]).within(width).value >> places - count & (1 << count) - 1 if places >= count else 0
                low += places if what == b"shr" else -places
                operands = operands[:1]
            elif what == b"mov" and (parts := _WORDS.findall(rest)):
                low += place * (width // self._registers.count(writes[0]))
                place, low = divmod(low, width // len(parts))
                operands = parts[place : place + 1]
            elif what not in _IN_PLACE and not converted:
                return 0
            carriers = [each for each in operands if literals.integer(each) is None and self.of(each) != Bits(0)]
            if low < 0 or len(carriers) != 1:
                return 0
            operand = carriers[0]
        return 0

    def _computed(self, operand: bytes) -> Bits:
        writes = self._registers.writes(operand)
        if not writes:
            number = self._passed[operand] if operand in self._passed else literals.integer(operand)
            return self._address(operand) if number is None else Bits(number).within(64)
        if self._depth >= _DEEPEST:
            return _UNKNOWN
        self._depth += 1
        known = functools.reduce(Bits.either, map(self._written, writes))
        self._depth -= 1
        return known

    def _written(self, write: Write) -> Bits:
        """The bits that an instruction writes into one of the registers of its first operand."""
        opcode, place, rest, _ = write
        what, width, converted = _operation(opcode)
        if not what:
            return _UNKNOWN
        if converted:
            return self.of(rest.strip()).within(width).within(converted)
        if what == b"mov":
            part = width // self._registers.count(write)
            return self._packed(rest.strip(), width).shifted(-place * part).within(part)
        operands = rest.split(b",")
        if len(operands) != _OPERANDS.get(what, 2):
            return _UNKNOWN
        made = _MADE[what](*[self.of(operand.strip()).within(width) for operand in operands]).within(width)
        return made if not what.endswith(b"wide") else Bits(made.value, made.unknown | _MASK << width & _MASK)

    def _packed(self, operand: bytes, width: int) -> Bits:
        """A register, a constant, or a list that is joined, the lowest first."""
        if not operand.startswith(b"{"):
            return self.of(operand).within(width)
        parts = [name.strip() for name in operand[1:-1].split(b",")]
        part = width // len(parts)
        return functools.reduce(Bits.__or__, [self.of(name).within(part).shifted(place * part) for place, name in enumerate(parts)])


@functools.lru_cache(maxsize=1 << 8)
def _operation(opcode: bytes) -> tuple[bytes, int, int]:
    """The operation of an instruction, its bits, and the bits into which it converts them; empty where its result is unknown."""
    match = _OPCODE.fullmatch(opcode)
    return (match[1], int(match[3]), int(match[2] or 0)) if match else (b"", 0, 0)


def _shifted(number: Bits, places: Bits, sign: int) -> Bits:
    return _UNKNOWN if places.unknown else number.shifted(sign * min(places.value, 64))


def _multiplied(one: Bits, other: Bits, added: Bits | None = None) -> Bits:
    """The product with a known number, and a number that is added; both modulo a power of two that the caller knows."""
    if one.unknown:
        one, other = other, one
    if one.unknown:
        return _UNKNOWN
    places = [place for place in range(one.value.bit_length()) if one.value >> place & 1]
    parts = [other.shifted(place) for place in places] + ([added] if added is not None else [])
    return functools.reduce(Bits.plus, parts, Bits(0))


def _inserted(field: Bits, number: Bits, first: Bits, length: Bits) -> Bits:
    if first.unknown or length.unknown:
        return _UNKNOWN
    place, count = min(first.value & 0xFF, 64), min(length.value & 0xFF, 64)
    return field.within(count).shifted(place) | (number & Bits(~((1 << count) - 1 << place)).within(64))


#: The number of operands beside the result, for instructions that have another number than two.
_OPERANDS = {b"cvta": 1, b"shfl.sync.idx": 4, b"bfi": 4, b"selp": 3, b"mad.lo": 3, b"mad.wide": 3}
#: The bits of an address in shared memory that a generic address of the same place has, too: the window is aligned to more.
_WINDOW = 0xFFFF
#: The operations that leave the bits of an operand in their places, where the others are constants.
_IN_PLACE = (b"or", b"and", b"xor", b"add")
#: The results of instructions, as functions of their operands.
_MADE: dict[bytes, Callable[..., Bits]] = {
    b"or": Bits.__or__,
    b"and": Bits.__and__,
    b"cvta": lambda one: Bits(one.value & _WINDOW, one.unknown | _MASK ^ _WINDOW),
    b"xor": Bits.__xor__,
    b"shfl.sync.idx": lambda one, *_: one,  # the register's number in another lane, of which the same bits are known
    b"add": Bits.plus,
    b"sub": Bits.minus,
    b"shl": functools.partial(_shifted, sign=1),
    b"shr": functools.partial(_shifted, sign=-1),
    b"bfi": _inserted,
    b"selp": lambda one, other, _: one.either(other),
    **dict.fromkeys((b"mul.lo", b"mul.wide", b"mad.lo", b"mad.wide"), _multiplied),
}


_MOVE = re.compile(rb"\s*mov\.[bus]32\s+([\w$%]+)\s*,\s*([^,]+?)\s*\Z")
_WRITTEN = re.compile(rb"\s*(?:@[^\s]+\s+)?[\w.:]+\s+(?:\{[^{}]*\}|[\w$%|]+)")
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%")
_LABEL = re.compile(rb"[\w$%]\s*:(?!:)")
_BRANCH = re.compile(rb"\b(?:bra|brx|ret|exit|call|trap)\b")
#: Bytes before a place in which a register's constant is looked for.
_BEFORE = 1 << 14


def constant_before(text: bytes, offset: int, name: bytes) -> int | None:
    """The constant that ``mov`` gave a register before a place, in the same basic block; None where that cannot be seen."""
    first = max(0, offset - _BEFORE)
    at = offset
    while (at := text.rfind(name, first, at)) >= 0:
        end = at + len(name)
        if text[end] in _NAME_BYTES or (at and text[at - 1] in _NAME_BYTES):
            continue
        start = max(text.rfind(mark, first, at) for mark in (b";", b":", b"\n")) + 1
        stop = text.find(b";", at, offset)
        written = _WRITTEN.match(text, start)
        if stop < 0 or written is None or at >= written.end():
            continue  # it is read here
        move = _MOVE.match(text, start, stop)
        between = text[stop:offset]
        if move is None or move[1] != name or _LABEL.search(between) or _BRANCH.search(between):
            return None
        return literals.integer(move[2])
    return None
