"""Instructions that only a part of a warp, of a warpgroup, or of a pair of thread blocks executes, where all of it must.

The threads that may come to an instruction are known from the conditions of its branches that ``%tid.x`` and constants decide, or an
elected thread; the thread blocks of a cluster from those that ``%cluster_ctarank`` decides.  A condition that is not known excludes none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.counterparts import Use, uses_of
from ptxmma.check.kernels import OWN_RANK, PAIR, threads_at
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.check.transitions import ALIGNED, has_modifier
from ptxmma.ptx import thread_values
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.outline import is_any
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.kernels import Kernel
    from ptxmma.model import Statement
    from ptxmma.ptx.known_bits import KnownBits

_FIRST = "mov.u32 %r4, %tid.x;\nsetp.eq.u32 %p0, %r4, 0;"
_ALLOC, _READ, _FREE = (
    each.replace("cta_group::1", "cta_group::2")
    for each in (examples.TENSOR_ALLOCATION, "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE)
)
_ELECT, _PRODUCT, _COMMIT = "elect.sync _|%p0, -1;", examples.TENSOR_PRODUCT.replace("%p0", "%p1"), examples.TENSOR_COMMIT
_RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_RANK = "mov.u32 %r4, %cluster_ctarank;\nsetp.ne.u32 %p0, %r4, 0;"

RULES: Mapping[str, Rule] = {
    "partial-warp": Rule(
        "All threads of a warp execute an instruction with .aligned together; of a warpgroup, where the instruction belongs to one.",
        "The threads act as one: they hold parts of one matrix, or wait for each other. Behaviour is undefined if some of them take "
        "another branch, or have exited. Judged are conditions that %tid.x and constants decide, and those of an elected thread.",
        "Move the instruction out of the branch, or make the condition the same for the whole warp or warpgroup.",
        examples.tensor_kernel(_FIRST, f"@%p0 {examples.TENSOR_ALLOCATION}", _READ, examples.TENSOR_FREE),
        examples.tensor_kernel(_FIRST, examples.TENSOR_ALLOCATION, _READ, examples.TENSOR_FREE),
    ),
    "repeated-issue": Rule(
        "One thread executes an instruction that takes effect for all.",
        "A product, a commit or a copy that all threads of a warp execute is issued 32 times: results are added again, and an mbarrier "
        "counts too many arrivals or bytes. A bulk copy is reported if all of its operands are the same in the warp. With .cta_group::2, "
        "one thread of a pair of thread blocks issues a product for both.",
        "Let elect.sync choose the thread, or compare %tid.x; in a pair, compare %cluster_ctarank, too.",
        examples.tensor_kernel(_ELECT, _RELINQUISH, _PRODUCT, f"@%p0 {_COMMIT}"),
        examples.tensor_kernel(_ELECT, _RELINQUISH, f"@%p0 {_PRODUCT}", f"@%p0 {_COMMIT}"),
    ),
    "lone-cta": Rule(
        "Both thread blocks of a pair allocate and free tensor memory with .cta_group::2.",
        "The instruction of one thread block waits for the other's: the kernel hangs. Judged are conditions that %cluster_ctarank and "
        "constants decide.",
        "Execute it in one warp of each thread block.",
        examples.tensor_kernel(_RANK, f"@%p0 {_ALLOC}", _READ, _FREE),
        examples.tensor_kernel(_RANK, _ALLOC, _READ, _FREE),
    ),
}

#: Parts of opcodes that several threads execute together.
_OF_WARPS = (ALIGNED, b"bar.sync", b"bar.warp.sync", b"shfl.sync", b"elect.sync", b"vote.sync")
#: A commit, which a mask sends to several thread blocks; and the bits of that mask.
_TRACKED, _SENT, _MOST_BLOCKS = b"tcgen05.commit", b".multicast::cluster", 16


class _Part(NamedTuple):
    """A part of a warp or warpgroup: its threads, the number of threads of the whole, and the first of these."""

    threads: int
    size: int
    first: int


class Executions:
    """Judges kernels by a database: its facts on uniform execution, and the issuers of its protocols.

    Attributes:
        words: the first words of the instructions that are judged.
    """

    def __init__(self, catalog: Catalog) -> None:
        spec = catalog.database.spec
        self._catalog, self._scopes = catalog, spec.scopes
        self._both = [issuer for protocol in spec.protocols for issuer in protocol.issuers if issuer.both]
        pairings = [pairing for protocol in spec.protocols for pairing in protocol.pairings]
        self._untold_faults = [(pairing, fault) for pairing in pairings for fault in pairing.phases if fault.fault == "untold"]
        self._once = [issuer for protocol in spec.protocols for issuer in protocol.issuers if issuer.once]
        families = {family for protocol in spec.protocols for family in protocol.families}
        together = [each for each in spec.instructions if any(fact.over for fact in each.uniform)]
        self._asking = {each.start for each in together if each.family in families}
        named = {word for protocol in spec.protocols for life in protocol.lifecycles for each in life.transitions for word in each.on}
        issued = {word.encode() for issuer in (*self._once, *self._both) for word in issuer.instructions}
        self.words = {*self._asking, *issued, *(each.start for each in together if each.name in named)}
        self._over = functools.lru_cache(maxsize=1 << 10)(self._uniform)

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that a part of the threads executes, each with the opcode that it is about."""
        text = kernel.text
        if OWN_RANK in text and any(kernel.mentions(word) for issuer in self._both for word in issuer.instructions):
            yield from self._lone(kernel)
        yield from self._doubled(kernel)
        if _SENT in text:
            yield from self._untold(kernel)
        if b"%tid.y" in text or b"%tid.z" in text:
            return
        yield from self._repeated(kernel)
        if any(word in text for word in self._asking) and (thread_values.INDEX in text or b"elect.sync" in text):
            yield from self._partial(kernel)

    def _partial(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that only a part of a warp or warpgroup may execute."""
        count = thread_values.threads_of(kernel.text)
        judged = [(each, fact) for each in kernel.executed.values() if (fact := self._over(each.opcode)) is not None]
        # The warps of a warpgroup may execute the same instruction in different branches.
        alike: dict[bytes, int] = {}
        for each, _ in judged:
            alike[kernel.written(each.offset)] = alike.get(kernel.written(each.offset), 0) | each.threads
        for each, fact in judged:
            part = _part(each.threads, count, self._scopes["warp"])
            part = part or _part(alike[kernel.written(each.offset)], count, self._scopes[fact.over])
            if part is not None:
                few = f"{part.threads} of the {part.size} threads of a {fact.over if part.size > self._scopes['warp'] else 'warp'}"
                message = f"no more than {few} come here, from thread {part.first} on; all must execute it together"
                size = each.threads.bit_length()
                if self._scopes["warp"] <= size < count and each.threads == (1 << size) - 1:
                    message += (
                        f"; if a thread block has no more than {size} threads, write .maxntid {size}, in CUDA __launch_bounds__({size})"
                    )
                message += f" (PTX ISA {fact.source})"
                yield Remark(Token(each.opcode, each.offset), "warning", "partial-warp", message), each.opcode

    def _uniform(self, opcode: bytes) -> Statement | None:
        """The fact that all threads of the largest scope execute an instruction together."""
        instruction = self._catalog.meaning(spelling_of(opcode)) if ALIGNED in opcode else None
        facts = [fact for fact in instruction.uniform() if fact.over] if instruction is not None else []
        return max(facts, key=lambda fact: self._scopes[fact.over], default=None)

    def _repeated(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that more threads execute than are to."""
        text, warp = kernel.text, self._scopes["warp"]
        named = [issuer for issuer in self._once if any(map(kernel.mentions, issuer.instructions))]
        # A kernel of a single thread has no instruction of a warp, and does not ask which thread it is.
        asked = (_OF_WARPS, (thread_values.INDEX, b"elect.sync"))
        if not named or not all(any(word in text for word in words) for words in asked):
            return
        count = thread_values.threads_of(text)
        issuer_of = functools.cache(
            lambda opcode: next((each for each in named if _is_of(opcode, each.instructions, each.modifiers)), None)
        )
        for each in kernel.executed_by_warps.values():
            issuer = issuer_of(each.opcode)
            if issuer is None or not _has_whole(each.threads, count, warp):
                continue
            if issuer.once == "operands":
                names = words_of(kernel.written(each.offset)[len(each.opcode) :])
                if any(not kernel.function.lanes.of(name).is_shared for name in names if name.startswith(b"%")):
                    continue
            message = f"all {warp} threads of a warp execute it, each for itself: {issuer.alone} does; choose it with elect.sync"
            message += f" (PTX ISA {issuer.source})"
            yield Remark(Token(each.opcode, each.offset), "warning", "repeated-issue", message), each.opcode

    def _doubled(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that both thread blocks of a pair execute, where one does for both."""
        named = [issuer for issuer in self._once if issuer.lone and all(map(kernel.mentions, issuer.lone))]
        issuer_of = functools.cache(lambda opcode: next((each for each in named if _is_of(opcode, each.instructions, each.lone)), None))
        for each in kernel.executed_by_blocks_together.values() if named else ():
            issuer = issuer_of(each.opcode)
            if issuer is not None and _has_whole(each.threads, kernel.ranks.count, PAIR):
                message = f"both thread blocks of a pair execute it, each for itself; by {issuer.pair}: compare %cluster_ctarank"
                message += f" (PTX ISA {issuer.source})"
                yield Remark(Token(each.opcode, each.offset), "warning", "repeated-issue", message), each.opcode

    def _untold(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on waits of a thread block for an mbarrier on which nothing but commits arrives, and only those for others."""
        for pairing, fault in self._untold_faults:
            arrivals = [*uses_of(kernel.addresses, pairing.arrives)]
            for wait in uses_of(kernel.addresses, pairing.waits):
                told = 0
                for use in arrivals:
                    if use.place is None or wait.place is None or use.place.meets(wait.place):
                        told |= _told_by(use, threads_at(kernel.executed_by_blocks, use.offset), kernel.bits)
                untold = threads_at(kernel.executed_by_blocks_together, wait.offset) & ~told
                if told and untold:
                    lone = (untold & -untold).bit_length() - 1
                    message = f"thread block {lone} of the cluster waits for ever: {fault.text} (PTX ISA {fault.source})"
                    yield Remark(Token(wait.opcode, wait.offset), "warning", fault.rule, message), wait.opcode

    def _lone(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that only one thread block of a pair may execute."""
        executed = kernel.executed_by_blocks
        for issuer in self._both:
            for word in issuer.instructions:
                found = kernel.named(functools.partial(_is_of, words=(word,), modifiers=issuer.both))
                named = [executed[event.offset] for _, event in found if event.offset in executed]
                ranks = functools.reduce(int.__or__, [each.threads for each in named], 0)
                lone = next((rank for rank in range(kernel.ranks.count) if ranks >> rank & 1 and not ranks >> (rank ^ 1) & 1), None)
                if lone is not None:
                    message = f"thread block {lone} of the cluster executes it, and {lone ^ 1} never does: it waits for ever; "
                    message += f"execute it in {issuer.pair} (PTX ISA {issuer.source})"
                    yield Remark(Token(named[0].opcode, named[0].offset), "warning", "lone-cta", message), named[0].opcode


def _told_by(use: Use, executing: int, known: KnownBits) -> int:
    """A mask of the thread blocks on whose mbarriers an instruction may arrive; of all, where it is not a commit."""
    if not use.opcode.startswith(_TRACKED):
        return -1
    if _SENT not in use.opcode:
        return executing
    mask = known.of(use.operand).within(_MOST_BLOCKS)
    return mask.value | mask.unknown


def _is_of(opcode: bytes, words: tuple[str, ...], modifiers: Sequence[str]) -> bool:
    """Return whether an opcode is one of an issuer's, and has some modifiers."""
    return is_any(opcode, words) and all(has_modifier(opcode, each) for each in modifiers)


def _has_whole(threads: int, count: int, size: int) -> bool:
    """Return whether a mask of the threads of a block has all of a warp."""
    whole = (1 << size) - 1
    return any(threads >> first & whole == whole for first in range(0, count - size + 1, size))


def _part(threads: int, count: int, size: int) -> _Part | None:
    """The first part of a warp or warpgroup of some size that a mask of the threads of a block has; None where it has whole ones."""
    everyone = (1 << count) - 1
    for first in range(0, count if threads & everyone != everyone else 0, size):
        part, whole = (mask >> first & (1 << size) - 1 for mask in (threads & everyone, everyone))
        if part and part != whole:
            return _Part(part.bit_count(), whole.bit_count(), first)
    return None
