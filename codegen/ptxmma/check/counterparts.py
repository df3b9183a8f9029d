"""Instructions on an mbarrier that need others on it, anywhere in a kernel: an arrival for a wait, a wait for a copy.

The spec's protocols say which need which.  An mbarrier is a place of a variable in shared memory, or one place of several in an array.
Where it is not known which, or an address is not followed, it may be the one that another needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.check.transitions import has_modifier, is_named
from ptxmma.ptx.addresses import Place
from ptxmma.ptx.outline import is_any, opcodes_of
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel
    from ptxmma.model import ByteCount, Counterpart, Pairing, Protocol
    from ptxmma.ptx.addresses import Addresses

_INIT, _ARRIVE = "mbarrier.init.shared.b64 [tile], 1;", "mbarrier.arrive.shared.b64 _, [tile];"
_EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [tile], 256;"
_COPY = ".reg .b64 %rd1;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+16], [%rd1], 128, [tile];"
_WAIT = "poll:\nmbarrier.try_wait.parity.shared.b64 %p, [tile], 0;\n@!%p bra poll;"

RULES: Mapping[str, Rule] = {
    "unmatched-mbarrier": Rule(
        "An mbarrier for which threads wait is initialised, and others arrive on it; one that counts bytes expects them.",
        "A phase completes when all arrivals have come and all bytes that it expects. A wait for an mbarrier on which nothing arrives "
        "never ends; a copy that nothing waits for may be read, or overwritten, before it is complete. Only kernels that initialise "
        "mbarriers are judged, and only mbarriers whose addresses the text gives.",
        "Write the instruction that the message names, on the same mbarrier.",
        f".reg .pred %p;\n{_INIT}\nbar.sync 0;\n{_WAIT}",
        f".reg .pred %p;\n{_INIT}\nbar.sync 0;\n{_ARRIVE}\n{_WAIT}",
    ),
    "wrong-byte-count": Rule(
        "The bytes that an mbarrier expects are the bytes of the copies and asynchronous stores to it.",
        "With fewer bytes the phase never completes; with more it completes early, or the count overflows. Judged where both numbers are "
        "constants, and the copies are executed with the instruction that expects them; of st.async and red.async, where %tid.x and the "
        "size of the cluster say which threads store, each once in a phase, and to which thread block.",
        "Expect the sum of the copies' sizes, or the bytes of a store times the threads that execute it.",
        f"{_INIT}\n{_EXPECT}\n{_COPY}\n.reg .pred %p;\n{_WAIT}",
        f"{_INIT}\n{_EXPECT.replace('256', '128')}\n{_COPY}\n.reg .pred %p;\n{_WAIT}",
    ),
    "not-followed": Rule(
        "The checker follows the addresses of mbarriers, and the paths through a kernel.",
        "It says nothing of the faults that it cannot follow. A kernel may be wrong where this note stands.",
        "Nothing has to be mended. An address that is a variable and a constant is followed, and an index into an array is.",
        f".reg .pred %p;\n{_INIT}\nbar.sync 0;\n{_ARRIVE.replace('tile', '%r0')}\n{_WAIT}",
        f".reg .pred %p;\n{_INIT}\nbar.sync 0;\n{_ARRIVE}\n{_WAIT}",
    ),
}

#: The operand before the last in brackets.
_BEFORE_LAST = re.compile(rb"\]\s*,\s*([^,\[\]]+?)\s*,\s*\[[^\[\]]*\][^\[\]]*\Z")
_OF_TYPE = re.compile(rb"\.b(\d+)\Z")
#: A predicate before an instruction, or none.
_PREDICATE = re.compile(rb"(@!?[\w$%]+\s+)?\Z")
#: A label, and a branch: two searches are faster than one.
_PARTED = re.compile(rb":(?<=[\w$]:)[\s{]"), re.compile(rb"[\s;}](?:bra|brx|ret|exit|trap|call)\b")
#: Bytes before an instruction in which its predicate is.
_NEAR = 64
_FIRST_PLACE = re.compile(rb"[^\[\]]*\[([^\[\]{]*)\]()")
_LAST_PLACE = re.compile(rb"\[([^\[\]]*)\](?:\s*,\s*([\w$%]+))?[^\[\]]*\Z")


class Use(NamedTuple):
    """An instruction on an object.

    Attributes:
        offset: its place in the text.
        opcode: its opcode.
        place: the object; None if its address is not followed.
        operand: the operand after it.
    """

    offset: int
    opcode: bytes
    place: Place | None
    operand: bytes


class Counterparts:
    """Judges kernels by what the protocols of a spec say that objects need.

    Args:
        protocols: the spec's protocols.
    """

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        self._pairings = [pairing for protocol in protocols for pairing in protocol.pairings]

    def of_kernel(self, kernel: Kernel) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on instructions of a kernel that lack another one on the same object, each with the opcode that it is about."""
        for pairing in self._pairings:
            if not any(map(kernel.mentions, pairing.made)) or not kernel.is_closed:
                continue
            named = uses_of(kernel.addresses, words_of_pairing(pairing))
            uses = [use for use in named if not any(has_modifier(use.opcode, name) for name in pairing.without)]
            yield from _unfollowed(uses)
            for count in pairing.counts if not kernel.mentions("mapa") else ():  # another thread block may bring more bytes
                for use, numbers in _miscounted(kernel, uses, count):
                    message = f"{count.text}: {numbers} (PTX ISA {count.source})"
                    yield Remark(Token(use.opcode, use.offset), "warning", count.rule, message), use.opcode
            for need in pairing.needs:
                for use in _lacking(uses, need):
                    message = f"{need.text} (PTX ISA {need.source})"
                    yield Remark(Token(use.opcode, use.offset), "warning", need.rule, message), use.opcode


