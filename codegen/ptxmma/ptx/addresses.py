"""Addresses in shared memory that a function computes: a variable, a constant, and the steps of an index into an array.

Moves, sums, products and quotients with constants, masks, and what a loop adds in each round are followed.  ``mapa`` and the mask that
chooses a thread block of a pair give the same place in another thread block, where the kernel does the same.
"""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.sums import Remainder, Sum, Term
from ptxmma.ptx.text_loops import TextLoops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.ptx.writes import Write, Writes

_TERM = re.compile(rb"([+-]?)\s*([\w$%.]+)")
_NAMED = re.compile(rb"[a-zA-Z_$][\w$]*")
#: Instructions that give their operand, or the same place in another thread block.
_SAME = re.compile(rb"mov\.[bus](?:32|64)|cvt\.[us]\d\d\.[us]\d\d|cvta(?:\.to)?\.shared\.u64|mapa\.[\w.:]+|shfl\.sync\.idx\.b32")
_COMPUTED = re.compile(rb"(add|sub|shl|shr|and|or|xor|rem|div|(?:mul|mad)\.(?:lo|wide|hi))\.([bsu])(16|32|64)")
#: The lowest bit of a thread block's rank in an address; and bits that a mask may clear, as they are 0 in aligned arrays.  With the bit of
#: the rank, compilers clear whatever they know to be 0.
_RANK, _CLEARED, _CLEARED_WITH_RANK = 1 << 24, 0xF, 0x10003FF
_STEPS = re.compile(rb"(?:mov|add)\.")
_COMPARED = re.compile(rb"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.[bsu](?:32|64)")
#: Bytes before an instruction in which the one is looked for that writes its register.
_NEAR = 512
#: Instructions between an address and what it is made of; beyond, it is not followed.
_DEEPEST = 32
#: Instructions that write one register; of more, it is not looked whether all write the same.
_MOST_WRITES = 8


