"""Shared memory that one thread reads, or copies, without a barrier after another has written it, and copies to what others still read.

Judged are addresses that are a variable, constants, what ``%tid.x`` gives, and the place in a ring that is counted by the rounds of a loop.
A race is reported if some way leads from the one access to the other, and none has a barrier.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.counterparts import Use, uses_of
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.check.transitions import has_modifier
from ptxmma.ptx import thread_values
from ptxmma.ptx.graphs import spread
from ptxmma.ptx.outline import opcodes_of
from ptxmma.ptx.statements import Token
from ptxmma.ptx.sums import Remainder, Rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel
    from ptxmma.model import Race
    from ptxmma.ptx.sums import Term

    #: Marks of each block: a place, its kind, and a number of groups.
    _Events = Mapping[int, list[tuple[int, int, int]]]

_STORED = "mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, tile;\nadd.u32 %r2, %r3, %r2;\nst.shared.b32 [%r2], %r0;"
_COPIED = (
    "setp.ne.u32 %p0, %r1, 0;\n@%p0 bra done;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\ndone:"
)

RULES: Mapping[str, Rule] = {
    "unordered-access": Rule(
        "A barrier is between an access of one thread to shared memory and one of another thread that depends on it.",
        "Threads of a block run in any order. A copy that one thread issues may read what the others have not stored yet, and a copy "
        "that comes too early overwrites what they have not read. Judged are addresses that the text gives for each thread, where no way "
        "from the one access to the other has a barrier.",
        "Let a barrier of the thread block come between them; between the threads of one warp, bar.warp.sync.",
        f".reg .pred %p<2>;\n{_STORED}\nfence.proxy.async.shared::cta;\n{_COPIED}",
        f".reg .pred %p<2>;\n{_STORED}\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{_COPIED}",
    ),
}
#: Marks on the ways between two accesses.
_BEGINS, _ENDS, _ORDERS, _RESETS = range(4)
#: Bytes that an instruction accesses in each thread, by its opcode: of a vector, or a row of a matrix.
_WIDTH = re.compile(rb"\.shared(?:::cta)?(?:\.v([248]))?\.[busf](\d+)\Z")
_ROW = 16
#: Bytes of a word, and bytes of a copy that are looked at.
_WORD, _MOST = 4, 1 << 10
_SIZE, _COUNT = re.compile(rb"\]\s*,\s*(\d+)"), re.compile(rb"\s*(\d+)\s*;")
#: The bytes that a copy has at least.
_LEAST = 16


class _Access(NamedTuple):
    """An access to shared memory.

    Attributes:
        use: the instruction.
        base: the variable, with what else is the same in all threads.
        ring: the place in a ring, and its step; None without one.
        threads: a mask of the threads that execute it.
        touched: masks of the threads that access each word of four bytes, by its number after the base.
    """

    use: Use
    base: frozenset[tuple[Term, int]]
    ring: tuple[Remainder, int] | None
    threads: int
    touched: Mapping[int, int]

    def conflicts(self, other: _Access, *, warps: bool) -> bool:
        """Return whether a thread that does not execute the other access, or one of another warp, touches a word of the other.

        The places in the ring are taken to be the same.
        """
        for word in self.touched.keys() & other.touched.keys():
            one, two = self.touched[word], other.touched[word]
            if warps and len(thread_values.warps_of(one | two)) > 1:
                return True
            if not warps and one & ~other.threads:
                return True
        return False


def of_kernel(kernel: Kernel, races: Sequence[Race], meetings: Sequence[str]) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on accesses of a kernel that nothing orders, each with the opcode that it is about: one for each race of the spec.

    Args:
        kernel: the kernel.
        races: the spec's facts on accesses that a barrier orders.
        meetings: the instructions by which threads may hear of each other's accesses.
    """
    if not kernel.is_closed or not kernel.mentions("%tid.x") or any(map(kernel.mentions, ("%tid.y", "%tid.z"))):
        return
    for race in races:
        if not all(any(map(kernel.mentions, words)) for words in (race.earlier, race.later)):
            continue
        earlier, later = _accesses(kernel, race.earlier), _accesses(kernel, race.later, race.modifiers)
        events = _events(kernel, meetings, race.resets) if earlier and later else {}
        found = next(((one, other) for other in later for one in earlier if _is_unordered(kernel, race, events, one, other)), None)
        if found is not None:
            (one, _), (other, _) = found[0].use[:2], found[1].use[:2]
            message = f"{race.text} in line {kernel.function.position(one)[0]}, and no barrier comes between; {race.mend}"
            opcode = found[1].use.opcode
            yield Remark(Token(opcode, other), "warning", race.rule, f"{message} (PTX ISA {race.source})"), opcode


def _accesses(kernel: Kernel, words: Sequence[str], modifiers: Sequence[str] = ()) -> list[_Access]:
    """The accesses of some instructions whose addresses are known in each thread that executes them."""
    copies = words[0].startswith("cp.async.c")  # to what their first operand names
    uses = [use for use in uses_of(kernel.addresses, words, first=copies) if all(has_modifier(use.opcode, each) for each in modifiers)]
    return [each for each in (_access(kernel, use, first=copies) for use in uses) if each is not None]


