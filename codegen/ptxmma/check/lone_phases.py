"""Loops that use a phase of an mbarrier in each round, where another part of it comes once: an arrival, bytes to expect, or a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmma.check.stages import most_rounds
from ptxmma.ptx.flow_events import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ptxmma.check.mbarriers import Mbarriers, Used

#: Stages of a ring: a loop of more rounds uses each of them again.
_MOST_STAGES = 64
_EXPECTS, _EXPECTS_AND_ARRIVES = b"expect_tx", b"mbarrier.arrive.expect_tx"


def unarrived(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The waits of loops for one phase after the other, where no loop arrives."""
    for wait in barriers.waits:
        arrivals = barriers.arrivals_on(wait.place)
        if wait.place is not None and arrivals and not _any_repeated(barriers, arrivals) and _waits_in_turn(barriers, wait):
            yield wait, f"no loop arrives on it, and the arrival of line {_line(barriers, arrivals[0])} comes once; arrive in each round"


def unexpected(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The copies of loops to an mbarrier for whose phases loops wait, where no loop expects bytes."""
    for copy in barriers.fills:
        expecting = [each for each in barriers.fills_on(copy.place) if _EXPECTS in each.use.opcode]
        repeated = copy.place is not None and _EXPECTS not in copy.use.opcode and barriers.round_of(copy)
        if not repeated or not expecting or _any_repeated(barriers, expecting):
            continue
        arrives = _any_repeated(barriers, barriers.arrivals_on(copy.place))  # otherwise the wait is what never ends
        if arrives and any(_waits_in_turn(barriers, each) for each in barriers.waits_on(copy.place)):
            yield copy, f"a loop brings them, and line {_line(barriers, expecting[0])} expects them once; expect them in each round"


def unawaited(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The copies of loops that begin a phase in each round, where no loop waits."""
    if any(each.opcode.startswith(b"mbarrier.") for each in barriers.orders):  # a wait for what an arrival gave may be for any
        return
    for copy in barriers.fills:
        turn, waits = barriers.round_of(copy), barriers.waits_on(copy.place)
        if copy.place is None or _EXPECTS in copy.use.opcode or not turn or not waits or _any_repeated(barriers, waits):
            continue
        begins = (each.block in turn for each in barriers.fills_on(copy.place) if each.use.opcode.startswith(_EXPECTS_AND_ARRIVES))
        if any(begins) and most_rounds(barriers, turn) > _MOST_STAGES:
            yield copy, f"the wait of line {_line(barriers, waits[0])} comes once; wait in each round, before the data are used"


def _any_repeated(barriers: Mbarriers, uses: Iterable[Used]) -> bool:
    """Return whether a loop may repeat an instruction: any of a kernel in which an index chooses where threads go on."""
    return barriers.kernel.mentions("brx") or any(map(barriers.round_of, uses))


def _waits_in_turn(barriers: Mbarriers, wait: Used) -> bool:
    """Return whether a loop, in any number of rounds, waits for both parities: it changes one, or has a wait for each."""
    registers, kernel = barriers.kernel.registers, barriers.kernel
    writes = [registers.writes(name) for name in registers.sources(words_of(wait.use.operand))]
    changes = {kernel.block_of(offset) for written in writes if len(written) > 1 for *_, offset in written}
    for turn in (turn for turn in barriers.rounds if wait.block in turn):
        alike = (each.use for each in barriers.waits if each.block in turn and each.place == wait.place)
        asked = [kernel.addresses.of(use.operand, use.offset) for use in alike]
        both = {each.constant & 1 for each in asked if not each.terms} == {0, 1}
        if (both or not turn.isdisjoint(changes)) and most_rounds(barriers, turn) > _MOST_STAGES:
            return True
    return False


def _line(barriers: Mbarriers, used: Used) -> int:
    return barriers.kernel.function.position(used.use.offset)[0]
