"""The order in which a thread copies, writes to shared memory, fences and waits, along the paths through a kernel.

A kernel that lacks a step altogether is judged by other rules (:mod:`ptxmma.check.proxies`): here it has the step, and some path does not.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ptxmma.check import lifecycles
from ptxmma.check import rule_examples as examples
from ptxmma.check.counterparts import Use, uses_of
from ptxmma.check.mbarriers import are_alike
from ptxmma.check.misuses import misuses
from ptxmma.check.proxies import BULK_IN
from ptxmma.check.rule import Rule
from ptxmma.check.transitions import ends_before_branches, is_named
from ptxmma.ptx.blocks import NotFollowedError
from ptxmma.ptx.outline import is_any, opcodes_of, starts
from ptxmma.ptx.writes import predicate_before

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel
    from ptxmma.check.mbarriers import Mbarriers
    from ptxmma.check.remarks import Remark
    from ptxmma.model import Lifecycle, Pairing, Protocol
    from ptxmma.ptx.addresses import Place

_COPY = "cp.async.cg.shared.global [tile], [%rd1], 16;\ncp.async.commit_group;"
_WAITED = "cp.async.wait_group 0;"
_INIT, _ARRIVE = "mbarrier.init.shared.b64 [tile], 1;", "mbarrier.arrive.shared.b64 %rd1, [tile];"
_CHANGE = "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;"
_PUBLISH = "fence.proxy.tensormap::generic.release.gpu;"
_ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
_RESULT = "st.shared.b32 [tile], %r0;\nfence.proxy.async.shared::cta;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;"
_SENT, _READ = f"{_RESULT}\ncp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"
_TOLD, _COMPLETE = "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%rd1], 1;", "cp.async.bulk.wait_group 0;"
_REACH = "mov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r1, %r2, 1;\nld.shared::cluster.b32 %r0, [%r1];"
_MET = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
_TENSOR_COPY = "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r0}];"
_POLL = "poll:\nmbarrier.try_wait.parity.shared.b64 %p2, [tile], 0;\n@!%p2 bra poll;"
_FIRST = ".reg .pred %p<3>;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p1, %r0, 0;"

RULES: Mapping[str, Rule] = {
    "absent-block": Rule(
        "The thread blocks of a cluster meet before one reaches the shared memory of another, and the other waits for the last access.",
        "A thread block that has not started has no shared memory and no mbarriers yet; one that has ended has them no more. The access "
        "goes to undefined places, or the kernel fails. bar.sync is a barrier of one thread block.",
        "Execute barrier.cluster.arrive and barrier.cluster.wait in all threads before the first access, and again after the last one.",
        f"{_REACH}\n{_MET}",
        f"{_MET}\n{_REACH}\n{_MET}",
    ),
    "incomplete-result": Rule(
        "A thread tells other thread blocks of results after the bulk copies that write them are complete.",
        "After cp.async.bulk.wait_group.read the sources may be written again, but the copies may still write to global memory. A thread "
        "that hears of the results may read what was there before.",
        "Write cp.async.bulk.wait_group, without .read, before the fence and the flag or counter that tells.",
        f"{_SENT}\n{_READ}\n{_TOLD}",
        f"{_SENT}\n{_COMPLETE}\n{_TOLD}",
    ),
    "unfinished-copy": Rule(
        "A thread waits for its bulk copies out of shared memory before it ends.",
        "Another thread block may get the shared memory when this one ends, while a copy still reads it. A wait covers groups: a copy "
        "without cp.async.bulk.commit_group after it belongs to none. The manual says nothing of it; the CUDA guide waits.",
        "Write cp.async.bulk.commit_group after the last copy, and cp.async.bulk.wait_group.read 0 before the end, in the same thread.",
        f"{_RESULT}\n{_READ}",
        f"{_SENT}\n{_READ}",
    ),
    "unwaited-copy": Rule(
        "Threads wait for their copies with cp.async, and for each other, before they read what the copies bring.",
        "Copies are asynchronous. Before a wait that covers their group, what is read is what was in shared memory before. A wait covers "
        "the copies of its own thread; ldmatrix reads those of others, too.",
        "Write cp.async.commit_group after the copies, cp.async.wait_group or cp.async.wait_all before the first read, and a barrier of "
        "the thread block after the wait.",
        f"{_COPY}\n{examples.LOAD}\n{_WAITED}",
        f"{_COPY}\n{_WAITED}\nbar.sync 0;\n{examples.LOAD}",
    ),
    "initialised-twice": Rule(
        "A thread initialises an mbarrier once, or again after mbarrier.inval.",
        "Behaviour is undefined if mbarrier.init finds a valid mbarrier at its address: threads and copies may still use the old one.",
        "Initialise it before the loop, or execute mbarrier.inval when all threads have finished with it.",
        f"{_INIT}\n{_INIT}\nbar.sync 0;\n{_ARRIVE}\n.reg .pred %p<3>;\n{_POLL}",
        f"{_INIT}\nmbarrier.inval.shared.b64 [tile];\n{_INIT}\nbar.sync 0;\n{_ARRIVE}\n.reg .pred %p<3>;\n{_POLL}",
    ),
    "reused-source": Rule(
        "A thread waits for the group of a bulk copy before shared memory from which the copy reads is written again.",
        "The copy is asynchronous. What it writes to global memory may be the first data, the second, or some of both. Reported is a copy "
        "from the same address after stores and a fence.proxy.async: they have written what it reads. So is a bulk copy that writes there.",
        "Write cp.async.bulk.commit_group after the copy, and cp.async.bulk.wait_group.read in the same thread before the next stores; "
        "where other threads store, a barrier follows the wait. With a ring of N buffers, N - 1 groups may go on.",
        f"{_SENT}\n{_SENT}\n{_READ}",
        f"{_SENT}\n{_READ}\n{_SENT}\n{_READ}",
    ),
    "stale-tensor-map": Rule(
        "A thread that changes a tensor map publishes and acquires it before it copies.",
        "Copies read tensor maps through a proxy of their own. Without the two fences they may read the map as it was, or half changed.",
        "After tensormap.replace, write tensormap.cp_fenceproxy for a map in shared memory, or fence.proxy.tensormap::generic.release for "
        "one in global memory; then, in the thread that copies, fence.proxy.tensormap::generic.acquire.",
        f"{_CHANGE}\n{_PUBLISH}\n{_TENSOR_COPY}",
        f"{_CHANGE}\n{_PUBLISH}\n{_ACQUIRE}\n{_TENSOR_COPY}",
    ),
    "unpublished-barrier": Rule(
        "The threads of a block, and of a cluster, see that an mbarrier is initialised before they use it.",
        "Nothing else orders mbarrier.init before operations of other threads, which may find what was in shared memory before. "
        "barrier.cluster.arrive.relaxed orders nothing itself.",
        "Execute a barrier of the thread block between mbarrier.init and the first use. In a cluster, execute "
        "fence.mbarrier_init.release.cluster in the thread that initialises, and then a barrier of the cluster.",
        f"{_FIRST}\n@!%p1 {_INIT}\n@%p1 {_ARRIVE}\nbar.sync 0;\n{_POLL}",
        f"{_FIRST}\n@!%p1 {_INIT}\nbar.sync 0;\n@%p1 {_ARRIVE}\n{_POLL}",
    ),
}

_ALLOCATE = "allocate"


class ThreadOrders:
    """Judges kernels by the lifecycles of what is not allocated.

    Args:
        protocols: the spec's protocols.
    """

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        self._lifecycles = [
            life
            for protocol in protocols
            for life in protocol.lifecycles
            if life.alone or _ALLOCATE not in {step.role for step in protocol.steps}
        ]
        self._pairings = [pairing for protocol in protocols for pairing in protocol.pairings]

    def of_kernel(self, kernel: Kernel, barriers_of: Callable[[Pairing], Mbarriers]) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions of a kernel at a wrong time, each with the opcode that it is about; none if it cannot be followed.

        Args:
            kernel: the kernel.
            barriers_of: its mbarriers, by the spec's facts on them.
        """
        concerning = [life for life in self._lifecycles if _concerns(life, kernel)]
        followed = [life for life in concerning if life.each or not ends_before_branches(life, kernel.text)]
        if not followed or not kernel.is_closed:
            return

        def objects_of(life: Lifecycle) -> Mapping[int, Hashable]:
            if life.each == "place":
                return _places(life, kernel)
            return {place: each for pairing in self._pairings for place, each in _stages(life, barriers_of, pairing)}

        # Several lifecycles may tell of one fault.
        found = {(each.at.offset, each.wrong.rule): each for each in reversed(misuses(kernel, followed, objects_of=objects_of))}
        yield from lifecycles.remarks(kernel.function, [*found.values()][::-1])


