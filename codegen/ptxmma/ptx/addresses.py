"""Addresses in shared memory that a function computes: a variable, a constant, and the steps of an index into an array.

Moves, sums, shifts, products with constants and what a division by one leaves are followed.  ``mapa`` and the mask that chooses a thread
block of a pair give the same place in another thread block, where the kernel does the same.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx import literals

if TYPE_CHECKING:
    from ptxmma.ptx.conditions import Predicates

_TERM = re.compile(rb"([+-]?)\s*([\w$%.]+)")
_NAMED = re.compile(rb"[a-zA-Z_$][\w$]*")
#: Instructions that give their operand, or the same place in another thread block.
_SAME = re.compile(rb"mov\.[bus](?:32|64)|cvt\.[us]\d\d\.[us]\d\d|cvta(?:\.to)?\.shared\.u64|mapa\.[\w.:]+|and\.b32|shfl\.sync\.idx\.b32")
#: The bits of an address that a mask may clear: the lowest bit of a thread block's rank, and bits that are 0 where 8 bytes are aligned.
_CLEARED = 0x100000F
_ADDED = re.compile(rb"(add|sub)\.[us](?:32|64)")
_SHIFTED = re.compile(rb"shl\.b(?:32|64)")
_MULTIPLIED = re.compile(rb"(?:mul|mad)\.(?:lo|wide)\.[us](?:16|32|64)")
_REMAINDER = re.compile(rb"rem\.[us](?:16|32|64)")
#: Instructions from which a quotient is made: compilers multiply by a reciprocal, and keep the high half.
_DIVIDED = re.compile(rb"(?:mul\.(?:hi|wide)|div)\.[us](?:16|32|64)")
#: Instructions from there to the quotient.
_QUOTIENT = 8
_STEPS = re.compile(rb"(?:mov|add)\.")
_COMPARED = re.compile(rb"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.[bsu](?:32|64)")
#: Bytes before an instruction in which the one is looked for that writes its register.
_NEAR = 512
#: Instructions between an address and what it is made of; beyond, it is not followed.
_DEEPEST = 32
#: Instructions that write one register; of more, it is not looked whether all write the same.
_MOST_WRITES = 8


class Sum(NamedTuple):
    """A sum of registers or variables, each times a factor, and a constant."""

    terms: Mapping[bytes, int]
    constant: int = 0

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """This and another sum times a factor."""
        terms = dict(self.terms)
        for name, times in other.terms.items():
            terms[name] = terms.get(name, 0) + factor * times
        return Sum({name: times for name, times in terms.items() if times}, self.constant + factor * other.constant)


class Place(NamedTuple):
    """Places of a variable in shared memory, at equal distances.

    Attributes:
        variable: the variable's name.
        first: the offset of the first place.
        step: the distance between two of them; 0 for a single place.
        places: the number of places; 0 if it is not known.
    """

    variable: bytes
    first: int
    step: int = 0
    places: int = 1

    def singles(self) -> list[Place]:
        """The places one by one; all of them together where their number is not known."""
        return (
            [Place(self.variable, self.first + number * self.step) for number in range(self.places)]
            if self.step and self.places
            else [self]
        )

    def begins_in(self, other: Place) -> bool:
        """Return whether its first place is a later one of the other's, so that its number of places is too large."""
        return self.step == other.step and self.first > other.first and other.meets(Place(self.variable, self.first))

    def meets(self, other: Place) -> bool:
        """Return whether a place may be one of the other's."""
        if self.variable != other.variable:
            return False
        if self.step and other.step and self.step != other.step:
            return True  # arrays of different things: not looked at
        step = self.step or other.step
        apart = other.first - self.first
        if step and apart % step:
            return False
        return (not self.places or apart <= self.step * (self.places - 1)) and (
            not other.places or -apart <= other.step * (other.places - 1)
        )


