"""Waits for phases of mbarriers: that the phase can complete, that it is not the one before, and that the parity changes.

The spec says which instructions wait for a phase, and which complete it.  Followed are mbarriers whose addresses the text gives, and
parities that are computed from constants.  Where either is not known, a wait lets threads go on.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from ptxmma.check import lone_phases
from ptxmma.check import rule_examples as examples
from ptxmma.check.arrival_counts import miscounted, most, times_of, too_few, too_many, uncounted
from ptxmma.check.kernels import threads_at
from ptxmma.check.mbarriers import Used, are_alike, words_of_phases
from ptxmma.check.progress import Followed, Numbers, Progress, Wait, kinds_of_blocks
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.remote_arrivals import unanswered, unheard
from ptxmma.check.rule import Rule
from ptxmma.check.stages import overwritten, refilled
from ptxmma.ptx.blocks import NotFollowedError, opposite
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.graphs import spread
from ptxmma.ptx.statements import Token
from ptxmma.ptx.sums import Quotient, Remainder, Rounds
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.counterparts import Use
    from ptxmma.check.kernels import Kernel
    from ptxmma.check.mbarriers import Mbarriers
    from ptxmma.model import Pairing
    from ptxmma.ptx.conditions import Condition
    from ptxmma.ptx.sums import Term

RULES: Mapping[str, Rule] = {
    "early-wait": Rule(
        "The first wait for what copies bring, or for an arrival of the thread itself, is for phase 0.",
        "A wait for parity 1 asks whether the phase before is complete, and a new mbarrier says yes. The thread goes on at once, and reads "
        "what was in memory before.",
        "Begin with parity 0, and change it each time that the mbarrier was used.",
        *(examples.ring(1, full) for full in (1, 0)),
    ),
    "endless-wait": Rule(
        "The arrivals that complete a phase do not all come after a wait for that phase.",
        "Both sides wait for each other. A new mbarrier is in phase 0, of parity 0; the phase before, of parity 1, counts as complete. A "
        "thread that fills a stage for the first time waits for parity 1 of the mbarrier on which its readers arrive, and goes on at once.",
        "Begin with parity 1 where the stage is free at the start, and issue the copy before the wait for its bytes.",
        *(examples.ring(free) for free in (0, 1)),
    ),
    "unchanged-parity": Rule(
        "The parity of a wait changes each time that its mbarrier is used again.",
        "Phases have the parities 0 and 1 in turn. A thread that waits for the same one in every round of a loop waits for the phase of an "
        "earlier round, which is complete, or for the next one: it reads what was in memory before, or never goes on.",
        "Keep the parity in a register, and change it with every round of the loop; with a ring, each time that it begins again.",
        *(examples.rounds(change) for change in (0, 1)),
    ),
}


_NONE = frozenset[int]()


class PhaseJudge:
    """Judges kernels by what the protocols of a spec say of phases, and of bytes that stores bring.

    Args:
        catalog: the spec's instructions and protocols.

    Attributes:
        words: the first words of the instructions that are judged.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._pairings = [pairing for protocol in catalog.database.spec.protocols for pairing in protocol.pairings if pairing.phases]
        self.words = {word.encode() for pairing in self._pairings for word in (*words_of_phases(pairing), *pairing.tracked, *pairing.reads)}

    def of_kernel(self, kernel: Kernel, barriers_of: Callable[[Pairing], Mbarriers]) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on waits of a kernel, each with the opcode that it is about; none if it cannot be followed.

        Args:
            kernel: the kernel.
            barriers_of: its mbarriers, by the spec's facts on them.
        """
        for pairing in self._pairings:
            if not any(map(kernel.mentions, pairing.made)) or not kernel.is_closed:
                continue
            try:
                barriers = barriers_of(pairing)
            except NotFollowedError:
                continue
            if barriers.made and (left := uncounted(barriers)):
                first = barriers.made[0].use
                yield Remark(Token(first.opcode, first.offset), "note", "not-followed", left), first.opcode
            usual, busy = (kinds_of_blocks(kernel, many_rounds=many) for many in (False, True))
            followed = _followed(barriers)
            phases = _Phases(barriers, followed, usual)
            found = {
                "endless": [*phases.endless()] or (_Phases(barriers, followed, busy).endless() if busy != usual else ()),
                "early": phases.early(),
                "unchanged": _firsts(phases.unchanged()),
                "uneven": _firsts(phases.uneven()),
                "few": _firsts(phases.few()),
                "many": _firsts(too_many(barriers)),
                "refilled": _firsts(refilled(barriers)),
                "unheard": _firsts(unheard(barriers)),
                "unanswered": _firsts(unanswered(barriers)),
                "overwritten": _firsts(overwritten(barriers)),
                "unarrived": _firsts(lone_phases.unarrived(barriers)),
                "unexpected": _firsts(lone_phases.unexpected(barriers)),
                "unawaited": _firsts(lone_phases.unawaited(barriers)),
            }
            for count in pairing.counts if barriers.stores else ():
                for used, details in miscounted(barriers, count, self._bytes_of):
                    message = f"{count.text}: {details} (PTX ISA {count.source})"
                    yield Remark(Token(used.use.opcode, used.use.offset), "warning", count.rule, message), used.use.opcode
            for fault in pairing.phases:
                for used, details in found.get(fault.fault, ()):
                    message = f"{fault.text}: {details} (PTX ISA {fault.source})"
                    yield Remark(Token(used.use.opcode, used.use.offset), "warning", fault.rule, message), used.use.opcode

    def _bytes_of(self, opcode: bytes) -> int:
        """The bytes that a thread stores with an opcode; 0 if it is none of the spec's."""
        instruction = self._catalog.meaning(spelling_of(opcode))
        return math.prod(instruction.extents.values()) if instruction is not None else 0


