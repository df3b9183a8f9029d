"""Faults that are put into modules of other projects, one kind at a time, and how many of them ``ptxmma check`` finds.

A fault is found if the checker reports its rule and did not do so before.  A module in which a fault has no place does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.check import Checker
from ptxmma.check.counterparts import Use, uses_of, words_of_pairing
from ptxmma.check.mbarriers import are_alike
from ptxmma.model import Pairing
from ptxmma.ptx.addresses import Addresses
from ptxmma.ptx.conditions import Predicates
from ptxmma.ptx.opcodes import Opcodes
from ptxmma.ptx.statements import functions
from ptxmma_proof import thread_faults

#: A predicate before an instruction.
_PREDICATE = re.compile(rb"@\s*!?\s*[\w$%]+\s*\Z")
_BLOCK_BARRIER = re.compile(rb"(?:@\S+\s+)?\bbar(?:\.sync|\.warp|rier\.sync|rier\.cluster)[^;]*;")
_FIRST_WAIT = re.compile(rb"mbarrier\.(?:try|test)_wait")
_GROUP_WAIT = re.compile(rb"(cp\.async\.wait_group\s+)(\d+)")
_COMMIT = rb"cp\.async\.commit[^;]*;"


class Fault(NamedTuple):
    """A kind of fault.

    Attributes:
        name: the fault in words.
        rule: the rule that it breaks.
        put: a module with the fault; None where it has no place.
    """

    name: str
    rule: str
    put: Callable[[Module], bytes | None]


class Module(NamedTuple):
    """A module of PTX.

    Attributes:
        text: its text.
        uses: the instructions on mbarriers in its first kernel that initialises one, at their places in the text.
        sources: the bulk copies of that kernel that belong to groups, with what they read.
    """

    text: bytes
    uses: Sequence[Use] = ()
    sources: Sequence[Use] = ()


class Row(NamedTuple):
    """A kind of fault, and the modules in which it was found and missed."""

    fault: Fault
    found: int
    missed: Sequence[str]

    def __str__(self) -> str:
        return f"{self.found:>5} of {self.found + len(self.missed):>5}  {self.fault.rule:<22} {self.fault.name}"


def run(catalog: Catalog, files: Iterable[Path]) -> list[Row]:
    """Put each kind of fault into each file."""
    checker = Checker(catalog.database)
    opcodes = Opcodes(catalog.database.spec)
    pairing = next(each for protocol in catalog.database.spec.protocols for each in protocol.pairings)
    found, missed = Counter[Fault](), dict[Fault, list[str]]((fault, []) for fault in FAULTS)
    for file in files:
        module = _module(file.read_bytes(), opcodes, pairing)
        before = {each.rule for each in checker.check(module.text)}
        for fault in FAULTS:
            text, rules = fault.put(module), {*fault.rule.split()}
            if text is None or text == module.text or before & rules:
                continue
            if any(each.rule in rules for each in checker.check(text)):
                found[fault] += 1
            else:
                missed[fault].append(file.name)
    return [Row(fault, found[fault], missed[fault]) for fault in FAULTS]


def _module(text: bytes, opcodes: Opcodes, pairing: Pairing) -> Module:
    begin = 0
    for function in functions([text], opcodes):
        kernel = function.text
        if kernel.startswith(b".entry") and any(word.encode() in kernel for word in pairing.made):
            addresses = Addresses(kernel, Predicates(kernel))
            uses = [use._replace(offset=use.offset + begin) for use in uses_of(addresses, words_of_pairing(pairing))]
            copies = uses_of(addresses, ("cp.async.bulk", "cp.reduce.async.bulk"))
            return Module(text, uses, [use for use in copies if b"bulk_group" in use.opcode])
        begin += len(kernel)
    return Module(text)


def _without(text: bytes, places: Iterable[int]) -> bytes:
    """A text without the instructions at some places, of the same length."""
    for place in places:
        begin, end = place, text.find(b";", place) + 1
        if predicate := _PREDICATE.search(text[max(0, place - 60) : place]):
            begin -= len(predicate[0])
        text = text[:begin] + b" " * (end - begin) + text[end:]
    return text


def _unmatched(*words: bytes, other_than: bytes = b"\0", where: tuple[bytes, ...] = ()) -> Callable[[Module], bytes | None]:
    """The fault that all instructions with some opcodes are missing on the mbarriers of one address, on which there are others."""

    def put(module: Module) -> bytes | None:
        known = [(use, use.place) for use in module.uses if use.place is not None]
        named = [(use, place) for use, place in known if use.opcode.startswith(words) and other_than not in use.opcode]
        others = [(use, place) for use, place in known if use.opcode.startswith(where) and b"mbarrier::" in use.opcode] if where else named
        return _without(module.text, [use.offset for use, place in named if place.meets(others[0][1])]) if others else None

    return put


def _inverted(arrives: bytes) -> Callable[[Module], bytes | None]:
    """The opposite parity in all waits for the mbarriers of one address: the first that an instruction names.

    A wait for the constant 0 for an arrival would end at once, not never.
    """

    def opposite(operand: bytes, name: bytes) -> tuple[bytes, bytes]:
        if operand.isdigit():
            return b"", b"%d" % (operand == b"0")
        return b"xor.b32 %s, %s, 1; " % (name, operand), name

    def put(module: Module) -> bytes | None:
        waits = _waits(module, arrives)
        ends = arrives == _ARRIVES and any(use.operand == b"0" for use in waits)
        return None if ends else _with_operands(module, waits, opposite)

    return put


def _fixed(arrives: bytes, parity: bytes) -> Callable[[Module], bytes | None]:
    """One parity in all waits for the mbarriers of one ring: the first that an instruction names."""
    return lambda module: _with_operands(module, _waits(module, arrives, ring=True), lambda *_: (b"", parity))


def _waits(module: Module, arrives: bytes, *, ring: bool = False) -> list[Use]:
    """The waits for the mbarriers of one address, or of one ring, on which there are arrivals of a kind."""
    named = [(use.opcode, use.place) for use in module.uses if use.place is not None]
    arriving = [place for opcode, place in named if arrives in opcode and b"expect_tx" not in opcode]
    waits = [(use, use.place) for use in module.uses if b"_wait.parity" in use.opcode and use.place is not None]
    of_kind = [(use, place) for use, place in waits if any(are_alike(place, each) for each in arriving) and (place.step or not ring)]
    return [use for use, place in waits if are_alike(place, of_kind[0][1])] if of_kind else []


def _without_waits(module: Module) -> bytes | None:
    """No waits for mbarriers that count no bytes, in modules that copy to others."""
    counted = [use.place for use in module.uses if b"complete_tx" in use.opcode]
    waits = [use for use in module.uses if b"_wait.parity" in use.opcode]
    kept = [use for use in waits if use.place is None or any(each is None or are_alike(use.place, each) for each in counted)]
    return _without(module.text, [use.offset for use in waits if use not in kept]) if counted and 0 < len(kept) < len(waits) else None


def _without_readers(module: Module) -> bytes | None:
    """No waits for the threads that read results in tensor memory: for mbarriers on which threads arrive, and that count no bytes."""
    places = [(use, use.place) for use in module.uses if use.place is not None]
    told = [place for use, place in places if use.opcode.startswith(b"mbarrier.arrive") and b"expect_tx" not in use.opcode]
    others = [place for use, place in places if b"expect_tx" in use.opcode or use.opcode.startswith(b"tcgen05.commit")]
    waits = [(use, place) for use, place in places if b"_wait.parity" in use.opcode]
    gone = [use.offset for use, place in waits if any(are_alike(place, each) for each in told)]
    kept = [use.offset for use, place in waits if any(are_alike(place, each) for each in others)]
    return _without(module.text, gone) if gone and b"tcgen05.ld" in module.text and not {*gone} & {*kept} else None


def _more(module: Module) -> bytes | None:
    """One arrival more in all phases of the mbarriers of one address for which threads wait."""
    waited = [use.place for use in module.uses if b"_wait.parity" in use.opcode and use.place is not None]
    made = [(use, use.place) for use in module.uses if use.opcode.startswith(b"mbarrier.init") and use.place is not None]
    of_one = [use for use, place in made if waited and place.meets(waited[0])]
    return _with_operands(module, of_one, lambda operand, name: (b"add.u32 %s, %s, 1; " % (name, operand), name))


def _with_operands(module: Module, uses: Sequence[Use], change: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> bytes | None:
    """The text of a module with other operands after some mbarriers.

    Args:
        module: the module.
        uses: the instructions, in the order of the text.
        change: for an operand and the name of a new register, instructions before, and the operand in its place.
    """
    text = module.text
    for use in uses[::-1]:
        predicate = _PREDICATE.search(text[max(0, use.offset - 60) : use.offset])
        begin, end = use.offset - len(predicate[0] if predicate else b""), text.find(b";", use.offset)
        operands, _, rest = text[begin:end].rpartition(b"]")
        computed, operand = change(use.operand, _REGISTER % use.offset)
        text = text[:begin] + computed + operands + b"]" + rest.replace(use.operand, operand, 1) + text[end:]
    begin = text.find(b"{", text.rfind(b".entry", 0, module.uses[0].offset)) + 1 if module.uses else 0
    return text[:begin] + b" .reg .b32 %%changed<%d>; " % len(text) + text[begin:] if text != module.text else None


def _unpredicated(module: Module) -> bytes | None:
    """The first arrival that a predicate lets one thread execute is executed by all threads that come there."""
    for use in module.uses:
        predicate = _PREDICATE.search(module.text[max(0, use.offset - 60) : use.offset])
        if predicate is not None and use.opcode.startswith(b"mbarrier.arrive"):
            return module.text[: use.offset - len(predicate[0])] + b" " * len(predicate[0]) + module.text[use.offset :]
    return None


def _initialisations(module: Module) -> bytes | None:
    """No instruction of the module initialises the mbarriers of one address, while others are: otherwise another kernel may do it."""
    put = _unmatched(b"mbarrier.init")(module)
    return put if put is not None and b"mbarrier.init" in put else None


def _expectations(module: Module) -> bytes | None:
    """No instruction of the module expects bytes."""
    named = [use.offset for use in module.uses if b"expect_tx" in use.opcode]
    return _without(module.text, named) if named else None


def _barriers(module: Module) -> bytes | None:
    """No barrier between ``mbarrier.init`` and the first wait."""
    inits = [use.offset for use in module.uses if use.opcode.startswith(b"mbarrier.init")]
    wait = _FIRST_WAIT.search(module.text, inits[0]) if inits else None
    if wait is None:
        return None
    begin = module.text.rfind(b".entry", 0, inits[0])
    return module.text[:begin] + _BLOCK_BARRIER.sub(b"", module.text[begin : wait.start()]) + module.text[wait.start() :]


def _again(module: Module) -> bytes | None:
    """The first ``mbarrier.init`` once more, under its predicate, after the barrier that follows it."""
    inits = [use.offset for use in module.uses if use.opcode.startswith(b"mbarrier.init")]
    barrier = _BLOCK_BARRIER.search(module.text, inits[0]) if inits else None
    if barrier is None:
        return None
    predicate = _PREDICATE.search(module.text[max(0, inits[0] - 60) : inits[0]])
    again = (predicate[0] if predicate else b"") + module.text[inits[0] : module.text.find(b";", inits[0]) + 1]
    return module.text[: barrier.end()] + again + module.text[barrier.end() :]


def _published(module: Module) -> bytes | None:
    return re.sub(rb"fence\.mbarrier_init[^;]*;", b"", module.text) if b"arrive.relaxed" in module.text else None


def _of_groups(put: Callable[[bytes], bytes]) -> Callable[[Module], bytes | None]:
    """A fault in the groups of ``cp.async``, in modules that have them and no ``wgmma``."""

    def of_module(module: Module) -> bytes | None:
        text = module.text
        has = re.search(rb"cp\.async\.c[ag]", text) and b"cp.async.wait" in text and b"wgmma" not in text
        return put(text) if has else None

    return of_module


def _weakened(text: bytes) -> bytes:
    """Waits that let all groups go on that are committed before the first of them."""
    first = _GROUP_WAIT.search(text)
    groups = len(re.findall(_COMMIT, text[: first.start()])) if first else 0
    return _GROUP_WAIT.sub(lambda match: match[1] + b"%d" % max(groups, int(match[2])), text)


def _of_sources(put: Callable[[bytes], bytes]) -> Callable[[Module], bytes | None]:
    """A fault in the groups of bulk copies, in modules in which two of them read from one address."""

    def of_module(module: Module) -> bytes | None:
        places = [use.place for use in module.sources if use.place is not None and not use.place.step]
        return put(module.text) if len({*places}) < len(places) else None

    return of_module


_BULK_WAIT = rb"(?:@\S+\s+)?cp\.async\.bulk\.wait_group[^;]*;"
_BULK_COMMIT = rb"(?:@\S+\s+)?cp\.async\.bulk\.commit_group[^;]*;"


def _of_text(put: Callable[[bytes], bytes | None]) -> Callable[[Module], bytes | None]:
    """A fault that the text of a module alone has."""
    return lambda module: put(module.text)


#: A register for another operand of the instruction at a place.
_REGISTER = b"%%changed%d"
_FILLS = (b"cp.async.bulk", b"st.async", b"red.async")
_ARRIVES = b"mbarrier.arrive"
_WAITS = (b"mbarrier.try_wait", b"mbarrier.test_wait")
FAULTS: Sequence[Fault] = (
    *(Fault(fault.name, fault.rule, _of_text(fault.put)) for fault in thread_faults.FAULTS),
    Fault("no barrier between mbarrier.init and the first wait", "unpublished-barrier", _barriers),
    Fault("no fence.mbarrier_init before barrier.cluster.arrive.relaxed", "unpublished-barrier", _published),
    Fault("mbarrier.init once more after the next barrier", "initialised-twice", _again),
    Fault("no expect_tx", "unmatched-mbarrier", _expectations),
    Fault("no wait for the mbarriers at one address that count bytes", "unmatched-mbarrier", _unmatched(*_WAITS, where=_FILLS)),
    Fault("no copy that the mbarriers of one address count", "unmatched-mbarrier", _unmatched(*_FILLS, other_than=b"bulk_group")),
    Fault("no arrival at one address", "unmatched-mbarrier", _unmatched(b"mbarrier.arrive", b"tcgen05.commit", other_than=b"expect_tx")),
    Fault("no mbarrier.init at one address", "unmatched-mbarrier", _initialisations),
    Fault("the opposite parity at one address on which threads arrive", "endless-wait", _inverted(_ARRIVES)),
    Fault("the opposite parity at one address that counts bytes", "early-wait", _inverted(b"complete_tx")),
    Fault("one parity in a ring on which threads arrive", "unchanged-parity", _fixed(_ARRIVES, b"1")),
    Fault("one parity in a ring that counts bytes", "unchanged-parity", _fixed(b"complete_tx", b"0")),
    Fault("one arrival more in mbarrier.init at one address", "wrong-arrival-count", _more),
    Fault("an arrival of one thread without its predicate", "wrong-arrival-count", _unpredicated),
    Fault("no wait for the mbarriers that count no bytes", "refilled-stage", _without_waits),
    Fault("no wait for the readers of a result in tensor memory", "refilled-stage", _without_readers),
    Fault("no cp.async.bulk.wait_group", "reused-source", _of_sources(lambda text: re.sub(_BULK_WAIT, b"", text))),
    Fault("no cp.async.bulk.commit_group", "reused-source", _of_sources(lambda text: re.sub(_BULK_COMMIT, b"", text))),
    Fault("no wait for cp.async", "unwaited-copy", _of_groups(lambda text: re.sub(rb"cp\.async\.wait[^;]*;", b"", text))),
    Fault("no cp.async.commit_group", "unwaited-copy", _of_groups(lambda text: re.sub(_COMMIT, b"", text))),
    Fault("cp.async.wait_group that lets all groups go on", "unwaited-copy", _of_groups(_weakened)),
)


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The rows as lines of text, each with some modules in which the fault was missed."""
    for row in rows:
        yield str(row)
        yield from (f"{'':>16}missed in {name}" for name in row.missed[:3])