#: Values of an index into a ring: with more, it is a byte or a word, and the ring is not known.
_MOST_STAGES = 64


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
        step, apart = math.gcd(self.step, other.step), other.first - self.first
        if self.variable != other.variable or (step and apart % step):
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
        text: as given.
        values: the number of values of an index that goes round in a ring from 0; 0 if it is not known.
    """

    def __init__(self, text: bytes, registers: Writes) -> None:
        self.text, self._registers = text, registers
        self._sums: dict[tuple[bytes, int], Sum] = {}  # by a register, and the loop in which it is read
        self._places: dict[tuple[bytes, int], Place | None] = {}  # several rules ask for the same ones
        self._loops = TextLoops(text)
        self.values = functools.lru_cache(maxsize=None)(self._values)

    def is_by_thread(self, place: int) -> bool:
        """Return whether nothing but ``%tid.x`` changes the first address of the instruction at a place: each thread names its own."""
        named = self.text[self.text.find(b"[", place) : self.text.find(b"]", place) + 1]
        return [each for each in self.of(named, place).terms if not (isinstance(each, bytes) and _is_named(each))] == [thread_values.INDEX]

    def place(self, operand: bytes, at: int) -> Place | None:
        """The places of an operand, ``b"[%r1+8]"``, of an instruction at a place in the text; None if they are not followed.

        An index that goes round in a ring has as many values as the ring has places, if the text compares it with that number.
        """
        if (operand, at) not in self._places:
            self._places[operand, at] = self._place(operand, at)
        return self._places[operand, at]

    def _place(self, operand: bytes, at: int) -> Place | None:
        total = self.of(operand, at)
        for name in [name for name in total.terms if isinstance(name, bytes) and _is_named(name) and len(self._registers.writes(name)) > 1]:
            total = total.plus(self._nearest(name, at), total.terms[name]).plus(Sum({name: -total.terms[name]}))
        variables = [name for name, times in total.terms.items() if times == 1 and isinstance(name, bytes) and self._is_variable(name)]
        indices = {name: times for name, times in total.terms.items() if name not in variables}
        if len(variables) != 1 or any(isinstance(name, bytes) and not name.startswith(b"%") for name in indices):
            return None
        if not indices:
            return Place(variables[0], total.constant)
        step = math.gcd(*indices.values())
        if step == 1:
            return None
        count = self.values(*indices) if len(indices) == 1 else 0
        if min(indices.values()) > 0:
            return Place(variables[0], total.constant, step, count)
        # An index is taken away: the last place is at the constant.
        return Place(variables[0], total.constant - step * (count - 1), step, count) if count else None

    def _is_variable(self, name: bytes) -> bool:
        return _is_named(name) and not self._registers.writes(name)

    def of(self, operand: bytes, at: int) -> Sum:
        """The sum that an operand is, ``b"[%r1+8]"``, of an instruction at a place in the text."""
        total = Sum({})
        for sign, word in _TERM.findall(operand.strip(b"[] \t")):
            total = total.plus(self._operand(word, at, 0), -1 if sign == b"-" else 1)
        return total.in_rings()

    def _nearest(self, name: bytes, at: int) -> Sum:
        """The sum in a register of inline assembly, which has one in many scopes: from the instruction before a place that writes it."""
        begin = max(0, at - _NEAR)
        written = [*re.finditer(rb"[\s;{}]([a-z]\w*\.[\w.:]*)\s+%b\s*,([^;]*)" % name, self.text[begin:at])]
        return self._written(name, (written[-1][1], 0, written[-1][2], begin + written[-1].start()), 0) if written else Sum({name: 1})

    def _operand(self, operand: bytes, at: int, depth: int) -> Sum:
        """The sum that a register or a constant is, where an instruction at a place in the text reads it."""
        number = literals.integer(operand)
        if number is not None:
            return Sum({}, number)
        several = len(self._registers.writes(operand)) > 1
        last = self._registers.write_before(operand, at) if several else None
        key = operand, last[3] if last is not None else self._loops.smallest(at) if several else -1
        if key not in self._sums:
            self._sums[key] = Sum({operand: 1})  # for a value that is computed from itself
            self._sums[key] = self._written(operand, last, depth) if last is not None else self._computed(operand, at, depth)
        return self._sums[key]

    def _computed(self, name: bytes, at: int, depth: int) -> Sum:
        writes = self._registers.values_written(name)
        if not writes or len(writes) > _MOST_WRITES or depth > _DEEPEST or any(place for _, place, _, _ in writes):
            return Sum({name: 1})
        counted = self._counted(name, writes, at, depth) if len(writes) > 1 else None
        if counted is not None:
            return counted
        sums = [self._written(name, write, depth) for write in writes]
        # The first place of an array, and a place with an index: the register may hold any place of the array.
        widest = max(sums, key=lambda each: len(each.terms))
        parts = (each.constant == widest.constant and each.terms.items() <= widest.terms.items() for each in sums)
        return widest if name not in widest.terms and all(parts) else Sum({name: 1})

    def _counted(self, name: bytes, writes: Sequence[Write], at: int, depth: int) -> Sum | None:
        """The sum that a register is in a loop whose rounds add constants to it; None for another register, or where its start differs."""
        around = self._loops.around(at)
        for number, loop in enumerate(around):
            steps = {write[3]: self._step(name, write) for write in writes if write[3] in loop}
            if not steps or None in steps.values():
                continue
            starts = [write for write in writes if write[3] not in steps and self._loops.may_precede(write[3], loop)]
            sums = [self._written(name, write, depth) for write in starts]
            if not sums or any(each != sums[0] for each in sums):
                return None
            total = sums[0]
            for inner in around[number:]:
                for offset, step in steps.items():
                    if step and offset in inner:
                        total = total.plus(Sum({self._loops.rounds(inner, offset): step}))
            return total
        return None

    def _step(self, name: bytes, write: Write) -> int | None:
        """The constant that an instruction, and those before it, add to a register; None if they do not."""
        total = 0
        for _ in range(_DEEPEST):
            opcode, _, rest, _ = write
            source, *others = (operand.strip() for operand in rest.split(b","))
            added = [literals.integer(each) for each in others]
            if opcode.startswith((b"add.", b"sub.")) and len(added) == 1 and added[0] is not None:
                total += added[0] if opcode.startswith(b"add.") else -added[0]
            elif not opcode.startswith(b"mov.") or others:
                return None
            if source == name:
                return total
            writes = self._registers.writes(source)
            if len(writes) != 1:
                return None
            (write,) = writes
        return None

    def _written(self, name: bytes, write: Write, depth: int) -> Sum:
        """The sum that an instruction writes into a register."""
        opcode, _, rest, at = write
        operands = [operand.strip() for operand in rest.split(b",")]
        if any(not operand or operand.startswith(b"{") for operand in operands):
            return Sum({name: 1})
        first, *others = (self._operand(operand, at, depth + 1) for operand in operands)
        if _SAME.fullmatch(opcode):
            return first
        if opcode.startswith(b"neg.s"):
            return Sum({}).plus(first, -1)
        computed = _COMPUTED.fullmatch(opcode)
        found = _result(computed[1], [first, *others], int(computed[3]), signed=computed[2] != b"u") if computed and others else None
        return Sum({name: 1}) if found is None else found.in_rings()

    def _values(self, index: Term) -> int:
        """The number of values of an index that goes round in a ring from 0; 0 if it is not known."""
        if not isinstance(index, bytes):
            return index.values if isinstance(index, Remainder) and index.values <= _MOST_STAGES else 0
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
        return next(iter(ends)) if len(ends) == 1 and max(ends) <= _MOST_STAGES else 0

    def _end(self, chosen: list[bytes]) -> int:
        """The number at which a choice between the first number and the next begins again; 0 if it is another choice."""
        *choices, predicate = chosen
        writes = self._registers.writes(predicate)
        compared = _COMPARED.fullmatch(writes[0][0]) if len(writes) == 1 else None
        one, _, limit = (part.strip() for part in writes[0][2].partition(b",")) if compared else (b"", b"", b"")
        number = literals.integer(limit)
        if compared is None or number is None:
            return 0
        for place, again in enumerate(choices):
            reached = number + (compared[1] in ((b"gt", b"hi"), (b"le", b"ls"))[place])
            step = self._apart(choices[1 - place], one)
            if step in (0, 1) and (again == b"0" or self._apart(again, one) == -reached):
                return reached + step
        return 0

    def _apart(self, name: bytes, other: bytes) -> int | None:
        """The constant by which one register is larger than another; None where it is not known."""
        (first, number), (second, less) = self._added(name), self._added(other)
        return number - less if first == second else None

    def _added(self, name: bytes) -> tuple[bytes, int]:
        """A register and the constant that is added to it to compute another, or that one and 0."""
        writes = self._registers.writes(name)
        operands = [part.strip() for part in writes[0][2].split(b",")] if len(writes) == 1 and writes[0][0].startswith(b"add.") else []
        number = literals.integer(operands[1]) if len(operands) > 1 else None
        return (name, 0) if number is None else (operands[0], number)


def _is_named(name: bytes) -> bool:
    """Return whether a name is one that PTX's authors give, not one of a register that a compiler numbers."""
    return _NAMED.fullmatch(name) is not None