def _followed(barriers: Mbarriers) -> Followed:
    """The waits of a kernel, and the registers that are followed for them."""
    text = barriers.kernel.text
    waits = {
        use.offset: Wait(use.offset, _complete(text, use), block, bool(predicate_before(text, use.offset))) for use, block in barriers.waits
    }
    return Followed(barriers.kernel, waits, {word for each in barriers.waits for word in words_of(each.use.operand)})


class _Phases:
    """The waits and the arrivals of a kernel, and the order in which waits open.

    Args:
        barriers: the mbarriers of the kernel.
        followed: the waits for them, and the registers that are followed.
        kinds: the conditions that hold in each kind of thread block.
    """

    def __init__(self, barriers: Mbarriers, followed: Followed, kinds: Iterable[frozenset[Condition]]) -> None:
        self._barriers, self._kernel = barriers, barriers.kernel
        self._waits = {each.use.offset: each for each in barriers.waits}
        self._kinds = [Progress(followed, conditions) for conditions in kinds]
        self._short: dict[int, str] = {}  # the waits for a first phase before which fewer arrive than it needs, with both numbers
        self.first: dict[int, Numbers] = {}  # the parities with which each wait is reached for the first time
        self._open()

    def _open(self) -> None:
        """Let threads go on from one wait after the other, until no further wait lets them."""
        fresh = True
        while fresh:
            coming = [(kind, each) for kind in self._kinds for each in self._waits.values() if kind.is_reached(each.block)]
            for _, each in coming:
                if each.use.offset not in self.first:
                    self.first[each.use.offset] = self._parities(each)
            opening = [(kind, each.use.offset) for kind, each in coming if each.use.offset not in kind.open and self._lets(each, kind)]
            for kind in self._kinds:
                kind.let(offset for other, offset in opening if other is kind)
            fresh = bool(opening)

    def _parities(self, wait: Used, kind: Progress | None = None) -> Numbers:
        """The parities for which a wait may have asked so far: the lowest bits of its operand; None where they are not known."""
        found = _NONE
        for each in [kind] if kind else [each for each in self._kinds if each.is_reached(wait.block)]:
            numbers = each.numbers(wait.use.operand, wait.use.offset)
            if numbers is None:
                return None
            found |= {number & 1 for number in numbers}
        return found

    def _lets(self, wait: Used, kind: Progress) -> bool:
        """Return whether a wait lets threads of a kind of thread block go on: its phase may be complete."""
        place = wait.use.place
        if place is None or self._parities(wait, kind) != frozenset([0]):
            return True
        arrivals = [each for each in self._barriers.arrivals_on(place) if self._threads(each.block)]
        count = self._barriers.arrivals_of_a_phase(place) or 0
        if count <= len(arrivals) or any(kind.returns_to(each.block) for each in arrivals for kind in self._kinds):
            return bool(arrivals)
        total = most(self._barriers, arrivals)
        if not total or total >= count:
            return bool(arrivals)
        self._short[wait.use.offset] = f"{count:,}, and no more than {total:,} come before"
        return False

    def _threads(self, block: int) -> int:
        """A mask of the threads that reach a block."""
        return functools.reduce(int.__or__, (kind.threads(block) for kind in self._kinds))

    def _shut(self) -> list[int]:
        """The places of the waits that are reached, and let no thread of some kind of thread block go on."""
        return [
            offset
            for offset, each in sorted(self._waits.items())
            if any(offset not in kind.open and kind.is_reached(each.block) for kind in self._kinds)
        ]

    def early(self) -> Iterator[tuple[Used, str]]:
        """The remarks on waits that return at once though the threads need the first phase: they have begun it, or read what it brings."""
        found: dict[Used, str] = {}
        for offset, wait in sorted(self._waits.items()):
            place = wait.place
            if place is None or self.first.get(offset) != frozenset([1]):
                continue
            filled = {block for use, block in self._barriers.fills if use.place is not None and are_alike(use.place, place)}
            begun = filled or {block for use, block in self._barriers.arrivals if use.place == place and not place.step}
            if self._threads(wait.block) & ~self._from(0, begun).get(wait.block, 0) and not self._begins_again(wait, begun):
                cause = "the thread has begun phase 0 before; begin with parity 0"
            elif filled and filled.isdisjoint(self._after(wait)):
                cause = "copies bring its bytes in phase 0; begin with parity 0"
            elif self._brings_results(wait):
                cause = "tcgen05.commit says in phase 0 that the results are complete which it reads; begin with parity 0"
            else:
                continue
            found[wait] = cause
        for wait, cause in found.items():
            if not self._follows_another(wait, found):
                yield wait, cause

    def _begins_again(self, wait: Used, begun: Collection[int]) -> bool:
        """Return whether a thread may begin phases in two blocks before it comes to a wait: it may wait for phase 1."""
        ends = {wait.block, *(each.block for each in self._barriers.made_on(wait.place))}
        ways = {block: self._from(block, ends) for block in begun}
        return any(other in way and wait.block in ways[other] for block, way in ways.items() for other in begun if other != block)

    def _brings_results(self, wait: Used) -> bool:
        """Return whether threads whose first wait this is read results next, which products of other threads bring."""
        others = [each for each in self._waits.values() if each.place != wait.place]
        arrivals, after = self._barriers.arrivals_on(wait.place), self._from(wait.block, {each.block for each in self._waits.values()})
        return (
            all(each.use.opcode.startswith(b"tcgen05.commit") and each.block not in self._after(wait) for each in arrivals)
            and any(self._kernel.block_of(each.offset) in after for each in self._barriers.reached(self._barriers.pairing.reads))
            and not any(wait.block in self._from(each.block, ()) for each in others)
        )

    def _follows_another(self, wait: Used, early: Container[Used]) -> bool:
        """Return whether threads may have waited for the mbarrier elsewhere before they come to a wait, not at an early one.

        Then it may be for a later phase, unless the mbarrier is initialised again.
        """
        before = self._from(0, {wait.block})
        made = {block for use, block in self._barriers.made if wait.place is not None and use.place == wait.place}
        return any(
            other.block in before and wait.block in self._from(other.block, made)
            for offset, other in self._waits.items()
            if (other.block != wait.block or offset < wait.use.offset) and other.may_be_of(wait.place)
            if other not in early or other.place != wait.place
        )

    def _after(self, wait: Used) -> Collection[int]:
        """The blocks that threads may reach after a wait before another one for the same mbarrier."""
        return self._from(wait.block, {each.block for each in self._barriers.waits_on(wait.place)})

    def _from(self, start: int, ends: Container[int]) -> dict[int, int]:
        """A mask of the threads that come from a block to others, by their numbers; not through some, to which they come.

        Of a warp that elects a thread, only this thread is followed.
        """

        def leaving(number: int) -> Sequence[tuple[int, int]]:
            return self._leaving[number] if number == start or number not in ends else ()

        return spread({start: self._threads(start)}, leaving)

    @functools.cached_property
    def _leaving(self) -> list[list[tuple[int, int]]]:
        """The ways out of each block, but those that an elected thread does not take: the next block, and a mask of the threads."""
        registers = self._kernel.registers
        return [
            [
                (after, registers.threads(predicate))
                for after, predicate, _ in each
                if after >= 0 and not (predicate and registers.is_elected(opposite(predicate)))
            ]
            for each in self._kernel.ways
        ]

    def few(self) -> Iterator[tuple[Used, str]]:
        """The waits for a first phase that does not complete, with the numbers of arrivals; and other mbarriers on which too few arrive."""
        shut = self._shut()
        yield from ((self._waits[offset], details) for offset, details in self._short.items() if offset in shut)
        yield from too_few(self._barriers)

    def endless(self) -> Iterator[tuple[Used, str]]:
        """The first of the waits that let no thread go on, with the arrivals that come too late."""
        shut = [each for each in map(self._waits.__getitem__, self._shut()) if any(kind.holds(each.block) for kind in self._kinds)]
        missing = [(each, self._barriers.arrivals_on(each.place)) for each in shut if each.place is not None]
        if missing and not self._short and all(arrivals for _, arrivals in missing):
            wait, arrivals = missing[0]
            line_of = self._kernel.function.position
            lines = [line_of(offset)[0] for offset in (arrivals[0].use.offset, *(other.use.offset for other, _ in missing[1:]))]
            others = f", or after what waits in line {', '.join(map(str, lines[1:]))}" if lines[1:] else ""
            yield wait, f"the arrival of line {lines[0]} comes after it{others}; {self._opening([each for each, _ in missing])}"

    def _opening(self, shut: Sequence[Used]) -> str:
        """The ways to let threads go on at one of the waits that let none: by the parity, where no copy fills what they wait for."""
        places = [each.place for each in self._barriers.fills if each.place is not None]
        free = next((each for each in shut if each.place is not None and not any(are_alike(place, each.place) for place in places)), None)
        if free is None:
            return "issue the copy, or arrive, before the wait"
        line = self._kernel.function.position(free.use.offset)[0]
        return f"begin with parity 1 in line {line} if the stage is free at the start, or let a thread arrive before"

    def unchanged(self) -> Iterator[tuple[Used, str]]:
        """The waits for one parity in every round of a loop though each round uses a phase, with the arrivals that complete it."""
        barriers = self._barriers
        if self._shut():
            return  # a later round may change the parity
        for _, wait in sorted(self._waits.items()):
            place, turn = wait.place, barriers.round_of(wait)
            parity = self._parities(wait)
            if place is None or not turn or parity is None or len(parity) != 1 or (place.step and not place.places):
                continue
            made = any(each.block in turn for each in barriers.made_on(place))
            if made or any(self._parities(each) != parity for each in barriers.waits_on(place)):
                continue
            again = next((each for each in barriers.arrivals if self._uses_phases(each, wait, turn)), None)
            if again is not None:
                line = barriers.kernel.function.position(again.use.offset)[0]
                yield wait, f"each round of a loop arrives in line {line}; flip the parity in each round, with a ring in each turn of it"

    def uneven(self) -> Iterator[tuple[Used, str]]:
        """The waits for a ring in the order of its places, for parities that change in other rounds than those in which it begins again."""
        addresses, text = self._kernel.addresses, self._kernel.text
        for offset, wait in sorted(self._waits.items()):
            if wait.place is None or not wait.place.step:
                continue
            named = text[text.find(b"[", offset) : text.find(b"]", offset) + 1]
            rings = [term for term in addresses.of(named, offset).terms if isinstance(term, Remainder)]
            parts = [term for term, times in addresses.of(wait.use.operand, offset).terms.items() if times % 2]
            for ring in rings if len(rings) == len(parts) == 1 else ():
                rounds, places = _changes_after(parts[0], ring), ring.values
                alike = (number // rounds % 2 == (number + places) // rounds % 2 for number in range(2 * rounds))
                if rounds and rounds % places and (rounds < places or any(alike)):
                    often = f"every {rounds} rounds" if rounds > 1 else "every round"
                    yield wait, f"it changes {often}, and the ring has {places} places; divide the round by {places}"

    def _uses_phases(self, arrival: Used, wait: Used, turn: frozenset[int]) -> bool:
        """Return whether arrivals that a loop repeats complete phases of the mbarrier of a wait: one in each round."""
        place, barriers = wait.place, self._barriers
        if place is None or arrival.place is None or not are_alike(arrival.place, place):
            return False
        if arrival.block in turn:
            return True
        count = barriers.arrivals_of_a_phase(place) if barriers.round_of(arrival) else None
        threads, times = threads_at(barriers.kernel.executed, arrival.use.offset).bit_count(), times_of(barriers, arrival)
        return count is not None and (count == 1 or threads * (times or 1) >= count)


def _firsts(found: Iterable[tuple[Used, str]]) -> Iterator[tuple[Used, str]]:
    """The first of what was found on the mbarriers of each variable: one fault, which compilers repeat in unrolled loops."""
    variables = set[bytes]()
    for used, details in found:
        if used.place is not None and used.place.variable not in variables:
            variables.add(used.place.variable)
            yield used, details


def _changes_after(parity: Term, ring: Remainder) -> int:
    """The number of rounds after which a parity changes that is computed of the round as the place in a ring is; 0 if it is not."""
    counted = [part for part, times in parity.terms if times % 2] if isinstance(parity, Remainder) and parity.values == 2 else []
    if isinstance(parity, Remainder) and parity.values == 2 and parity.terms == ring.terms:
        return int(all(isinstance(term, Rounds) for term, _ in ring.terms))
    divided = [part for part in counted if isinstance(part, Quotient) and part.terms == ring.terms]
    return divided[0].divisor if len(divided) == len(counted) == 1 and all(isinstance(term, Rounds) for term, _ in ring.terms) else 0


def _complete(text: bytes, use: Use) -> bytes:
    """The register in which a wait says whether the phase is complete."""
    begin = use.offset + len(use.opcode)
    return next(iter(words_of(text[begin : text.find(b",", begin)])), b"")
