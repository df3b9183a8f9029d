"""The part of a kernel that its threads reach while waits for mbarriers let none of them go on.

A branch that repeats a wait, or goes on after it, is found by the register in which the wait says whether the phase is complete.  Where a
branch depends on a wait in another way, the wait lets threads go on.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.conditions import Condition, Predicates, contradicts, joined
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.graphs import reachable, spread
from ptxmma.ptx.thread_masks import ALL_THREADS
from ptxmma.ptx.writes import Write, predicate_before, written_in

if TYPE_CHECKING:
    from ptxmma.check.kernels import Kernel, Way

_COMPARED = re.compile(rb"setp\.(eq|ne)\.[bsu](?:16|32|64)")
#: Registers whose numbers are followed, and numbers of one register: with more, they are not known.
_MOST_REGISTERS, _MOST_NUMBERS = 400, 4
#: Instructions between a wait and a branch; beyond, the branch does not depend on it.
_DEEPEST = 8
#: Instructions that carry what a wait says from one register to another.
_CARRYING = (b"mov.", b"cvt.", b"not.pred", b"and.pred", b"or.pred", b"selp.", b"setp.")
#: Instructions whose results are not computed from their operands alone.
_READING = (b"mbarrier.", b"ld.", b"atom.", b"shfl.", b"elect.", b"tcgen05.")
#: Values of a thread block that divide blocks into kinds: each doubles the ways that are followed.
_MOST_SPLIT = 2
_EITHER, _NONE = frozenset([0, 1]), frozenset[int]()
#: Numbers that a register may have; None where they are not known.
Numbers = frozenset[int] | None


class Wait(NamedTuple):
    """A wait for a phase.

    Attributes:
        offset: the place of its opcode.
        complete: the register that says whether the phase is complete.
        block: the number of its block.
        predicated: whether it has a predicate.
    """

    offset: int
    complete: bytes
    block: int
    predicated: bool


def kinds_of_blocks(kernel: Kernel, *, many_rounds: bool) -> list[frozenset[Condition]]:
    """The conditions that hold in each kind of thread block of a launch, on values that several branches compare with constants.

    Args:
        kernel: the kernel.
        many_rounds: whether those that are the same in all blocks are larger than the constants.  Such a number says how many rounds there
            are.  Without any, threads pass waits in which they are held with some.
    """
    branches: dict[bytes, list[Condition]] = {}
    for each in (kernel.registers.condition(way.predicate, way.offset) for ways in kernel.ways for way in ways if way.predicate):
        if each.uniform:
            branches.setdefault(each.value.text, []).append(each)
    several = [each for each in branches.values() if len({one.offset for one in each}) > 1]
    compared = sorted(several, key=lambda each: (any(one.test not in (b"eq", b"ne") for one in each), len(each)), reverse=True)
    kinds = [frozenset[Condition]()]
    for conditions in (each for each in compared if each[0].of_launch and many_rounds):
        larger = max(each.number for each in conditions) + 1
        for each in conditions:
            both = joined(kinds[0], each) if each.holds_for(larger) else None
            kinds = [both.conditions] if both is not None and both.certain else kinds
    for conditions in itertools.islice((each for each in compared if not each[0].of_launch), _MOST_SPLIT):
        numbers = sorted({each.number + step for each in conditions for step in (-1, 0, 1)})
        outcomes = {frozenset(each for each in conditions if each.holds_for(number)) for number in numbers}
        kinds = [kind | outcome for kind in kinds for outcome in outcomes]
    return kinds


class _Taken(NamedTuple):
    """A way out of a block.

    Attributes:
        after: the next block.
        condition: the condition under which it is taken; None: always.
        name, holds: the register that decides, and its value; empty: none.
        threads: a mask of the threads that take it.
        one: true if one thread of a warp at most takes it.
    """

    after: int
    condition: Condition | None
    name: bytes
    holds: bool
    threads: int
    one: bool


class Followed:
    """The waits of a kernel and the registers that are followed: the same for each kind of thread block.

    Args:
        kernel: the kernel.
        waits: its waits, by their places.
        names: registers whose numbers are asked for.

    Attributes:
        kernel, waits: as given.
        last: the last wait of each block.
        outcomes: for each such block, the values of registers at its end that say that the phase is complete.
        ways: the ways out of each block.
        writers: the instructions that write each register, of those that are followed.
    """

    def __init__(self, kernel: Kernel, waits: Mapping[int, Wait], names: Iterable[bytes]) -> None:
        self.kernel, self.waits, self._registers = kernel, waits, kernel.registers
        self.last = {wait.block: wait for wait in sorted(waits.values())}
        self.outcomes = {number: outcomes for number in self.last if (outcomes := self._outcomes_of(number))}
        predicates = {predicate.lstrip(b"!") for each in kernel.ways for _, predicate, _ in each if predicate}
        telling: dict[bytes, bool] = {}
        for name in predicates:
            self._is_told(name, telling, 0)
        told = (name for name, tells in telling.items() if tells)
        self.writers: dict[bytes, list[_Site]] = {}
        for site in self._sites_of({*_computed_from(self._registers, names), *told}):
            self.writers.setdefault(site.name, []).append(site)
        self.ways = [[self._taken(way) for way in each if way.after >= 0] for each in kernel.ways]
        self.coming, self.earlier = functools.cache(self._coming), functools.cache(self._earlier)

    @functools.cached_property
    def sites(self) -> dict[int, list[_Site]]:
        """The instructions that write the registers, by their blocks."""
        sites: dict[int, list[_Site]] = {}
        for site in itertools.chain.from_iterable(self.writers.values()):
            sites.setdefault(site.block, []).append(site)
        return sites

    def _sites_of(self, names: Iterable[bytes]) -> Iterator[_Site]:
        """The instructions that write registers, of those that no instruction writes with others."""
        for name in itertools.islice(sorted(names), _MOST_REGISTERS):
            writes = self._registers.values_written(name)
            if all(_is_alone(self.kernel.text, name, write) for write in writes):
                for opcode, _, rest, offset in writes:
                    sure = not predicate_before(self.kernel.text, offset)
                    yield _Site(offset, self.kernel.block_of(offset), name, opcode, tuple(map(bytes.strip, rest.split(b","))), sure)

    def _taken(self, way: Way) -> _Taken:
        after, predicate, offset = way
        registers, name = self._registers, predicate.lstrip(b"!")
        condition = registers.condition(predicate, offset) if predicate else None
        return _Taken(
            after, condition, name, name == predicate, registers.threads(predicate), bool(name) and registers.is_elected(predicate)
        )

    def _outcomes_of(self, number: int) -> dict[bytes, bool]:
        """The values of registers at the end of a block that say that the wait which comes last in it has found its phase complete."""
        wait, branch = self.last[number], self.kernel.blocks[number].branch
        if branch is None or wait.predicated:
            return {}
        known = {wait.complete: True}
        for opcode, target, operands in written_in(self.kernel.text, self.kernel.text.find(b";", wait.offset), branch.begin):
            outcome = _carried(opcode, operands, known)
            for register in words_of(target):
                known.pop(register, None)
            if outcome is not None:
                known[target] = outcome
        return known

    def _is_told(self, name: bytes, telling: dict[bytes, bool], depth: int) -> bool:
        """Return whether a register is computed from what a wait says, by few instructions; the answers are remembered."""
        if name not in telling and depth <= _DEEPEST:
            telling[name] = False  # for a value that is computed from itself
            for opcode, _, operands, _ in self._registers.writes(name):
                words = words_of(operands) if opcode.startswith(_CARRYING) else []
                told = [self._is_told(word, telling, depth + 1) for word in words]
                telling[name] = telling[name] or True in told or opcode.startswith(b"mbarrier.")
        return telling.get(name, False)

    def _coming(self, operand: bytes, block: int, at: int) -> list[_Site]:
        """The instructions that write a register last on some way to a place in a block."""
        coming, waiting, seen = list[_Site](), [(block, at)], set[int]()
        while waiting:
            block, at = waiting.pop()
            same = [each for each in self.writers[operand] if each.block == block and each.offset < at]
            last = max((each.offset for each in same if each.sure), default=-1)
            coming += [each for each in same if each.offset >= last]
            fresh = {*self.kernel.graph.leading[block]} - seen if last < 0 else _NONE
            seen |= fresh
            waiting += [(number, sys.maxsize) for number in fresh]
        return coming

    def _earlier(self, operand: bytes, site: _Site) -> list[_Site] | None:
        """The same for what an instruction reads, without those that come after it in its block; None where none does."""
        later = [each for each in self.writers.get(operand, ()) if each.block == site.block and each.offset >= site.offset]
        return [each for each in self.coming(operand, site.block, site.offset) if each not in later] if later else None


class Progress:
    """The blocks that threads reach; waits are opened one after the other.

    Args:
        followed: the waits and the registers of the kernel.
        conditions: conditions that hold for all threads: other ways are left out.

    Attributes:
        open: the places of the waits that let threads go on.
    """

    def __init__(self, followed: Followed, conditions: frozenset[Condition]) -> None:
        self._followed = followed
        self._numbers = _Numbers(followed, self.returns_to)
        # Masks of the threads that reach each block, and of the threads of which one in each warp does.
        self._reached: dict[tuple[int, bool], int] = {(0, False): ALL_THREADS}
        self._blocks = {0}
        self.open: set[int] = set()
        self._ways = [[way for way in each if not (way.condition and contradicts(conditions, way.condition))] for each in followed.ways]
        # The blocks to which threads go on from each, and whether they return to it, until waits open.
        self._goes: dict[int, list[int]] = {}
        self._returns: dict[int, bool] = {}
        self._stopped = {(0, False)}  # blocks at whose ends threads wait
        self.let([])

    def let(self, waits: Iterable[int]) -> None:
        """Open some waits, and go on as far as the others let threads."""
        self.open.update(waits)
        while self._go() | self._numbers.compute(self._blocks, self.open):
            self._goes.clear()
            self._returns.clear()

    def threads(self, number: int) -> int:
        """A mask of the threads that reach a block."""
        return self._reached.get((number, False), 0) | self._reached.get((number, True), 0)

    def is_reached(self, number: int) -> bool:
        """Return whether a thread reaches a block."""
        return number in self._blocks

    def returns_to(self, number: int) -> bool:
        """Return whether threads that leave a block may come back to it, as far as the waits let them."""
        if number not in self._returns:
            around = self._followed.kernel.graph.connected[number]
            self._returns[number] = number in reachable(self._going_on(number), lambda each: self._going_on(each) if each in around else ())
        return self._returns[number]

    def holds(self, number: int) -> bool:
        """Return whether threads that wait at the end of a block go round there, and do nothing else when they find that they must wait."""
        going_on = reachable([number], self._going_on)
        return self._followed.kernel.graph.connected[number].issuperset(going_on)

    def _going_on(self, number: int) -> list[int]:
        """The blocks to which threads go on from one, as far as the waits let them."""
        if number not in self._goes:
            self._goes[number] = [way.after for way in self._ways[number] if not self._is_shut(number, way)]
        return self._goes[number]

    def numbers(self, operand: bytes, at: int) -> Numbers:
        """The numbers that an operand of an instruction at a place may have had so far; None where they are not known."""
        return self._numbers.before(operand, self._followed.kernel.block_of(at), at)

    def _is_shut(self, number: int, way: _Taken) -> bool:
        """Return whether no thread takes a way out of a block while some waits are shut."""
        if not way.name:
            return False
        if self._followed.outcomes.get(number, {}).get(way.name) == way.holds and self._followed.last[number].offset not in self.open:
            return True
        numbers = self._numbers.of(way.name)
        return numbers is not None and way.holds not in numbers

    def _go(self) -> bool:
        """Go on from the blocks at whose ends threads wait, and return whether threads reach further blocks."""
        before, begins, self._stopped = dict(self._reached), self._stopped, set()

        def leaving(node: tuple[int, bool]) -> Iterator[tuple[tuple[int, bool], int]]:
            number, elected = node
            for way in self._ways[number]:
                if self._is_shut(number, way):
                    self._stopped.add(node)
                else:
                    yield (way.after, elected or way.one), way.threads

        if spread(self._reached, leaving, begins) == before:
            return False
        self._blocks = {number for (number, _), threads in self._reached.items() if threads}
        return True


def _carried(opcode: bytes, operands: bytes, known: Mapping[bytes, bool]) -> bool | None:
    """The value of the register that an instruction writes which says that a phase is complete, by the values of its operands."""
    words = [word.strip() for word in operands.split(b",")]
    if opcode in (b"and.pred", b"or.pred"):
        return next((value for word in words if (value := known.get(word)) is opcode.startswith(b"and")), None)
    if opcode.startswith(b"selp.") and len(words) == 3 and {*words[:2]} == {b"0", b"1"}:
        first, value = words[0] == b"1", known.get(words[2])
    elif opcode.startswith((b"mov.", b"cvt.", b"not.pred")) and len(words) == 1:
        first, value = not opcode.startswith(b"not"), known.get(words[0])
    elif (compared := _COMPARED.fullmatch(opcode)) is not None and len(words) == 2 and words[1] in (b"0", b"1"):
        first, value = (compared[1] == b"eq") == (words[1] == b"1"), known.get(words[0])
    else:
        return None
    return None if value is None else value == first


class _Site(NamedTuple):
    """An instruction that writes a register.

    Attributes:
        offset: the place of its opcode.
        block: the number of its block.
        name: the register.
        opcode: the opcode.
        operands: its operands, but for the register.
        sure: whether it has no predicate.
    """

    offset: int
    block: int
    name: bytes
    opcode: bytes
    operands: tuple[bytes, ...]
    sure: bool


class _Numbers:
    """Numbers that registers may have had, of what the reached part of a kernel computes.

    Args:
        followed: the instructions that write them; what a wait writes is 1 only after it is open.
        returns_to: whether threads may come back to a block that they leave.
    """

    def __init__(self, followed: Followed, returns_to: Callable[[int], bool]) -> None:
        self._followed, self._returns_to = followed, returns_to
        self._sites = {**followed.sites}  # the instructions that are not reached yet, by their blocks
        self._readers: dict[bytes, list[_Site]] = {}  # the reached instructions that read a register
        self._shut: list[_Site] = []  # the reached waits that are shut
        self._written: dict[bytes, dict[_Site, frozenset[int]]] = {name: {} for name in followed.writers}  # by reached instructions
        self._known: dict[bytes, Numbers] = dict.fromkeys(followed.writers, _NONE)
        self._early: set[_Site] = set()  # instructions that read a register before the block writes it, which no loop repeats yet

    def compute(self, reached: Set[int], opened: Container[int]) -> bool:
        """Compute what the instructions of the reached blocks do, and return whether a register has further numbers."""
        waiting = {site for block in self._sites.keys() & reached for site in self._sites.pop(block)}
        for site in waiting:
            for name in {*site.operands}:
                self._readers.setdefault(name, []).append(site)
        waiting |= {site for site in self._shut if site.offset in opened}
        self._shut = [site for site in (*self._shut, *waiting) if site.offset in self._followed.waits and site.offset not in opened]
        repeated = {site for site in self._early if self._returns_to(site.block)}
        self._early -= repeated
        waiting |= repeated
        changed = False
        ordered = sorted(waiting)  # by their places, so that most are computed after what they read
        while ordered:
            site = heapq.heappop(ordered)
            waiting.discard(site)
            written, known = self._written[site.name], self._known[site.name]
            if known is None:
                continue
            after = self._joined(written.get(site, frozenset()), site, opened)
            if after is None or len(known | after) > _MOST_NUMBERS:
                self._known[site.name] = None
            elif after != written.get(site):
                written[site] = after
                self._known[site.name] = known | after
            else:
                continue
            for reader in self._readers.get(site.name, ()):
                if reader not in waiting:
                    waiting.add(reader)
                    heapq.heappush(ordered, reader)
            changed = True
        return changed

    def of(self, operand: bytes) -> Numbers:
        """The numbers of an operand; None where they are not known."""
        if operand in self._known:
            return self._known[operand]
        number = literals.integer(operand)
        return None if number is None else frozenset([number])

    def before(self, operand: bytes, block: int, at: int) -> Numbers:
        """The numbers of an operand that an instruction at a place in a block may read."""
        numbers, written = self.of(operand), self._written.get(operand, {})
        if numbers is None or len(self._followed.writers.get(operand, ())) < 2:
            return numbers
        return _NONE.union(*(written.get(each, _NONE) for each in self._followed.coming(operand, block, at)))

    def _read(self, operand: bytes, site: _Site) -> Numbers:
        """The numbers of an operand that an instruction reads: not what comes after it in its block, unless a loop repeats that."""
        numbers, earlier = self.before(operand, site.block, site.offset), self._followed.earlier(operand, site)
        if numbers is None or earlier is None or self._returns_to(site.block):
            return numbers
        self._early.add(site)
        return _NONE.union(*(self._written[operand].get(each, _NONE) for each in earlier))

    def _joined(self, before: frozenset[int], site: _Site, opened: Container[int]) -> Numbers:
        """The numbers that an instruction has written before, and those that it writes."""
        if site.opcode.startswith(b"mbarrier."):
            return before | _EITHER if site.offset not in self._followed.waits or site.offset in opened else before | {0}
        operands = [self._read(word, site) for word in site.operands]
        if site.opcode.startswith(b"setp.") and any(each is None for each in operands):
            return before | _EITHER
        if site.opcode.endswith(b".pred"):
            operands = [_EITHER if each is None else each for each in operands]
        elif site.opcode.startswith(b"selp."):
            operands[2:] = [_EITHER if each is None else each for each in operands[2:]]
        numbers = {*before}
        for chosen in itertools.product(*(each if each is not None else (None,) for each in operands)):
            result = _result(site.opcode, chosen)
            if result is None:
                return None
            numbers.add(result)
        return frozenset(numbers)


@functools.lru_cache(maxsize=1 << 12)
def _result(opcode: bytes, numbers: tuple[int | None, ...]) -> int | None:
    """The number that an instruction computes; None where it is not known."""
    result = None if None in numbers else thread_values.result(opcode, [[number] for number in numbers if number is not None])
    return None if result is None else result[0]


def _computed_from(registers: Predicates, names: Iterable[bytes]) -> Iterator[bytes]:
    """Registers, and those from which they are computed, at any remove; what a wait or another read of memory gives is not computed."""

    def following(name: bytes) -> Iterator[bytes]:
        writes = registers.values_written(name)
        return (word for opcode, _, operands, _ in writes if not opcode.startswith(_READING) for word in words_of(operands))

    return filter(registers.values_written, reachable(names, following))


def _is_alone(text: bytes, name: bytes, write: Write) -> bool:
    """Return whether an instruction of a text writes a register, and no other."""
    place = write[3] + len(write[0])
    return text[place : text.find(b",", place)].strip() == name
