"""Instructions that only a part of a warp, of a warpgroup, or of a pair of thread blocks executes, where all of it must.

The threads that may come to an instruction are known from the conditions of its branches that ``%tid.x`` and constants decide, or an
elected thread; the thread blocks of a cluster from those that ``%cluster_ctarank`` decides.  A condition that is not known excludes none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.clusters import size_of
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.ptx import thread_values
from ptxmma.ptx.outline import starts
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.kernel_paths import KernelPaths, Reached
    from ptxmma.model import Issuer, Statement
    from ptxmma.ptx.statements import Function

_FIRST = "mov.u32 %r4, %tid.x;\nsetp.eq.u32 %p0, %r4, 0;"
_ALLOC, _READ, _FREE = (
    each.replace("cta_group::1", "cta_group::2")
    for each in (examples.TENSOR_ALLOCATION, "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE)
)
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
    "lone-cta": Rule(
        "Both thread blocks of a pair allocate and free tensor memory with .cta_group::2.",
        "The instruction of one thread block waits for the other's: the kernel hangs. Judged are conditions that %cluster_ctarank and "
        "constants decide.",
        "Execute it in one warp of each thread block.",
        examples.tensor_kernel(_RANK, f"@%p0 {_ALLOC}", _READ, _FREE),
        examples.tensor_kernel(_RANK, _ALLOC, _READ, _FREE),
    ),
}

#: A modifier that says that threads execute an instruction together.
_ALIGNED = b".aligned"
_RANK_REGISTER = b"%cluster_ctarank"
#: Thread blocks of a pair.
_PAIR = 2


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
        families = {family for protocol in spec.protocols for family in protocol.families}
        self.words = {each.start for each in spec.instructions if each.family in families and any(fact.over for fact in each.uniform)}
        self._over = functools.lru_cache(maxsize=1 << 10)(self._uniform)

    def of_kernel(self, function: Function, paths: KernelPaths) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that a part of the threads executes, each with the opcode that it is about.

        Args:
            function: the kernel.
            paths: the paths through it.
        """
        text = function.text
        if not text.startswith(b".entry"):
            return
        if _RANK_REGISTER in text and any(word.encode() in text for issuer in self._both for word in issuer.instructions):
            yield from self._lone(function, paths)
        if not any(word in text for word in self.words) or b"%tid.y" in text or b"%tid.z" in text:
            return
        if thread_values.INDEX in text or b"elect.sync" in text:
            count = thread_values.threads_of(text)
            yield from self._partial(text, paths.reached(paths.registers.masks(thread_values.INDEX, count).threads), count)

    def _partial(self, text: bytes, reached: Sequence[Reached], count: int) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that only a part of a warp or warpgroup may execute."""
        judged = [(each, fact) for each in reached if (fact := self._over(each.opcode)) is not None]
        # The warps of a warpgroup may execute the same instruction in different branches.
        alike: dict[bytes, int] = {}
        for each, _ in judged:
            alike[_written(text, each)] = alike.get(_written(text, each), 0) | each.threads
        for each, fact in judged:
            part = _part(each.threads, count, self._scopes["warp"]) or _part(alike[_written(text, each)], count, self._scopes[fact.over])
            if part is not None:
                few = f"{part.threads} of the {part.size} threads of a {fact.over if part.size > self._scopes['warp'] else 'warp'}"
                message = f"no more than {few} come here, from thread {part.first} on; all must execute it together (PTX ISA {fact.source})"
                yield Remark(Token(each.opcode, each.offset), "warning", "partial-warp", message), each.opcode

    def _uniform(self, opcode: bytes) -> Statement | None:
        """The fact that all threads of a scope execute an instruction together: of the largest scope."""
        instruction = self._catalog.meaning(spelling_of(opcode)) if _ALIGNED in opcode else None
        facts = [fact for fact in instruction.uniform() if fact.over] if instruction is not None else []
        return max(facts, key=lambda fact: self._scopes[fact.over], default=None)

    def _lone(self, function: Function, paths: KernelPaths) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions that only one thread block of a pair may execute."""
        count = max(size_of(function.text), _PAIR)
        executed = paths.reached(paths.registers.masks(_RANK_REGISTER, count).threads)
        for issuer in self._both:
            for word in issuer.instructions:
                named = [each for each in executed if _is_of(each.opcode, word, issuer)]
                ranks = functools.reduce(int.__or__, [each.threads for each in named], 0)
                lone = next((rank for rank in range(count) if ranks >> rank & 1 and not ranks >> (rank ^ 1) & 1), None)
                if lone is not None:
                    message = f"thread block {lone} of the cluster executes it, and {lone ^ 1} never does; by {issuer.pair}"
                    message += f" (PTX ISA {issuer.source})"
                    yield Remark(Token(named[0].opcode, named[0].offset), "warning", "lone-cta", message), named[0].opcode


def _is_of(opcode: bytes, word: str, issuer: Issuer) -> bool:
    return starts(opcode, word.encode()) and any(each.encode() in opcode.split(b".") for each in issuer.both)


def _written(text: bytes, each: Reached) -> bytes:
    """The text of an instruction."""
    return text[each.offset : text.find(b";", each.offset)]


def _part(threads: int, count: int, size: int) -> _Part | None:
    """The first part of a warp or warpgroup of some size that a mask of the threads of a block has; None where it has whole ones."""
    everyone = (1 << count) - 1
    for first in range(0, count if threads & everyone != everyone else 0, size):
        part, whole = (mask >> first & (1 << size) - 1 for mask in (threads & everyone, everyone))
        if part and part != whole:
            return _Part(part.bit_count(), whole.bit_count(), first)
    return None