def _stages(life: Lifecycle, barriers_of: Callable[[Pairing], Mbarriers], pairing: Pairing) -> Iterator[tuple[int, Hashable]]:
    """The rings that instructions of a lifecycle name, or the one result, by their places; none in a kernel that cannot be followed."""
    try:
        barriers = barriers_of(pairing)
    except NotFollowedError:
        return
    words = {word for each in life.transitions if not each.of_all for word in each.on}
    followed = tuple(word for word in words for name in (*pairing.waits, *pairing.arrives) if starts(name.encode(), word.encode()))
    known = (each.use for each in (*barriers.arrivals, *barriers.waits))
    named = [use for use in known if is_any(use.opcode, followed)]
    named += uses_of(barriers.kernel.addresses, words.difference(followed))
    of_rings = [(use, barriers.ring_of(use)) for use in named]
    if life.each != "result":
        waits = tuple(word.encode() for word in pairing.waits)
        freed = {ring for use, ring in of_rings if ring is not None and not use.opcode.startswith(waits)}
        if life.each == "one ring" and len(freed) != 1:
            return
        yield from ((use.offset, ring) for use, ring in of_rings if ring is not None)
        return
    results = [use for use, ring in of_rings if ring is None]
    # Without a ring, another rule judges that nothing tracks the last product.
    one = len(results) < len(named) and all(ring is None or barriers.tells_copies_alone(use) for use, ring in of_rings)
    if one and all(use.place is not None and results[0].place is not None and are_alike(use.place, results[0].place) for use in results):
        yield from ((use.offset, None) for use in results)