class Addresses:
    """The addresses of a function.

    Args:
        text: the function's text.
        registers: the function's registers.

    Attributes:
        values: the number of values of an index that goes round in a ring from 0; 0 if it is not known.
    """

    def __init__(self, text: bytes, registers: Predicates) -> None:
        self._text, self._registers = text, registers
        self._sums: dict[bytes, Sum] = {}
        self._places: dict[tuple[bytes, int], Place | None] = {}  # several rules ask for the same ones
        self._limits: dict[bytes, int] = {}  # the number of values of what a mask or a division leaves of an index
        self.values = functools.lru_cache(maxsize=None)(self._values)

    def place(self, operand: bytes, at: int) -> Place | None:
        """The places of an operand, ``b"[%r1+8]"``, of an instruction at a place in the text; None if they are not followed.

        An index that goes round in a ring has as many values as the ring has places, if the text compares it with that number.
        """
        if (operand, at) not in self._places:
            self._places[operand, at] = self._place(operand, at)
        return self._places[operand, at]

    def _place(self, operand: bytes, at: int) -> Place | None:
        total = self.of(operand)
        for name in [name for name in total.terms if _NAMED.fullmatch(name) and len(self._registers.writes(name)) > 1]:
            total = total.plus(self._nearest(name, at), total.terms[name]).plus(Sum({name: -total.terms[name]}))
        variables = [name for name, times in total.terms.items() if times == 1 and self._is_variable(name)]
        indices = {name: times for name, times in total.terms.items() if name not in variables}
        if len(variables) != 1 or any(not name.startswith(b"%") for name in indices):
            return None
        step = math.gcd(*indices.values())
        if not indices or step == 1:
            return Place(variables[0], total.constant) if not indices else None
        if min(indices.values()) < 0:  # an index is taken away: the first place may be anywhere before the constant
            return Place(variables[0], total.constant % step, step, 0)
        return Place(variables[0], total.constant, step, self.values(*indices) if len(indices) == 1 else 0)

    def _is_variable(self, name: bytes) -> bool:
        return _NAMED.fullmatch(name) is not None and not self._registers.writes(name)

    def of(self, operand: bytes) -> Sum:
        """The sum that an operand is, ``b"[%r1+8]"``."""
        total = Sum({})
        for sign, word in _TERM.findall(operand.strip(b"[] \t")):
            number = literals.integer(word)
            total = total.plus(Sum({}, number) if number is not None else self._register(word, 0), -1 if sign == b"-" else 1)
        return total

    def _nearest(self, name: bytes, at: int) -> Sum:
        """The sum in a register of inline assembly, which has one in many scopes: from the instruction before a place that writes it."""
        written = [*re.finditer(rb"[\s;{}]([a-z]\w*\.[\w.:]*)\s+%b\s*,([^;]*)" % name, self._text[max(0, at - _NEAR) : at])]
        return self._written(name, written[-1][1], written[-1][2], 0) if written else Sum({name: 1})

    def _register(self, name: bytes, depth: int) -> Sum:
        found = self._sums.get(name)
        if found is None:
            self._sums[name] = Sum({name: 1})  # for a value that is computed from itself
            found = self._sums[name] = self._computed(name, depth)
        return found

    def _computed(self, name: bytes, depth: int) -> Sum:
        writes = self._registers.writes(name)
        if not writes or len(writes) > _MOST_WRITES or depth > _DEEPEST or any(place for _, place, _, _ in writes):
            return Sum({name: 1})
        sums = [self._written(name, opcode, rest, depth) for opcode, _, rest, _ in writes]
        # The first place of an array, and a place with an index: the register may hold any place of the array.
        widest = max(sums, key=lambda each: len(each.terms))
        parts = (each.constant == widest.constant and each.terms.items() <= widest.terms.items() for each in sums)
        return widest if all(parts) else Sum({name: 1})

    def _written(self, name: bytes, opcode: bytes, rest: bytes, depth: int) -> Sum:
        """The sum that an instruction writes into a register."""
        itself = Sum({name: 1})
        operands = [operand.strip() for operand in rest.split(b",")]
        if any(not operand or operand.startswith(b"{") for operand in operands):
            return itself
        sums = [self._operand(operand, depth + 1) for operand in operands]
        constants = [each.constant if not each.terms else None for each in sums]
        if _SAME.fullmatch(opcode):
            mask = constants[-1] if opcode.startswith(b"and") else -1
            if mask is not None and (mask | _CLEARED) & 0xFFFFFFFF == 0xFFFFFFFF:
                return sums[0]
            return self._limited(name, mask & -mask, mask // (mask & -mask) + 1) if mask is not None and mask > 0 else itself
        if _REMAINDER.fullmatch(opcode) and len(sums) == 2 and constants[1]:
            return self._limited(name, 1, constants[1])
        if opcode.startswith(b"sub.") and (divisor := self._divisor(operands[0], sums[1])) > 1:
            return self._limited(name, 1, divisor)
        if (added := _ADDED.fullmatch(opcode)) and len(sums) == 2:
            return sums[0].plus(sums[1], 1 if added[1] == b"add" else -1)
        if _SHIFTED.fullmatch(opcode) and len(sums) == 2 and constants[1] is not None and constants[1] < 32:
            return Sum({}).plus(sums[0], 1 << constants[1])
        if _MULTIPLIED.fullmatch(opcode) and len(sums) > 1 and constants[1] is not None:
            product = Sum({}).plus(sums[0], constants[1])
            return product.plus(sums[2]) if len(sums) == 3 else product
        return itself

    def _limited(self, name: bytes, step: int, values: int) -> Sum:
        """The sum that a register is which has what a mask or a division leaves of an index."""
        self._limits[name] = values
        return Sum({name: step})

    def _divisor(self, dividend: bytes, product: Sum) -> int:
        """The constant by which a register was divided, if a sum is the quotient times that constant; 0 if it is another sum."""
        divided = not product.constant and any(self._divides(quotient, dividend) for quotient in product.terms)
        return math.gcd(*product.terms.values()) if divided else 0

    def _divides(self, name: bytes, dividend: bytes) -> bool:
        """Return whether a register is computed from the quotient of another one and a constant."""
        waiting = {name}
        for _ in range(_QUOTIENT):
            written = [(opcode, rest) for each in waiting for opcode, _, rest, _ in self._registers.writes(each)[:_MOST_WRITES]]
            operands = [(opcode, [operand.strip() for operand in rest.split(b",")]) for opcode, rest in written]
            if any(_DIVIDED.fullmatch(opcode) and dividend in names for opcode, names in operands):
                return True
            waiting = {name for _, names in operands for name in names if name.startswith(b"%")}
        return False

    def _operand(self, operand: bytes, depth: int) -> Sum:
        number = literals.integer(operand)
        return Sum({}, number) if number is not None else self._register(operand, depth)

    def _values(self, index: bytes) -> int:
        """The number of values of an index that goes round in a ring from 0; 0 if it is not known."""
        if index in self._limits:
            return self._limits[index]
        seen, waiting, ends = {index}, [index], set[int]()
        while waiting:
            for opcode, _, rest, _ in self._registers.values_written(waiting.pop()):
                operands = [operand.strip() for operand in rest.split(b",")]
                if opcode.startswith(b"selp") and len(operands) == 3:
                    ends |= {self._end(operands)}
                    operands = operands[:2]
                elif not _STEPS.match(opcode):
                    continue
                fresh = [name for name in operands if name.startswith(b"%") and name not in seen]
                seen.update(fresh)
                waiting += fresh
        ends.discard(0)
        return ends.pop() if len(ends) == 1 else 0

    def _end(self, chosen: list[bytes]) -> int:
        """The number at which a choice between 0 and a number begins again; 0 if it is another choice."""
        first, other, predicate = chosen
        writes = self._registers.writes(predicate)
        if len(writes) != 1 or b"0" not in (first, other):
            return 0
        counted = other if first == b"0" else first
        compared = _COMPARED.fullmatch(writes[0][0])
        one, _, limit = (part.strip() for part in writes[0][2].partition(b","))
        number = literals.integer(limit)
        if compared is None or number is None or one != counted:
            return 0
        return number + (compared[1] in ((b"gt", b"hi") if first == b"0" else (b"le", b"ls")))
