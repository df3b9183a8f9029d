"""Stages of shared memory that are filled again although nothing says that they are free."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ptxmma.check import rule_examples as examples
from ptxmma.check.kernels import threads_at
from ptxmma.check.mbarriers import are_alike
from ptxmma.check.rule import Rule
from ptxmma.ptx import literals, thread_values
from ptxmma.ptx.sums import Rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Reached
    from ptxmma.check.mbarriers import Mbarriers, Used
    from ptxmma.ptx.addresses import Place
    from ptxmma.ptx.conditions import Predicates
    from ptxmma.ptx.sums import Term

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
#: Instructions whose results may be small numbers of rounds.
_LIMITING, _MASKING = (b"min.", b"rem.", b"selp.", b"bfe."), (b"and.b",)
#: Numbers of rounds that a mask leaves: a larger mask, or one of all but the lowest bits, limits nothing.
_MOST_ROUNDS = 1 << 16
#: Instructions from a number of rounds to the predicate that ends a loop.
_COUNTING = (b"setp.", b"add.", b"sub.", b"mov.", b"cvt.", b"and.pred", b"or.pred", b"not.pred")


def refilled(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The copies that a loop repeats though no other thread can tell that their stage is free, each with what is wrong."""
    for copy in barriers.fills:
        if copy.place is None or any(word in copy.use.opcode for word in _NO_COPIES):
            continue
        for turn in barriers.rounds:
            if copy.block not in turn or _is_ordered(barriers, copy.place, turn):
                continue
            if _is_its_own(barriers, copy, turn) and _comes_again(barriers, copy, turn):
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
        and not _has_limit(barriers, turn)
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
    waits = [each for each in barriers.waits if each.block in turn]
    if not waits:
        return True
    thread = threads_at(barriers.kernel.executed, copy.use.offset)
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


def _comes_again(barriers: Mbarriers, copy: Used, turn: frozenset[int]) -> bool:
    """Return whether a loop repeats a copy to the same stage: always to one, or to the stages of a ring that it may go round."""
    text, registers = barriers.kernel.text, barriers.kernel.registers
    address = _ADDRESS.search(text, copy.use.offset)
    if address is None:
        return False
    total = barriers.kernel.addresses.of(address[0], copy.use.offset)
    moving = [term for term in total.terms if any(barriers.kernel.block_of(offset) in turn for offset in _changes(term, registers))]
    if not moving:
        return True
    return all(map(barriers.kernel.addresses.values, moving)) and not _has_limit(barriers, turn)


def _changes(term: Term, registers: Predicates) -> Iterator[int]:
    """Places of instructions that change a term of an address, or of the loop that counts it."""
    if isinstance(term, bytes):
        yield from (offset for *_, offset in registers.writes(term))
    elif isinstance(term, Rounds):
        yield term.loop
    else:
        for inner, _ in term.terms:
            yield from _changes(inner, registers)


def _has_limit(barriers: Mbarriers, turn: frozenset[int]) -> bool:
    """Return whether a constant may decide how many rounds a loop has."""
    ends = {way.predicate.lstrip(b"!") for number in turn for way in barriers.kernel.leaving(number, turn)}
    return any(_is_limited(barriers.kernel.registers, predicate) for predicate in ends)


def _is_limited(registers: Predicates, name: bytes, seen: frozenset[bytes] = frozenset()) -> bool:
    """Return whether a constant may decide how many rounds a loop has, by the predicate that ends it, or a number before it."""
    for opcode, _, operands, _ in registers.values_written(name) if name not in seen else ():
        words = [word.strip() for word in operands.split(b",")]
        numbers = [number for word in words if (number := literals.integer(word)) is not None]
        if opcode.startswith(_MASKING) and any(not 0 <= number <= _MOST_ROUNDS for number in numbers):
            opcode = b"mov."  # the mask leaves the higher bits
        if opcode.startswith((*_LIMITING, *_MASKING)) or (opcode.startswith(b"setp.") and any(numbers)):
            return True
        # Compilers take the few rounds away that they do not unroll: a difference is as large as one of its parts.
        parts = all if opcode.startswith(b"sub.") else any
        if opcode.startswith(_COUNTING) and parts(
            _is_limited(registers, word, seen | {name}) for word in words if literals.integer(word) is None
        ):
            return True
    return False
