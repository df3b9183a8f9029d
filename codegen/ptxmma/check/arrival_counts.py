"""Numbers of arrivals on an mbarrier that are not the number of a phase."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.clusters import mapped
from ptxmma.check.kernels import threads_at
from ptxmma.check.mbarriers import UNCOUNTED
from ptxmma.check.rule import Rule
from ptxmma.ptx import thread_values
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.graphs import reachable
from ptxmma.ptx.outline import is_any
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ptxmma.check.clusters import Mapped
    from ptxmma.check.mbarriers import Mbarriers, Used
    from ptxmma.model import ByteCount
    from ptxmma.ptx.addresses import Place

RULES: Mapping[str, Rule] = {
    "wrong-arrival-count": Rule(
        "As many threads arrive on an mbarrier as it counts arrivals in a phase.",
        "With fewer arrivals no phase completes, and a wait never ends. With more, a phase completes before all threads have come, and the "
        "rest count for the next one. Judged where the count is a constant, and %tid.x and constants or an elected thread decide which "
        "threads arrive, each once in a phase.",
        "Initialise the mbarrier with the number of threads that arrive, or let one thread of each warp arrive.",
        *(examples.arrivals(count) for count in (64, 32)),
    ),
}

#: Arrivals that change the count.
_DROPS = b"mbarrier.arrive_drop"
#: Arrivals in other thread blocks: a commit for several, and one by an address of the cluster.
_SENT, _REMOTE = b".multicast::cluster", re.compile(rb"mbarrier\..*\.shared::cluster")
_REGISTER = re.compile(rb"\[\s*([\w$%]+)")


class _Arrivals(NamedTuple):
    """Arrivals of an instruction.

    Attributes:
        threads: a mask of the threads that execute it.
        times: the arrivals of each.
        blocks: the number of arrivals on the mbarrier of each thread block of a cluster.
    """

    threads: int
    times: int
    blocks: tuple[int, ...]


def too_few(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The first arrival on mbarriers on which fewer arrive than a phase needs, with both numbers."""
    waited = [each.place for each in barriers.waits if each.place is not None] if barriers.are_counted else []
    for place in {single: None for each in waited for single in each.singles()}:
        count = barriers.arrivals_of_a_phase(place)
        if not count:
            continue
        arriving = barriers.arrivals_on(place)
        total = most(barriers, arriving)
        if total and total >= count and _come_in_turn(barriers, arriving, place):
            total = most(barriers, arriving, in_turn=True)
        if arriving and total is not None and total < count and all(_comes_once(barriers, each, place) for each in arriving):
            mend = (
                "initialise it with the number of those that do" if total else "write .noinc, without which each adds the one that it makes"
            )
            yield arriving[0], f"{count:,} in line {_line_of_init(barriers, place)}, and no more than {total:,} come; {mend}"


def most(barriers: Mbarriers, arriving: Sequence[Used], *, in_turn: bool = False) -> int | None:
    """The most arrivals of some instructions; None where it is not known.

    Args:
        barriers: the mbarriers of the kernel.
        arriving: the instructions.
        in_turn: whether each thread executes one of them, not each once.
    """
    found = [_arrivals(barriers, each) for each in arriving] if barriers.are_counted else [None]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if in_turn:
        if barriers.blocks != 1:
            return None
        return functools.reduce(int.__or__, (each.threads for each in known)).bit_count() * max(each.times for each in known)
    return max(map(sum, zip(*(each.blocks for each in known), strict=True)), default=0)


def too_many(barriers: Mbarriers) -> Iterator[tuple[Used, str]]:
    """The arrivals of more threads than a phase of their mbarrier needs, with both numbers."""
    text = barriers.kernel.text
    for each in barriers.arrivals if barriers.are_counted else ():
        place = each.place
        count = barriers.arrivals_of_a_phase(place) if place is not None else None
        few = _arrivals(barriers, each, sure=True, exist=barriers.existing) if count else None
        if place is not None and count and few is not None and max(few.blocks) > count:
            there = _mapped(barriers, each)
            address = there.address if there else text[text.find(b"[", each.use.offset) : text.find(b"]", each.use.offset)]
            names = [name for name in words_of(address) if name.startswith(b"%")]
            # Each warp may name an mbarrier of its own.
            apart = len(thread_values.warps_of(few.threads)) > 1 and any(map(barriers.kernel.registers.is_by_thread, names))
            if not apart and all(barriers.kernel.function.lanes.of(name).is_shared for name in names):
                given = f"{count:,} in line {_line_of_init(barriers, place)}"
                yield each, f"{given}, and {max(few.blocks):,} come; initialise it with that number, or let fewer arrive"


def _line_of_init(barriers: Mbarriers, place: Place) -> int:
    """The line of the first instruction that initialises an mbarrier, where its count stands."""
    return barriers.kernel.function.position(barriers.made_on(place)[0].use.offset)[0]