def _result(what: bytes, sums: Sequence[Sum], bits: int, *, signed: bool) -> Sum | None:
    """The sum that an operation gives; None where it is none.

    Args:
        what: the operation.
        sums: its operands.
        bits: the bits of each number.
        signed: whether the highest one is a sign.
    """
    first, second, *third = sums
    if what in (b"add", b"sub"):
        return first.plus(second, 1 if what == b"add" else -1)
    if second.terms and not first.terms and what.startswith((b"mul", b"mad", b"and", b"or", b"xor")):
        first, second = second, first
    number = second.constant
    if second.terms:
        return None
    if what.startswith((b"mul", b"mad")):
        # The text may give a reciprocal a sign that it does not have: the high half of the product differs.
        product = Sum({}).plus(first, number if signed or what.endswith(b"lo") else number % (1 << bits))
        product = product.divided(1 << bits) if what.endswith(b"hi") else product
        return product.plus(third[0]) if third else product
    if what in (b"shl", b"shr"):
        return None if not 0 <= number < 64 else Sum({}).plus(first, 1 << number) if what == b"shl" else first.divided(1 << number)
    if what in (b"div", b"rem"):
        return None if number <= 0 else first.divided(number) if what == b"div" else first.remainder(number)
    number = number - (1 << 32) if number >> 31 == 1 else number
    if any(isinstance(term, bytes) and _is_named(term) for term in first.terms):  # an address
        return first if what == b"and" and (number | (_CLEARED if number & _RANK else _CLEARED_WITH_RANK)) == -1 else None
    masked = first.masked(number)
    if masked is None or what == b"and":
        return masked
    return first.plus(Sum({}, number)).plus(masked, -2 if what == b"xor" else -1)