def _access(kernel: Kernel, use: Use, *, first: bool) -> _Access | None:
    written = kernel.written(use.offset)
    named = written[written.find(b"[") if first else written.rfind(b"[") :]
    total = kernel.addresses.of(named[: named.find(b"]") + 1], use.offset)
    threads = kernel.coming_together(use.offset)
    width = _width_of(kernel, use)
    rings: list[tuple[Remainder, int]] = []
    offsets = [total.constant] * kernel.threads.count
    base: set[tuple[Term, int]] = set()
    for term, times in total.terms.items():
        numbers = _by_thread(kernel, term)
        if numbers is not None:
            offsets = [offset + times * number for offset, number in zip(offsets, numbers, strict=True)]
        elif isinstance(term, Remainder):
            rings.append((term, times))
        elif isinstance(term, bytes) and not kernel.registers.writes(term):
            base.add((term, times))
        else:
            return None
    if not threads or not width or len(rings) > 1 or not base:
        return None
    touched: dict[int, int] = {}
    for thread in (number for number in range(threads.bit_length()) if threads >> number & 1):
        for word in range(offsets[thread] // _WORD, (offsets[thread] + min(width, _MOST)) // _WORD):
            touched[word] = touched.get(word, 0) | 1 << thread
    return _Access(use, frozenset(base), rings[0] if rings else None, threads, touched)


def _by_thread(kernel: Kernel, term: Term) -> list[int] | None:
    """The number of a part of a sum in each thread; None where it is not known."""
    if isinstance(term, bytes):
        return kernel.threads.numbers_of(term)
    if isinstance(term, Rounds):
        return None
    total = [term.constant] * kernel.threads.count
    for inner, times in term.terms:
        numbers = _by_thread(kernel, inner)
        if numbers is None:
            return None
        total = [each + times * number for each, number in zip(total, numbers, strict=True)]
    return [each % term.values if isinstance(term, Remainder) else each // term.divisor for each in total]


def _width_of(kernel: Kernel, use: Use) -> int:
    """The bytes that an instruction accesses in each thread; 0 where they are not known."""
    if b"matrix" in use.opcode:
        return _ROW
    if use.opcode.startswith(b"cp.async.c"):
        size = _SIZE.search(kernel.written(use.offset))
        return int(size[1]) if size else 0
    if b"bulk" not in use.opcode:
        match = _WIDTH.search(use.opcode)
        return int(match[1] or 1) * int(match[2]) // 8 if match else 0
    brought = kernel.addresses.of(use.operand or b"0", use.offset)
    return _LEAST if b".tensor" in use.opcode or brought.terms else brought.constant


def _is_unordered(kernel: Kernel, race: Race, events: _Events, one: _Access, other: _Access) -> bool:
    """Return whether nothing orders two accesses of different threads to the same bytes."""
    rounds = _rounds_between(one, other) if one.base == other.base else -1
    known = rounds is None or 0 <= rounds <= 1
    return known and one.conflicts(other, warps=race.warps) and _is_bare(kernel, race, events, one, other, rounds)


def _rounds_between(one: _Access, other: _Access) -> int | None:
    """The rounds of a loop between two accesses to one place of a ring; None without a ring, -1 if they are unknown."""
    if one.ring is None and other.ring is None:
        return None
    if one.ring is None or other.ring is None:
        return -1
    (ring, step), (next_ring, next_step) = one.ring, other.ring
    counts = [term for term, times in ring.terms if times == 1 and isinstance(term, Rounds)]
    if ring.terms != next_ring.terms or len(counts) != len(ring.terms) or (ring.values, step) != (next_ring.values, next_step):
        return -1
    return (ring.constant - next_ring.constant) % ring.values


def _is_bare(kernel: Kernel, race: Race, events: _Events, one: _Access, other: _Access, rounds: int | None) -> bool:
    """Return whether a thread comes from one access to the other, after some rounds of a loop, and on no way through a barrier."""
    blocks = [kernel.block_of(each.use.offset) for each in (one, other)]
    loop = next((loop for loop in kernel.graph.loops if loop.issuperset(blocks)), frozenset[int]())
    if rounds is not None and not loop:
        return False
    waits = [count for block, marks in events.items() if block in loop or not loop for _, kind, count in marks if kind == _RESETS]
    if race.resets and (len({*waits}) != 1 or (waits[0] and len(waits) > 1)):
        return False  # which wait covers a copy is not followed
    covering = waits[0] + 1 if waits else 0
    rank, head = kernel.graph.rank, min(loop, key=kernel.graph.rank.__getitem__) if loop else -1
    met = {False: 0, True: 0}

    def leaving(node: tuple[int, int, bool, int, int]) -> Iterator[tuple[tuple[int, int, bool, int, int], int]]:
        number, begin, ordered, turn, waited = node
        marks = [*events.get(number, ()), (one.use.offset, _BEGINS, 0), (other.use.offset, _ENDS, 0)]
        for _, kind, _ in sorted(each for each in marks if kernel.block_of(each[0]) == number and each[0] > begin):
            if kind == _BEGINS:
                return
            if kind == _ENDS and (rounds is None or turn == rounds) and waited == covering:
                met[ordered] = 1
                return
            ordered = (kind == _ORDERS or ordered) and kind != _RESETS
            waited = min(waited + (kind == _RESETS), covering + 1)
        for after, taking in kernel.takers[number]:
            crossing = after == head and number in loop and rank[number] >= rank[head]
            if after >= 0 and turn + crossing <= (rounds or 1):
                yield (after, -1, ordered, turn + crossing, waited), taking

    spread({(blocks[0], one.use.offset, False, 0, 0): one.threads & other.threads}, leaving)
    return bool(met[False]) and not met[True]


def _events(kernel: Kernel, meetings: Sequence[str], resets: Sequence[str]) -> _Events:
    """The instructions of each block that order accesses, or wait for earlier ones, with the number of groups that may go on."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for kind, words in ((_ORDERS, meetings), (_RESETS, resets)):
        for each in opcodes_of(kernel.text, {word.encode() for word in words}):
            count = _COUNT.match(kernel.text, each.end())
            found.setdefault(kernel.block_of(each.start()), []).append((each.start(), kind, int(count[1]) if count else 0))
    return found
