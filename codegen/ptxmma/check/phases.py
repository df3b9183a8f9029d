"""Waits for phases of mbarriers: that the phase can complete, that it is not the one before, and that the parity changes.

The spec says which instructions wait for a phase, and which complete it.  Followed are mbarriers whose addresses the text gives, and
parities that are computed from constants.  Where either is not known, a wait lets threads go on.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.counterparts import uses_of
from ptxmma.check.progress import Numbers, Progress, Wait
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.ptx.blocks import NotFollowedError, opposite
from ptxmma.ptx.conditions import predicate_before
from ptxmma.ptx.flow_events import calls_others, words_of
from ptxmma.ptx.outline import starts
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ptxmma.check.counterparts import Use
    from ptxmma.check.kernel_paths import KernelPaths
    from ptxmma.model import Pairing, PhaseFault, Protocol
    from ptxmma.ptx.addresses import Addresses, Place
    from ptxmma.ptx.statements import Function

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
}

#: Parts of opcodes on mbarriers that count bytes: a copy, and an arrival that expects it.
_COUNTS = (b"complete_tx", b"expect_tx")


class _Judged(NamedTuple):
    """A wait for a phase of an mbarrier.

    Attributes:
        use: the instruction.
        block: the number of its block.
        parity: the operand that names the phase.
    """

    use: Use
    block: int
    parity: bytes


class PhaseJudge:
    """Judges kernels by what the protocols of a spec say of phases.

    Args:
        protocols: the spec's protocols.
    """

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        self._pairings = [pairing for protocol in protocols for pairing in protocol.pairings if pairing.phases]

    def of_kernel(self, function: Function, paths: KernelPaths, addresses: Addresses) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on waits of a kernel, each with the opcode that it is about; none if it cannot be followed.

        Args:
            function: the kernel.
            paths: the paths through it.
            addresses: its addresses.
        """
        text = function.text
        for pairing in self._pairings:
            if not text.startswith(b".entry") or not any(word.encode() in text for word in pairing.made) or calls_others(text):
                continue
            try:
                kernel = _Kernel(text, paths, addresses, pairing)
            except NotFollowedError:
                continue
            yield from kernel.endless(function)
            yield from kernel.early()


