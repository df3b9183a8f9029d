"""Fences that order the uses of tensor memory in one thread before the uses in another, where a barrier lets that thread go on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.kernels import threads_at
from ptxmma.check.remarks import Remark
from ptxmma.ptx.blocks import NotFollowedError
from ptxmma.ptx.graphs import spread
from ptxmma.ptx.outline import opcodes_of, starts
from ptxmma.ptx.statements import Token
from ptxmma.ptx.thread_masks import ALL_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.kernels import Kernel
    from ptxmma.check.mbarriers import Mbarriers
    from ptxmma.model import Pairing
    from ptxmma.ptx.flow_events import Event

#: A barrier of the thread block, and its number.
_NAMED = re.compile(rb"(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive|red)[\w.]*\s+(\d+)")
_BARRIERS = {b"bar", b"barrier"}
_BEFORE, _AFTER, _COMMIT = "fence-before", "fence-after", "commit"


class ThreadFences:
    """Judges kernels by the protocol that has fences between threads; of a spec without one, it passes all.

    Attributes:
        words: the first words of the fences.
    """

    def __init__(self, catalog: Catalog) -> None:
        spec = catalog.database.spec
        self._pairings = [pairing for protocol in spec.protocols for pairing in protocol.pairings]
        protocol = next((each for each in spec.protocols if _BEFORE in {step.role for step in each.steps}), None)
        self._steps = {step.role: step for step in protocol.steps} if protocol else {}
        entries = [each for each in spec.instructions if protocol and each.family in protocol.families and each.asynchronous]
        self._accesses = tuple({each.start for each in entries if each.operation in ("tensor-load", "tensor-store")})
        self._products = tuple({each.start for each in entries} - {*self._accesses})
        self.words = {self._steps[role].instruction.encode() for role in (_BEFORE, _AFTER) if role in self._steps}

    def of_kernel(self, kernel: Kernel, barriers_of: Callable[[Pairing], Mbarriers]) -> Iterator[tuple[Remark, bytes]]:
        """The first note on each fence that a kernel has, but lacks between two threads that use tensor memory one after the other.

        Args:
            kernel: the kernel.
            barriers_of: its mbarriers, by the spec's facts on them.
        """
        if not self.words or not any(start in kernel.text for start in self._accesses) or not kernel.is_closed:
            return
        for pairing in self._pairings:
            try:
                found = [*self._lacking(barriers_of(pairing))]
            except NotFollowedError:
                continue
            for role, event, reason in found:
                step = self._steps[role]
                text = f"no {step.instruction} comes between {reason}; write it there (PTX ISA {step.source})"
                yield Remark(Token(event.opcode, event.offset), "note", "missing-thread-fence", text), event.opcode

    def _lacking(self, barriers: Mbarriers) -> Iterator[tuple[str, Event, str]]:
        """The role of a fence, the first instruction before which it is missing, and the two between which it belongs."""
        kernel, text = barriers.kernel, barriers.kernel.text
        before, after, commit = (self._steps[role].instruction.encode() for role in (_BEFORE, _AFTER, _COMMIT))
        named = {each.start(): match[1] for each in opcodes_of(text, _BARRIERS) if (match := _NAMED.match(text, each.start()))}

        def heard_from(tells: Collection[int]) -> set[int]:
            """The waits for barriers on which instructions at some places arrive."""
            places = [each.place for each in barriers.arrivals if each.use.offset in tells and each.place is not None]
            names = {named[place] for place in tells if place in named}
            waits = {each.use.offset for each in barriers.waits if any(each.may_be_of(place) for place in places)}
            return waits | {place for place, name in named.items() if name in names}

        def later(heard: Collection[int], uses: tuple[bytes, ...], stop: bytes = b"") -> list[Event]:
            """The instructions of some kinds to which a path leads from waits, not through a fence, in the order of the text."""
            found = _reached(kernel, heard, stop)
            return [found[place] for place in sorted(found) if found[place].opcode.startswith(uses)]

        commits = {each.use.offset for each in barriers.arrivals if each.use.opcode.startswith(commit)}
        telling = {each.use.offset for each in barriers.arrivals} - commits | {*named}
        accesses = {each.offset for events in kernel.instructions for each in events if each.opcode.startswith(self._accesses)}
        used, unfenced = (_reached(kernel, accesses, stop) for stop in (b"", before))
        told = telling & used.keys()
        early = sorted(telling & unfenced.keys())
        if later(heard_from(early), self._products):
            first = next(place for place in early if later(heard_from({place}), self._products))
            yield _BEFORE, unfenced[first], "the loads and stores of tensor memory and this, which lets a thread that uses it go on"
        for tells, uses in ((told, self._products), (commits, self._accesses)) if after in text else ():
            late = later(heard_from(tells), uses, after)
            if late:
                yield _AFTER, late[0], "the wait for threads that use tensor memory and this"
                break


def _reached(kernel: Kernel, begins: Collection[int], stop: bytes) -> dict[int, Event]:
    """The instructions, by their places, to which a thread comes from some others, and not through an instruction that stops it.

    Args:
        kernel: the kernel.
        begins: the places at which paths begin.
        stop: the opcode that ends it; empty for none.
    """

    def through(number: int, threads: int) -> tuple[list[Event], int]:
        """The instructions of a block to which some of the threads come, and the threads that leave it."""
        met: list[Event] = []
        for event in kernel.instructions[number]:
            executing = threads_at(kernel.executed, event.offset)
            if threads & executing:
                met.append(event)
            if event.offset in begins:
                threads |= executing
            elif stop and starts(event.opcode, stop):
                threads = 0
        return met, threads

    def leaving(number: int, threads: int = ALL_THREADS) -> Iterator[tuple[int, int]]:
        _, threads = through(number, threads)
        return ((way.after, threads) for way in kernel.ways[number] if way.after >= 0)

    first = dict.fromkeys(map(kernel.block_of, begins), 0)
    for number in [*first]:
        for after, threads in leaving(number, 0):
            first[after] = first.get(after, 0) | threads
    return {event.offset: event for number, threads in spread(first, leaving).items() for event in through(number, threads)[0]}