def uses_of(addresses: Addresses, words: Iterable[str], *, first: bool = False) -> Iterator[Use]:
    """The instructions of a function with some opcodes, on the objects that their last operands in brackets name, or their first."""
    text = addresses.text
    for match in opcodes_of(text, {word.encode() for word in words}):
        written = text[match.end() : text.find(b";", match.end())]
        operands = _FIRST_PLACE.match(written) if first else _LAST_PLACE.search(written)
        if operands is not None:
            yield Use(match.start(), match[0], addresses.place(operands[1], match.start()), operands[2] or b"")


def words_of_pairing(pairing: Pairing) -> set[str]:
    """The opcodes that a pairing names."""
    counted = (word for count in pairing.counts for word in (*count.expects, *count.brings))
    return {*pairing.made, *counted, *(word for need in pairing.needs for word in (*need.on, *need.needs))}


def _unfollowed(uses: Sequence[Use]) -> Iterator[tuple[Remark, bytes]]:
    """The remark on the objects of a kernel that are not judged, at the first of them."""
    computed = [use for use in uses if use.place is None]
    if computed:
        count = f"{len(computed)} instructions of this kernel name mbarriers" if len(computed) > 1 else "it names an mbarrier"
        text = f"{count} by an address that is computed: they are not followed"
        yield Remark(Token(computed[0].opcode, computed[0].offset), "note", "not-followed", text), computed[0].opcode


def _miscounted(kernel: Kernel, uses: Sequence[Use], count: ByteCount) -> Iterator[tuple[Use, str]]:
    """The instructions that expect another number of bytes than the copies to their object bring, with both numbers.

    An object is judged if all that brings bytes for it is executed with one instruction that expects some: without a label or a branch
    between them, under the same predicate.  Both numbers are constants, and no copy goes to several thread blocks.
    """
    expecting = [use for use in uses if is_any(use.opcode, count.expects)]
    others = [use for use in uses if b"complete_tx" in use.opcode]
    ways = _ways(kernel.text, [*expecting, *others]) if expecting and others else {}
    for use in expecting:
        bringing = [each for each in others if each.place is None or use.place is None or each.place.meets(use.place)]
        if not bringing or use.place is None or any(each.place is None for each in (*expecting, *bringing)):
            continue
        expected_on = [ways[each.offset] for each in expecting if each.place is not None and each.place.meets(use.place)]
        together = [each for each in bringing if ways[each.offset] == ways[use.offset]]
        if not together or len({*expected_on}) < len(expected_on) or not {ways[each.offset] for each in bringing} <= {*expected_on}:
            continue
        sizes = [_size(kernel, each, count) for each in together]
        expected = kernel.addresses.of(use.operand, use.offset)
        if None not in sizes and use.operand and not expected.terms and (brought := sum(filter(None, sizes))) != expected.constant:
            yield use, f"{brought:,} bytes, not {expected.constant:,}; expect the sum of their sizes"


def _ways(text: bytes, uses: Iterable[Use]) -> dict[int, tuple[int, bytes]]:
    """The way to each instruction, by its offset: instructions that are executed together, or none of them, share one."""
    ways: dict[int, tuple[int, bytes]] = {}
    part, before = 0, None
    for offset in sorted(use.offset for use in uses):
        part += before is not None and any(each.search(text, before, offset) for each in _PARTED)
        predicate = _PREDICATE.search(text[max(0, offset - _NEAR) : offset])
        ways[offset], before = (part, (predicate and predicate[1]) or b""), offset
    return ways


def _size(kernel: Kernel, use: Use, count: ByteCount) -> int | None:
    """The bytes that a copy or an answer brings; None if they are not a constant of the text."""
    copies = any(use.opcode.startswith(f"{word}.shared".encode()) for word in count.brings)
    bits = _OF_TYPE.search(use.opcode) if is_any(use.opcode, count.answers) else None
    if not (copies or bits) or b"multicast" in use.opcode:
        return None
    if bits:
        return int(bits[1]) // 8
    operand = _BEFORE_LAST.search(kernel.written(use.offset))
    size = kernel.addresses.of(operand[1], use.offset) if operand is not None else None
    return size.constant if size is not None and not size.terms else None


def _lacking(uses: Sequence[Use], need: Counterpart) -> Iterator[Use]:
    """The first instruction on each object that lacks another one on it."""
    opcodes = {use.opcode for use in uses}
    named = {opcode for opcode in opcodes if is_named(need, opcode)}
    needed = {opcode for opcode in opcodes if is_any(opcode, need.needs)}
    partners = {use.place for use in uses if use.opcode in needed}
    arrays = {use.place for use in uses if use.place is not None and use.place.step}
    judged = set[Place]()
    for use in uses:
        needs_none = need.unless and use.operand == need.unless.encode()
        if use.opcode in named and not needs_none and use.place is not None and use.place not in judged:
            judged.add(use.place)
            singles = need.each and not any(use.place.begins_in(other) for other in arrays)
            met = [
                any(place is None or place.meets(one) for place in partners) for one in (use.place.singles() if singles else [use.place])
            ]
            # An index may not reach the last places: one is missing only if a later one is not.
            if True not in met or not all(met[: len(met) - met[::-1].index(True)]):
                yield use
