"""Stages of shared memory that are filled again although nothing says that they are free."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING

from ptxmma.check import rule_examples as examples
from ptxmma.check.kernels import threads_at
from ptxmma.check.mbarriers import are_alike
from ptxmma.check.rule import Rule
from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.sums import Quotient, Remainder, Rounds, Sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel, Reached
    from ptxmma.check.mbarriers import Mbarriers, Used
    from ptxmma.ptx.addresses import Place
    from ptxmma.ptx.conditions import Predicates
    from ptxmma.ptx.sums import Term
    from ptxmma.ptx.writes import Write

RULES: Mapping[str, Rule] = {
    "refilled-stage": Rule(
        "A copy fills a stage of shared memory again after a wait for its readers.",
        "A wait for the bytes of a copy says nothing of the threads that read them: the next copy may overwrite what they have not read. "
        "Judged are loops without any other wait or barrier, of which a round fills the stage of a round before; no barrier says "
        "that tcgen05.mma and tcgen05.cp have read, which they do asynchronously. Results in tensor memory are judged in the same way. "
        "Threads that arrive on the mbarrier for which such a loop waits are judged, too: no wgmma.wait_group covers their products, or no "
        "cp.async.bulk.wait_group a copy out of the stage, or their tcgen05.commit comes before the products.",
        "Wait for an mbarrier on which the readers arrive, or let a barrier of the thread block follow the reads. Write "
        "wgmma.wait_group or cp.async.bulk.wait_group before the arrival; in a kernel with tcgen05, let tcgen05.commit arrive, after the "
        "products.",
        examples.refills(""),
        examples.refills("bar.sync 0;"),
    ),
}

#: The first address of an instruction.
_ADDRESS = re.compile(rb"\[[^\[\]]*\]")
#: Parts of opcodes that count bytes and copy nothing from global memory, of which the first one arrives for a copy.
_EXPECTED = b"expect_tx"
_OF_MBARRIERS = b"mbarrier."
#: Waits that tell other threads nothing.
_TELLS_NOBODY = (b"cp.async.bulk.wait_group", b"griddepcontrol")
_NO_COPIES = (_EXPECTED, b".shared::cluster.shared::cta")
#: Results that are held at a time: a loop with more rounds writes one of them again.
_MOST_RESULTS = 8


def refilled(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The copies that a loop repeats though no other thread can tell that their stage is free, each with what is wrong."""
    for copy in barriers.fills:
        if copy.place is None or any(word in copy.use.opcode for word in _NO_COPIES):
            continue
        for turn in barriers.rounds:
            if copy.block not in turn or _is_ordered(barriers, copy.place, turn):
                continue
            if _is_its_own(barriers, copy, turn) and comes_again(barriers, copy, turn):
                waits = any(each.block in turn for each in barriers.waits)
                cause = "a round waits for no more than bytes of copies" if waits else "a round waits for nothing"
                yield copy, f"{cause}; wait for an mbarrier on which the readers arrive"
                break