def miscounted(barriers: Mbarriers, count: ByteCount, bytes_of: Callable[[bytes], int]) -> Iterator[tuple[Used, str]]:
    """The first instruction on each mbarrier that expects other bytes than stores bring to it, with both numbers.

    Args:
        barriers: the mbarriers of the kernel.
        count: the spec's facts on their bytes.
        bytes_of: returns the bytes that a thread stores with an opcode.
    """
    counting = [each for each in (*barriers.fills, *barriers.stores) if b"complete_tx" in each.use.opcode]
    judged = barriers.are_counted and len(counting) == barriers.kernel.text.count(b"complete_tx")
    for place in {each.place: None for each in barriers.stores if each.place is not None} if judged else ():
        fills, stores = barriers.fills_on(place), [each for each in barriers.stores if each.may_be_of(place)]
        expecting = [each for each in fills if is_any(each.use.opcode, count.expects)]
        sums = [barriers.kernel.addresses.of(each.use.operand or b"?", each.use.offset) for each in expecting]
        others = len(fills) > len(expecting) or place.step or any(number.terms for number in sums)
        once = all(_comes_once(barriers, each, place) for each in (*expecting, *stores))
        if not expecting or others or not once or not all(_mapped(barriers, each) for each in stores):
            continue
        expected = _bounds(barriers, [(each, number.constant) for each, number in zip(expecting, sums, strict=True)])
        brought = _bounds(barriers, [(each, bytes_of(each.use.opcode)) for each in stores])
        for (least, most), (fewest, all_come) in zip(expected, brought, strict=False):
            if least > all_come > 0 or fewest > most:
                come, wanted = (all_come, least) if least > all_come else (fewest, most)
                yield expecting[0], f"{come:,} bytes, not {wanted:,}; expect the bytes of a store, times the threads that execute it"
                break


def _bounds(barriers: Mbarriers, uses: Sequence[tuple[Used, int]]) -> list[tuple[int, int]]:
    """The smallest and the largest count of some instructions on the mbarrier of each thread block; empty where they are not known.

    Args:
        barriers: the mbarriers of the kernel.
        uses: the instructions, each with the number that it counts in each thread.
    """
    together: dict[tuple[int, bytes], list[tuple[int, ...]]] = {}
    most, exist = [], barriers.existing
    for each, times in uses:
        may, must = (_arrivals(barriers, each, times=times, sure=sure, exist=exist if sure else None) for sure in (False, True))
        if may is None or must is None:
            return []
        most.append(may.blocks)
        # Of instructions on different paths, a launch may execute one alone.
        together.setdefault((each.block, predicate_before(barriers.kernel.text, each.use.offset)), []).append(must.blocks)
    least = [[sum(numbers) for numbers in zip(*blocks, strict=True)] for blocks in together.values()]
    return [(max(one), sum(all_of)) for one, all_of in zip(zip(*least, strict=True), zip(*most, strict=True), strict=True)]


def _arrivals(
    barriers: Mbarriers, used: Used, *, times: int | None = None, sure: bool = False, exist: int | None = None
) -> _Arrivals | None:
    """The most arrivals of an instruction; None where they are not known.

    Args:
        barriers: the mbarriers of the kernel.
        used: the instruction.
        times: the number that each thread counts, if not arrivals.
        sure: true to count the threads that all execute it in some launch, false to count all that may.
        exist: a mask of the threads that are sure to exist, if not all are; one warp does, too.
    """
    opcode, times = used.use.opcode, times_of(barriers, used) if times is None else times
    executed = (barriers.kernel.executed_together if sure else barriers.kernel.executed).get(used.use.offset)
    if executed is None or times is None or used.place is None or opcode.startswith(_DROPS):
        return None
    mask = executed.threads
    if exist is not None:
        everyone = (1 << thread_values.WARP) - 1
        warps = (mask >> first & everyone for first in range(0, mask.bit_length(), thread_values.WARP))
        mask = max(mask & exist, everyone if everyone in warps else mask & -mask, key=int.bit_count)
    blocks = _in_blocks(barriers, used, mask, times, sure=sure)
    return None if blocks is None else _Arrivals(mask, times, blocks)


def _in_blocks(barriers: Mbarriers, used: Used, mask: int, times: int, *, sure: bool) -> tuple[int, ...] | None:
    """The number of arrivals of some threads on the mbarrier of each thread block of a cluster; None where it is not known."""
    use, size, number = used.use, barriers.blocks, mask.bit_count() * times
    remote = is_remote(barriers, used)
    if size <= 1:  # of a cluster whose size is not known, only the thread block's own arrivals count
        return None if remote else (number,)
    kernel = barriers.kernel
    ranks = threads_at(kernel.executed_by_blocks_together if sure else kernel.executed_by_blocks, use.offset)
    executing = [rank for rank in range(size) if ranks >> rank & 1]
    if not remote:
        return tuple(number if rank in executing else 0 for rank in range(size))
    if _SENT in use.opcode:
        sent = barriers.kernel.addresses.of(use.operand, use.offset)
        return None if sent.terms else tuple(number * len(executing) * (sent.constant >> rank & 1) for rank in range(size))
    address = _mapped(barriers, used)
    if address is None:
        return None
    to = kernel.ranks.numbers_of(address.rank)
    if to is not None:
        return tuple(number * sum(to[each] == rank for each in executing) for rank in range(size))
    to = kernel.threads.numbers_of(address.rank)
    if to is None:
        return None
    own = (sum(1 << thread for thread, each in enumerate(to) if each == rank) & mask for rank in range(size))
    return tuple(each.bit_count() * times * len(executing) for each in own)