def _come_in_turn(life: Lifecycle, kernel: Kernel, uses: Sequence[Use]) -> bool:
    """Return whether all instructions name one ring, and each is a group of its own.

    Then a place comes round after as many groups as the ring has places.
    """
    groups = {word.encode() for each in life.transitions if each.of_all and each.adds for word in each.on}
    copies = {use.offset for use in uses}
    ends = [each.start() for each in opcodes_of(kernel.text, groups)] if groups and len({use.place for use in uses}) == 1 else []
    pairs = [*zip(*[iter(sorted([*copies, *ends])[: 2 * len(copies)])] * 2, strict=False)]
    return len(pairs) == len(copies) and all(
        copy in copies
        and end not in copies
        and kernel.block_of(copy) == kernel.block_of(end)
        and predicate_before(kernel.text, copy) == predicate_before(kernel.text, end)
        for copy, end in pairs
    )


def _places(life: Lifecycle, kernel: Kernel) -> dict[int, Place]:
    """The objects of a lifecycle that instructions name by one ring, or by an address that is always the same in a thread, by their places.

    What an instruction with another address may bring back to the first state is left out.
    """
    addresses, naming = kernel.addresses, [each for each in life.transitions if not each.of_all]
    uses: list[Use] = []
    for first in {each.first for each in naming}:
        by_place = [each for each in naming if each.first is first]
        named = uses_of(addresses, {word for each in by_place for word in each.on}, first=first)
        uses += [use for use in named if any(is_named(each, use.opcode) for each in by_place)]
    ends = [word.encode() for each in naming if each.to == life.start for word in each.on]
    ended = [use.place for use in uses if any(starts(use.opcode, word) for word in ends)]
    in_turn = _come_in_turn(life, kernel, [use for use in uses if use.place])
    known = [(use.offset, use.place, addresses.is_by_thread(use.offset)) for use in uses if use.place]
    return {
        offset: place._replace(places=1) if by_thread else place
        for offset, place, by_thread in known
        if not place.step or by_thread or (in_turn and place.places > 1)
        if not any(other is None or (other != place and other.meets(place)) for other in ended)
    }


def _concerns(life: Lifecycle, kernel: Kernel) -> bool:
    """Return whether a kernel has what a lifecycle is about, and no other rule judges that it lacks a step."""
    begins = [*itertools.takewhile(lambda each: life.start in each.states, life.transitions)]
    others = life.transitions[len(begins) :]
    if not kernel.may_begin(life) or not any(map(kernel.has, begins)):
        return False
    if not life.each and not all(kernel.has(each) for each in others if each.to == life.start):
        return False
    return not (life.alone and BULK_IN.search(kernel.text))