def overwritten(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The waits for results that a loop writes again though no reader can tell that it has read them, each with what is wrong.

    Results are complete when an mbarrier says so that frees no stage.  Readers and writers are threads of their own.
    """
    writing, reading = (barriers.reached(words) for words in (barriers.pairing.tracked, barriers.pairing.reads))
    writers, readers = (functools.reduce(int.__or__, [each.threads for each in named], 0) for named in (writing, reading))
    if not readers or readers & writers:
        return
    told = [each for each in barriers.arrivals if threads_at(barriers.kernel.executed, each.use.offset) & readers]
    if any(barriers.waits_on(each.place) for each in told):
        return
    for commit in barriers.arrivals:
        turn = barriers.round_of(commit)
        if commit.place is None or not turn or barriers.ring_of(commit.use) is not None or not _writes_again(barriers, writing, turn):
            continue
        for wait in barriers.waits:
            reads = barriers.round_of(wait)
            alike = wait.place is not None and are_alike(wait.place, commit.place)
            if alike and any(barriers.kernel.block_of(each.offset) in reads for each in reading):
                telling = {each.name for each in barriers.orders if each.block in reads and not each.opcode.startswith(_TELLS_NOBODY)}
                # A thread that observes each round, and lets the writer go on, does so in a loop.
                others = [each for each in barriers.orders if each.threads & ~readers and each.block not in reads]
                hearing = {each.name for each in others if any(each.block in loop for loop in barriers.rounds)}
                if telling.isdisjoint(hearing):
                    yield wait, "nothing that these threads execute lets it know; arrive on an mbarrier for which it waits"


def _writes_again(barriers: Mbarriers, writing: Sequence[Reached], turn: frozenset[int]) -> bool:
    """Return whether a loop writes results, in any number of rounds, without a barrier that orders them."""
    return (
        any(barriers.kernel.block_of(each.offset) in turn for each in writing)
        and not any(each.block in turn for each in barriers.orders)
        and most_rounds(barriers, turn) > _MOST_RESULTS
    )


def _is_ordered(barriers: Mbarriers, place: Place, turn: frozenset[int]) -> bool:
    """Return whether a round of a loop has an instruction by which those who wait for an mbarrier may tell that they have read."""
    orders = [each for each in barriers.orders if each.block in turn]
    reading = [*map(barriers.round_of, barriers.waits_on(place))]
    if not barriers.tracking.isdisjoint(frozenset().union(*reading)):
        return any(each.opcode.startswith(_OF_MBARRIERS) for each in orders)
    # A barrier that no round of a reader executes is one of the threads that copy.
    shared = {each.name for each in barriers.orders if any(each.block in blocks or not blocks for blocks in reading)}
    return any(not each.name or each.name in shared for each in orders)


def _is_its_own(barriers: Mbarriers, copy: Used, turn: frozenset[int]) -> bool:
    """Return whether a loop waits for nothing, or for bytes that the thread that copies expects, while others read them.

    Others are several warps that wait for the bytes, or asynchronous instructions.
    """
    executed, thread = barriers.kernel.executed, threads_at(barriers.kernel.executed, copy.use.offset)
    waits = [each for each in barriers.waits if each.block in turn and threads_at(executed, each.use.offset) & thread]
    if not waits or not thread:
        return thread != 0
    others = [
        each
        for each in barriers.arrivals
        if _EXPECTED not in each.use.opcode or threads_at(barriers.kernel.executed, each.use.offset) != thread
    ]
    if thread.bit_count() != 1 or any(each.may_be_of(wait.place) for each in others for wait in waits):
        return False
    readers = functools.reduce(
        int.__or__, [threads_at(barriers.kernel.executed_together, each.use.offset) for each in barriers.waits_on(copy.place)], 0
    )
    return readers.bit_count() > thread_values.WARP or not barriers.tracking.isdisjoint(turn)


def comes_again(barriers: Mbarriers, copy: Used, turn: frozenset[int]) -> bool:
    """Return whether a loop repeats a copy to the same stage: always to one, or to the stages of a ring that it may go round."""
    text, registers = barriers.kernel.text, barriers.kernel.registers
    address = _ADDRESS.search(text, copy.use.offset)
    if address is None:
        return False
    total = barriers.kernel.addresses.of(address[0], copy.use.offset)
    moving = [term for term in total.terms if any(barriers.kernel.block_of(offset) in turn for offset in _changes(term, registers))]
    places = [*map(barriers.kernel.addresses.values, moving)]
    return all(places) and most_rounds(barriers, turn) > max(places, default=1)


def _changes(term: Term, registers: Predicates) -> Iterator[int]:
    """Places of instructions that change a term of an address, or of the loop that counts it."""
    if isinstance(term, bytes):
        if registers.condition(term, 0).value.changes:
            yield from (write[3] for name in registers.sources([term]) for write in registers.writes(name))
    elif isinstance(term, Rounds):
        yield term.loop
    else:
        for inner, _ in term.terms:
            yield from _changes(inner, registers)


def most_rounds(barriers: Mbarriers, turn: frozenset[int]) -> float:
    """The most rounds that a loop may have: infinitely many where no constant decides it."""
    ends = {way.predicate.lstrip(b"!") for number in turn for way in barriers.kernel.leaving(number, turn)}
    return min((most for each in ends for most in _rounds_until(barriers.kernel, each)), default=math.inf)


def _rounds_until(kernel: Kernel, predicate: bytes, seen: frozenset[bytes] = frozenset()) -> Iterator[float]:
    """The most rounds before each comparison comes true, of those from which the predicate that ends a loop is computed."""
    for opcode, _, operands, offset in kernel.registers.values_written(predicate) if predicate not in seen else ():
        words = [word.strip() for word in operands.split(b",")]
        if opcode.startswith(b"setp.") and len(words) > 1:
            apart = kernel.addresses.of(words[0], offset).plus(kernel.addresses.of(words[1], offset), -1)
            counted = [times for term, times in apart.terms.items() if isinstance(term, Rounds)]
            # A register that is one constant or another says whether there is a further round.
            flags = [term for term in apart.terms if isinstance(term, bytes) and not counted]
            writes = (write for flag in flags for write in kernel.registers.values_written(flag))
            chosen = [[word.strip() for word in write[2].split(b",")] for write in writes if write[0].startswith(b"selp.")]
            words = [flag for one, other, flag in chosen if None not in (literals.integer(one), literals.integer(other))]
            step = sum(counted) or 1
            others = Sum({term: times for term, times in apart.terms.items() if not isinstance(term, Rounds)}, apart.constant)
            if not words:
                yield _largest(kernel, Sum({}).plus(others, -1 if step > 0 else 1)) / abs(step) + 1
        elif not opcode.endswith(b".pred"):
            continue
        for word in words:
            yield from _rounds_until(kernel, word, seen | {predicate})


def _largest(kernel: Kernel, total: Sum, seen: frozenset[Term] = frozenset()) -> float:
    """The largest number that a sum may be; a register that is computed from itself adds nothing."""
    added = ((times, term) for term, times in total.terms.items() if times > 0 and term not in seen)
    return total.constant + sum(times * _largest_term(kernel, term, seen) for times, term in added)


def _largest_term(kernel: Kernel, term: Term, seen: frozenset[Term]) -> float:
    """The largest number that a term of a sum may be."""
    if isinstance(term, Remainder):
        return term.values - 1
    if isinstance(term, Quotient):
        return _largest(kernel, Sum(dict(term.terms), term.constant), seen) / term.divisor
    writes = kernel.registers.values_written(term) if isinstance(term, bytes) else ()
    return max((_largest_written(kernel, write, seen | {term}) for write in writes), default=math.inf)


def _largest_written(kernel: Kernel, write: Write, seen: frozenset[Term]) -> float:
    """The largest number that an instruction may write, if it adds numbers or chooses between them."""
    opcode, _, operands, offset = write
    if not opcode.startswith((b"min.", b"max.", b"selp.", b"mov.", b"add.", b"sub.")):
        return math.inf
    numbers = (_largest(kernel, kernel.addresses.of(word, offset), seen) for word in operands.split(b",")[:2])
    return min(numbers) if opcode.startswith(b"min.") else max(numbers)
