"""Numbers that registers have in the lanes of a warp, up to what is not known.

An address in shared memory is often a sum: of a part that ``%tid.x`` and constants give, and of unknown multiples of a number, such as
the start of a stage.  The order of the instructions and the branches do not count: a register that several instructions write has what
they agree on.  Lanes of a warp are taken to go round a loop equally often.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.variables import Variable
from ptxmma.ptx.writes import Writes

WARP = 32
#: The threads whose numbers are computed: a pattern of addresses repeats in the warps of a warpgroup, if anywhere.
_THREADS = 4 * WARP
_OPERATION = re.compile(
    rb"(?P<what>mov|cvta|cvt|shl|shr|and|or|xor|add|sub|mul\.(?:lo|wide)|mad\.(?:lo|wide)|selp|bfi|bfe)(?:\.to)?(?:\.shared(?:::cta)?)?"
    rb"\.[bus](?P<width>32|64)(?:\.[bus](?P<of>32|64))?"
)
#: Special registers that are the same in all threads of a warp.
_SHARED = re.compile(rb"%(?:n?ctaid|ntid|n?clusterid|cluster_n?cta(?:id|rank)|nwarpid|n?smid|gridid|warpid|\w*_smem_size)\b")
#: Results that differ between lanes even if no operand does.  Lanes that load from one address get one value.
_DIFFERING = re.compile(
    rb"(?:ld\.(?:local|volatile|relaxed|acquire|mmio)|ldu|ldmatrix|atom|tex|suld|call|tcgen05|elect|match|shfl(?!\.sync\.idx)|mbarrier)\b"
)
_LOADS, _SHUFFLES = b"ld.", b"shfl.sync.idx"
_BASE = re.compile(rb"\[\s*(%[\w$]+)\s*(?:\+\s*-?\w+\s*)?\]")
#: Rounds in which the registers of loops settle: after more, nothing is known.
_MOST_ROUNDS = 40
_MOST_REGISTERS = 4000
_WORD = (1 << 64) - 1


class LaneValue(NamedTuple):
    """The numbers of a register in the threads of some warps.

    Attributes:
        numbers: the number of each thread, without what is unknown.
        even: a power of two: unknown multiples of it come to the numbers, the same in all lanes of a warp; 0: none.
        uneven: the same of multiples that differ between the lanes.
    """

    numbers: tuple[int, ...]
    even: int = 0
    uneven: int = 0

    @property
    def exact(self) -> bool:
        """True if nothing is unknown."""
        return not (self.even or self.uneven)

    @property
    def least(self) -> int:
        """The smallest power of two of which there are unknown multiples; 0: none."""
        return _least(self.even, self.uneven)

    @property
    def is_shared(self) -> bool:
        """True if the lanes of each warp have the same number."""
        return not self.uneven and _alike(self.numbers)

    def within(self, width: int) -> LaneValue:
        """The lowest bits."""
        mask = (1 << width) - 1
        return LaneValue(tuple([number & mask for number in self.numbers]), self.even & mask, self.uneven & mask)


def _least(*powers: int) -> int:
    return min((power for power in powers if power), default=0)


def _alike(numbers: Sequence[int]) -> bool:
    return all(len({*numbers[first : first + WARP]}) == 1 for first in range(0, len(numbers), WARP))


def _power(numbers: Iterable[int]) -> int:
    """The largest power of two that divides some numbers; 0 if all are 0."""
    bits = functools.reduce(int.__or__, numbers, 0)
    return bits & -bits


class LaneValues:
    """The numbers of the registers of a function in the lanes of some warps.

    Registers of one name in several scopes count as one.  Threads of a block are numbered by ``%tid.x``.

    Args:
        text: the function's text.
        registers: the function's registers.
        variable_of: the variable that a name means, or None.
    """

    def __init__(self, text: bytes, registers: Writes, variable_of: Callable[[bytes], Variable | None]) -> None:
        self._registers, self._variable_of = registers, variable_of
        self._count = min(_THREADS, -(-thread_values.threads_of(text) // WARP) * WARP)
        self._writes: dict[bytes, list[tuple[bytes, list[bytes]]]] = {}
        self._values: dict[bytes, LaneValue] = {}

    def of(self, name: bytes) -> LaneValue:
        """The numbers of a register."""
        if name not in self._values:
            self._settle(self._sources(name))
        return self._values[name]

    def _writes_of(self, name: bytes) -> list[tuple[bytes, list[bytes]]]:
        """The instructions that write a register, each with the operands that it reads; without its opcode where it writes others, too."""
        found = self._writes.get(name)
        if found is None:
            found = self._writes[name] = [
                (
                    b"" if not write[0].startswith(_LOADS) and (write[1] or self._registers.is_of_list(write)) else write[0],
                    [_BASE.sub(rb"\1", word.strip()) for word in write[2].split(b",")],
                )
                for write in self._registers.writes(name)
            ]
        return found

    def _sources(self, name: bytes) -> list[bytes]:
        """The registers and constants from which a register is computed, itself last."""
        found, waiting = {name: None}, [name]
        while waiting and len(found) < _MOST_REGISTERS:
            for _, operands in self._writes_of(waiting.pop()):
                fresh = [word for word in operands if word not in found and word not in self._values]
                found.update(dict.fromkeys(fresh))
                waiting += fresh
        return [*found][::-1]

    def _settle(self, names: list[bytes]) -> None:
        """Compute some registers, round after round until none changes: so the registers of loops settle."""
        for name in names:
            if not self._writes_of(name):
                self._values[name] = self._leaf(name)
        written = [name for name in names if self._writes_of(name)]
        readers: dict[bytes, set[bytes]] = {name: set() for name in written}
        for name in written:
            for word in {word for _, operands in self._writes_of(name) for word in operands if word in readers}:
                readers[word].add(name)
        stale = {*written}  # the registers of which an operand has changed
        for _ in range(_MOST_ROUNDS if len(names) < _MOST_REGISTERS else 0):
            if not stale:
                break
            for name in written:
                if name in stale:
                    stale.discard(name)
                    made = self._written(name)
                    if made is not None and made != self._values.get(name):
                        self._values[name] = made
                        stale |= readers[name]
        else:
            written = [*dict.fromkeys((*written, *names))]
            self._values.update(dict.fromkeys(written, self._unknown(shared=False)))
        for name in names:
            self._values.setdefault(name, self._unknown(shared=False))  # it is computed from itself alone

    def _leaf(self, word: bytes) -> LaneValue:
        """The numbers of a constant, a special register, a variable or a parameter."""
        number = literals.integer(word)
        if number is not None:
            return LaneValue((number & _WORD,) * self._count)
        if word in (b"%tid.x", b"%laneid"):
            return LaneValue(tuple([each if word == b"%tid.x" else each % WARP for each in range(self._count)]))
        if word.startswith(b"["):
            return self._unknown(shared=not any(name.startswith(b"%") for name in words_of(word)))
        if word.startswith(b"%"):
            return self._unknown(shared=_SHARED.match(word) is not None)
        variable = self._variable_of(word)
        if variable is not None:
            return LaneValue((0,) * self._count, _power([variable.alignment]))
        return self._unknown(shared=False)

    def _unknown(self, *, shared: bool) -> LaneValue:
        zeros = (0,) * self._count
        return LaneValue(zeros, even=1) if shared else LaneValue(zeros, uneven=1)

    def _written(self, name: bytes) -> LaneValue | None:
        """The value on which the instructions that write a register agree; None if no operand is known yet."""
        made: LaneValue | None = None
        for opcode, words in self._writes_of(name):
            operands = [self._values.get(word) for word in words]
            known = [each for each in operands if each is not None]
            if len(known) == len(operands):
                value = self._result(opcode, known)
                made = value if made is None else _joined(made, value)
        return made

    def _result(self, opcode: bytes, operands: list[LaneValue]) -> LaneValue:
        """The numbers that an instruction computes."""
        if all(each.exact for each in operands):
            numbers = thread_values.result(opcode, [each.numbers for each in operands])
            if numbers is not None:
                return LaneValue(tuple(numbers))
        made = _computed(opcode, operands)
        if made is not None:
            return made
        if opcode.startswith(_SHUFFLES) and len(operands) > 2 and {*operands[2].numbers} == {WARP - 1}:
            operands = operands[1:]  # all lanes take the value of one
        return self._unknown(shared=bool(opcode) and _DIFFERING.match(opcode) is None and all(each.is_shared for each in operands))


def _computed(opcode: bytes, operands: list[LaneValue]) -> LaneValue | None:
    """The numbers that an instruction computes of numbers that are not all exact; None where that is not followed."""
    match = _OPERATION.fullmatch(opcode)
    if match is None:
        return None
    what, _, wide = match["what"].partition(b".")
    count, make = _MADE[what]
    if len(operands) != count:
        return None
    width = int(match["width"])
    read = [each.within(int(match["of"] or width)) for each in operands]
    made = make(*read)
    return None if made is None else made.within(2 * width if wide == b"wide" else width)


def _added(one: LaneValue, other: LaneValue, sign: int = 1) -> LaneValue:
    numbers = tuple([left + sign * right for left, right in zip(one.numbers, other.numbers, strict=True)])
    return LaneValue(numbers, _least(one.even, other.even), _least(one.uneven, other.uneven))


def _multiplied(one: LaneValue, other: LaneValue) -> LaneValue | None:
    if not other.exact:
        one, other = other, one
    if not (other.exact and _alike(other.numbers)):
        return None
    numbers = tuple([left * right for left, right in zip(one.numbers, other.numbers, strict=True)])
    power = _power(other.numbers)
    return LaneValue(numbers, one.even * power, one.uneven * power)


def _multiplied_and_added(one: LaneValue, other: LaneValue, more: LaneValue) -> LaneValue | None:
    product = _multiplied(one, other)
    return None if product is None else _added(product, more)


def _shifted(one: LaneValue, places: LaneValue) -> LaneValue | None:
    count = places.numbers[0]
    if not places.exact or len({*places.numbers}) > 1 or count >= 64:
        return None
    return LaneValue(tuple([number << count for number in one.numbers]), one.even << count, one.uneven << count)


def _shifted_right(one: LaneValue, places: LaneValue) -> LaneValue | None:
    """The numbers shifted, if no bit that is lost is unknown; a sum with what is unknown may wrap round in some lanes only."""
    count, known = places.numbers[0], one.least
    if not places.exact or len({*places.numbers}) > 1 or count >= 64 or (known and not known >> count):
        return None
    left = known >> count
    return LaneValue(tuple([number >> count for number in one.numbers]), *((left, 0) if one.is_shared else (0, left)))


def _bits(operation: Callable[[int, int], int], one: LaneValue, other: LaneValue) -> LaneValue:
    """The numbers of an operation on each bit."""
    if not other.exact:
        one, other = other, one
    known = _least(one.least, other.least)  # bits below it are known
    numbers = tuple([operation(left, right) for left, right in zip(one.numbers, other.numbers, strict=True)])
    if not known or (other.exact and max(other.numbers) < known and operation is operator.and_):
        return LaneValue(numbers)
    if other.exact and (max(other.numbers) < known or (operation is operator.and_ and _clears(other.numbers, known))):
        return one._replace(numbers=numbers)  # the unknown bits stay
    if operation is operator.and_ and other.exact:
        known = max(known, _power(other.numbers))
    above = [number // known for each in (one, other) for number in each.numbers]
    even = not (one.uneven or other.uneven) and _alike(above)
    numbers = tuple([number % known for number in numbers])
    return LaneValue(numbers, known if even else 0, 0 if even else known)


def _clears(masks: Sequence[int], below: int) -> bool:
    """Return whether a mask of 32 or 64 bits, the same in all threads, clears only bits below a power of two."""
    lowest = _power(masks)
    return len({*masks}) == 1 and lowest <= below and masks[0] + lowest in (1 << 32, 1 << 64)


def _field(one: LaneValue, first: LaneValue, length: LaneValue) -> LaneValue | None:
    """The bits of a field."""
    shifted = _shifted_right(one, first)
    if shifted is None or not length.exact:
        return None
    return _bits(operator.and_, shifted, length._replace(numbers=tuple([(1 << min(count, 64)) - 1 for count in length.numbers])))


def _inserted(field: LaneValue, base: LaneValue, first: LaneValue, length: LaneValue) -> LaneValue | None:
    """The numbers with a field in place of some bits."""
    if not (first.exact and length.exact):
        return None
    masks = [(1 << min(count, 64)) - 1 for count in length.numbers]
    cleared = tuple([_WORD & ~(mask << place) for mask, place in zip(masks, first.numbers, strict=True)])
    placed = _shifted(_bits(operator.and_, field, length._replace(numbers=tuple(masks))), first)
    return None if placed is None else _added(_bits(operator.and_, base, first._replace(numbers=cleared)), placed)


def _chosen(one: LaneValue, other: LaneValue, which: LaneValue) -> LaneValue:
    """The numbers of one or the other value, as a predicate says."""
    if not which.exact:
        return _joined(one, other, shared=which.is_shared)
    numbers = tuple([left if choice else right for left, right, choice in zip(one.numbers, other.numbers, which.numbers, strict=True)])
    if _alike(which.numbers):
        return LaneValue(numbers, _least(one.even, other.even), _least(one.uneven, other.uneven))
    return LaneValue(numbers, 0, _least(one.least, other.least))


def _joined(one: LaneValue, other: LaneValue, *, shared: bool = True) -> LaneValue:
    """The value on which two agree; ``shared``: the lanes of a warp have the same one of the two."""
    apart = [left - right for left, right in zip(one.numbers, other.numbers, strict=True)]
    if shared and _alike(apart):
        return LaneValue(one.numbers, _least(one.even, other.even, _power(apart)), _least(one.uneven, other.uneven))
    return LaneValue(one.numbers, 0, _least(one.least, other.least, _power(apart)))


#: The operands of each operation, and its result as a function of them; None where it is not followed.
_MADE: dict[bytes, tuple[int, Callable[..., LaneValue | None]]] = {
    b"mov": (1, lambda one: one),
    b"cvt": (1, lambda one: one),
    b"cvta": (1, lambda one: one),
    b"add": (2, _added),
    b"sub": (2, functools.partial(_added, sign=-1)),
    b"mul": (2, _multiplied),
    b"mad": (3, _multiplied_and_added),
    b"shl": (2, _shifted),
    b"shr": (2, _shifted_right),
    b"and": (2, functools.partial(_bits, operator.and_)),
    b"or": (2, functools.partial(_bits, operator.or_)),
    b"xor": (2, functools.partial(_bits, operator.xor)),
    b"selp": (3, _chosen),
    b"bfe": (3, _field),
    b"bfi": (4, _inserted),
}