class _Kernel:
    """The waits and the arrivals of a kernel, and the order in which waits open."""

    def __init__(self, text: bytes, paths: KernelPaths, addresses: Addresses, pairing: Pairing) -> None:
        self._paths = paths
        self._faults = {each.fault: each for each in pairing.phases}
        begins = [block.begin for block in paths.blocks]
        brings = {word for count in pairing.counts for word in (*count.expects, *count.brings)}
        uses = [*uses_of(text, {*pairing.waits, *pairing.arrives, *brings}, addresses)]
        named = [(use, bisect.bisect(begins, use.offset) - 1) for use in uses]
        self._arrivals = [(use, block) for use, block in named if any(starts(use.opcode, word.encode()) for word in pairing.arrives)]
        self._fills = [(use, block) for use, block in named if any(counts in use.opcode for counts in _COUNTS)]
        self._waits = {
            use.offset: _Judged(use, block, use.operand)
            for use, block in named
            if any(starts(use.opcode, word.encode()) for word in pairing.waits)
        }
        waits = {
            place: Wait(place, _complete(text, use), block, bool(predicate_before(text, place)))
            for place, (use, block, _) in self._waits.items()
        }
        names = {word for each in self._waits.values() for word in words_of(each.parity)}
        self._progress = Progress(text, paths.blocks, paths.ways, paths.registers, waits, names)
        self.first: dict[int, Numbers] = {}  # the parities with which each wait is reached for the first time
        self._open()

    def _open(self) -> None:
        """Let threads go on from one wait after the other, until no further wait lets them."""
        fresh: Collection[int] = self._waits
        while fresh:
            coming = [each for each in self._waits.values() if self._progress.is_reached(each.block)]
            for each in coming:
                self.first.setdefault(each.use.offset, self._progress.numbers(each.parity))
            fresh = [each.use.offset for each in coming if each.use.offset not in self._progress.open and self._lets(each)]
            self._progress.let(fresh)

    def _lets(self, wait: _Judged) -> bool:
        """Return whether a wait lets threads go on: its phase may be complete."""
        place = wait.use.place
        if place is None or self._progress.numbers(wait.parity) != frozenset([0]):
            return True
        return any(self._progress.is_reached(block) for use, block in self._arrivals if use.place is None or use.place.meets(place))

    def _completing(self, place: Place) -> list[Use]:
        """The arrivals on an mbarrier."""
        return [use for use, _ in self._arrivals if use.place is None or use.place.meets(place)]

    def early(self) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on waits that return at once though the threads need the first phase: they have begun it, or read what it brings."""
        for offset, wait in sorted(self._waits.items()):
            place = wait.use.place
            if place is None or self.first.get(offset) != frozenset([1]):
                continue
            filled = {block for use, block in self._fills if use.place is not None and are_alike(use.place, place)}
            begun = filled or {block for use, block in self._arrivals if use.place == place and not place.step}
            if begun and self._threads(wait.block) & ~self._from(0, begun).get(wait.block, 0):
                cause = "the thread has begun phase 0 before"
            elif filled and filled.isdisjoint(self._after(wait)):
                cause = "copies bring its bytes in phase 0"
            else:
                continue
            if not self._follows_another(wait, place):
                yield _remark(wait.use, self._faults["early"], cause)

    def _follows_another(self, wait: _Judged, place: Place) -> bool:
        """Return whether threads may have waited for the mbarrier elsewhere before they come to a wait: it may be for a later phase."""
        before = self._from(0, {wait.block})
        return any(
            other.block in before and wait.block in self._from(other.block, ())
            for offset, other in self._waits.items()
            if (other.block != wait.block or offset < wait.use.offset) and (other.use.place is None or other.use.place.meets(place))
        )

    def _after(self, wait: _Judged) -> Collection[int]:
        """The blocks that threads may reach after a wait before another one for the same mbarrier."""
        place = wait.use.place
        others = {each.block for each in self._waits.values() if each.use.place is None or place is None or each.use.place.meets(place)}
        return self._from(wait.block, others)

    def _threads(self, number: int) -> int:
        """A mask of the threads that reach a block."""
        return self._progress.entered[number] | self._progress.elected[number]

    def _from(self, start: int, ends: Collection[int]) -> dict[int, int]:
        """A mask of the threads that come from a block to others, by their numbers; not through some, to which they come.

        Of a warp that elects a thread, only this thread is followed.
        """
        entered = {start: self._threads(start)}
        waiting = [start]
        while waiting:
            number = waiting.pop()
            for after, predicate, _ in self._paths.ways[number] if number == start or number not in ends else ():
                if after < 0 or (predicate and self._paths.registers.is_elected(opposite(predicate))):
                    continue
                threads = entered[number] & self._paths.registers.threads(predicate)
                if threads & ~entered.get(after, 0):
                    entered[after] = entered.get(after, 0) | threads
                    waiting.append(after)
        return entered

    def endless(self, function: Function) -> Iterator[tuple[Remark, bytes]]:
        """The remark on the first of the waits that let no thread go on."""
        shut = [each.use for place, each in sorted(self._waits.items()) if place in self.first and place not in self._progress.open]
        missing = [(use, self._completing(use.place)) for use in shut if use.place is not None]
        if missing and all(arrivals for _, arrivals in missing):
            use, arrivals = missing[0]
            lines = [function.position(each.offset)[0] for each in (arrivals[0], *(other for other, _ in missing[1:]))]
            others = f", or after what waits in line {', '.join(map(str, lines[1:]))}" if lines[1:] else ""
            yield _remark(use, self._faults["endless"], f"the arrival of line {lines[0]} comes after it{others}")


def _remark(use: Use, fault: PhaseFault, details: str) -> tuple[Remark, bytes]:
    message = f"{fault.text}: {details} (PTX ISA {fault.source})"
    return Remark(Token(use.opcode, use.offset), "warning", fault.rule, message), use.opcode


def are_alike(one: Place, other: Place) -> bool:
    """Return whether two places are of one mbarrier, or of one array of them, whatever their indices are."""
    return one[:3] == other[:3] or bool(one.places and other.places and one.meets(other))


def _complete(text: bytes, use: Use) -> bytes:
    """The register in which a wait says whether the phase is complete."""
    begin = use.offset + len(use.opcode)
    return next(iter(words_of(text[begin : text.find(b",", begin)])), b"")