def is_remote(barriers: Mbarriers, used: Used) -> bool:
    """Return whether an instruction may arrive on mbarriers of other thread blocks."""
    opcode = used.use.opcode
    if _SENT in opcode or _REMOTE.match(opcode):
        return True
    return _mapped(barriers, used) is not None


def _mapped(barriers: Mbarriers, used: Used) -> Mapped | None:
    """The ``mapa`` that gives the address of an mbarrier; None without one."""
    match = _REGISTER.search(barriers.kernel.text, used.use.offset) if b"mapa" in barriers.kernel.text else None
    return mapped(barriers.kernel.function, match[1], used.use.offset) if match is not None else None


def uncounted(barriers: Mbarriers) -> str:
    """The arrivals and the bytes of a kernel that are not counted; empty where all are."""
    text = barriers.kernel.text
    words = [word.decode() for word in UNCOUNTED if word in text]
    remote = [each for each in barriers.arrivals if is_remote(barriers, each)]
    words += ["arrivals in thread blocks that are not known"] if any(_arrivals(barriers, each) is None for each in remote) else []
    tensors = sum(b".tensor" in each.use.opcode for each in barriers.fills)
    left = [f"arrivals ({len(barriers.made)} mbarriers are initialised), as the kernel has {', '.join(words)}"] if words else []
    left += [f"the bytes of tensor copies ({tensors}), which a tensor map gives"] if tensors else []
    return f"not counted: {'; '.join(left)}" if left else ""


def times_of(barriers: Mbarriers, used: Used) -> int | None:
    """The arrivals of each thread that executes an instruction once; None where it is not known."""
    opcode, operand = used.use.opcode, used.use.operand
    if opcode.startswith(b"cp.async") and b"noinc" not in opcode:
        return 0  # the phase needs one more, which comes
    counted = operand and opcode.startswith(b"mbarrier.") and b"expect_tx" not in opcode
    times = barriers.kernel.addresses.of(operand if counted else b"1", used.use.offset)
    return None if times.terms else times.constant


def _comes_once(barriers: Mbarriers, arrival: Used, place: Place) -> bool:
    """Return whether an arrival is executed once in each phase: no loop repeats it, or each round waits for who waits for the phase."""
    turn = barriers.round_of(arrival)
    return not turn or any(each.block in turn for each in _answering(barriers, place))


def _answering(barriers: Mbarriers, place: Place) -> Iterator[Used]:
    """The waits for a phase of an mbarrier, or for another one whose every round is filled after such a wait."""
    for wait in barriers.waits:
        if wait.place is None:
            continue
        # Each round of what fills the other one waits for the first.
        answers = (each.block in turn for turn in barriers.turns_of(wait.place) for each in barriers.waits_on(place))
        if wait.place.meets(place) or any(answers):
            yield wait


def _come_in_turn(barriers: Mbarriers, arriving: Sequence[Used], place: Place) -> bool:
    """Return whether a thread that arrives on an mbarrier waits for the next phase of one and the same before it arrives again.

    Another life of the mbarrier begins where it is initialised again.
    """
    asked = {each.place for each in _answering(barriers, place) if each.place is not None}
    made = [each for each in barriers.made if each.place == place]
    return any(not _meet(barriers, arriving, [*made, *barriers.waits_on(one)]) for one in asked)


def _meet(barriers: Mbarriers, arriving: Sequence[Used], between: Sequence[Used]) -> bool:
    """Return whether a path leads from an arrival to another one, or to itself again, not through some other instructions."""
    stops: dict[int, list[tuple[int, bool]]] = {}
    for each in (*arriving, *between):
        stops.setdefault(each.block, []).append((each.use.offset, each in arriving))

    @functools.cache
    def stop_after(place: tuple[int, int]) -> tuple[int, bool]:
        """The next of the instructions in a block, and whether it is an arrival; -1 without one."""
        return min((stop for stop in stops.get(place[0], ()) if stop[0] > place[1]), default=(-1, False))

    def following(place: tuple[int, int]) -> list[tuple[int, int]]:
        return [(way.after, -1) for way in barriers.kernel.ways[place[0]] if way.after >= 0] if stop_after(place)[0] < 0 else []

    return any(stop_after(place)[1] for place in reachable([(each.block, each.use.offset) for each in arriving], following))
