"""Instructions that come at a wrong time on a path through a kernel: the spec's protocols say which states they may not come in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ptxmma.check import rule_examples as examples
from ptxmma.check.misuses import Misuse, misuses
from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.check.transitions import EXIT
from ptxmma.ptx.flow_events import words_of
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ptxmma.check.kernels import Kernel
    from ptxmma.model import Lifecycle
    from ptxmma.ptx.conditions import Condition
    from ptxmma.ptx.statements import Function, Statement

_READ = "ld.shared.b32 %r0, [slot];"
_RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_LOAD, _WAIT = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"
_STORE, _STORED = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r2};", "tcgen05.wait::st.sync.aligned;"
_ALLOC, _FREE = examples.TENSOR_ALLOCATION, examples.TENSOR_FREE
_LARGE, _SMALL = _ALLOC.replace(" 32;", " 512;"), _ALLOC.replace(" 32;", " 256;")
_FREE_LARGE, _FREE_SMALL = _FREE.replace(" 32;", " 512;"), _FREE.replace(" 32;", " 256;")

RULES: Mapping[str, Rule] = {
    "freed-in-use": Rule(
        "A thread frees tensor memory after the loads, stores and products of all threads are complete.",
        "These operations are asynchronous. Another thread block may get the columns while they still read or write there. Where one warp "
        "frees what others use, these tell it that they have finished.",
        "Write tcgen05.wait::ld or tcgen05.wait::st, or wait for the mbarrier of tcgen05.commit, before tcgen05.dealloc. Where other warps "
        "have loaded or stored, execute a barrier of the thread block between their last access and tcgen05.dealloc.",
        examples.tensor_kernel(_ALLOC, _READ, _STORE, _FREE, _STORED),
        examples.tensor_kernel(_ALLOC, _READ, _STORE, _STORED, _FREE),
    ),
    "relinquished-permit": Rule(
        "A thread block allocates tensor memory before it executes tcgen05.relinquish_alloc_permit.",
        "After that instruction, it may not allocate: behaviour is undefined.",
        "Write tcgen05.relinquish_alloc_permit after the last tcgen05.alloc.",
        examples.tensor_kernel(_RELINQUISH, _ALLOC, _READ, _FREE),
        examples.tensor_kernel(_ALLOC, _RELINQUISH, _READ, _FREE),
    ),
    "tensor-memory-exhausted": Rule(
        "The allocations that a kernel holds at the same time fit into tensor memory.",
        "tcgen05.alloc waits until columns are free. It waits for ever if the warp that would free them is the one that waits.",
        "Allocate fewer columns, or free one allocation before the next.",
        examples.tensor_kernel(_LARGE, _SMALL, _READ, _FREE_SMALL, _FREE_LARGE),
        examples.tensor_kernel(_SMALL, _SMALL, _READ, _FREE_SMALL, _FREE_SMALL),
    ),
    "tensor-memory-freed": Rule(
        "Tensor memory is used, and freed, before the kernel has freed all of it.",
        "Other thread blocks may own the columns after tcgen05.dealloc.",
        "Write tcgen05.dealloc after the last access, once on every path.",
        examples.tensor_kernel(_ALLOC, _READ, _FREE, _LOAD, _WAIT),
        examples.tensor_kernel(_ALLOC, _READ, _LOAD, _WAIT, _FREE),
    ),
}


def of_kernel(
    kernel: Kernel,
    lifecycles: Sequence[Lifecycle],
    statements: Sequence[Statement],
    size: Callable[[Statement], int | None],
    capacity: int,
    column: Callable[[bytes], int | None],
) -> Iterator[Misuse]:
    """The instructions of a kernel at a wrong time; none in a kernel that cannot be followed.

    Args:
        kernel: the kernel.
        lifecycles: the lifecycles to follow.
        statements: the instructions of the kernel.
        size: the size of the object that an instruction makes or ends; None where it is not known.
        capacity: the sum of the sizes of the objects that fit.
        column: the first column of the cells at an address; None where it is not known.
    """
    at = {each.start: each for each in statements}
    for each in misuses(kernel, _that_may_meet(lifecycles, statements), lambda place: size(at[place]), capacity):
        if each.at.opcode == EXIT or (not _is_read(kernel.text, each, at) and _is_of_same_cells(kernel, each, at, column)):
            yield each


#: The part of an opcode by which a message names an instruction: its family, where copies of two families begin alike, or two words.
_SHORT = re.compile(r"cp\.(?:reduce\.)?async\.bulk(?:\.tensor)?|[^.]+(?:\.[^.]+)?")
#: Rules about loads: an instruction that reads what was loaded waits for the load.
_OF_LOADS = ("freed-in-use", "unwaited-tensor-load")
#: Rules about accesses to the same cells.
_OF_CELLS = ("untracked-product", "unwaited-tensor-load")
_BASE = re.compile(rb"\[\s*([\w$%]+)")


def _is_read(text: bytes, misuse: Misuse, statements: Mapping[int, Statement]) -> bool:
    """Return whether an instruction between reads registers that the one before loads: reading them waits for it."""
    if misuse.wrong.rule not in _OF_LOADS or misuse.wrong.by_others:
        return False
    before = statements[misuse.since[-1].offset]
    loaded = words_of(before.operands[0]) if before.operands and before.operands[0].startswith(b"{") else []
    return not {*loaded}.isdisjoint(words_of(text[before.end : misuse.at.offset]))


def _is_of_same_cells(kernel: Kernel, misuse: Misuse, statements: Mapping[int, Statement], column: Callable[[bytes], int | None]) -> bool:
    """Return whether two accesses that must be of the same cells have one column, or base register, which nothing writes between them.

    The access before a commit is the one that it follows in the text.
    """
    if misuse.wrong.rule not in _OF_CELLS:
        return True
    later, place = statements[misuse.at.offset], misuse.since[-1].offset
    if "committed" in misuse.wrong.states:
        place = max((other for other in statements if other < place), default=place)
    earlier, base = statements[place], _base(later)
    first = column(_address(later))
    if first is not None and first == column(_address(earlier)):
        return True
    if earlier.start > later.start or not base or base != _base(earlier):
        return False
    return not any(earlier.end < offset < later.start for *_, offset in kernel.registers.writes(base))


def _that_may_meet(lifecycles: Sequence[Lifecycle], statements: Sequence[Statement]) -> Sequence[Lifecycle]:
    """The lifecycles, without rules about the same cells where no load has the base of another access: so most kernels need no walk."""
    loads = {_base(each) for each in statements if each.operands and each.operands[0].startswith(b"{")}
    others = {_base(each) for each in statements if each.operands and each.operands[0].startswith(b"[")}
    if loads & others:
        return lifecycles
    kept = (
        (life, tuple(each for each in life.transitions if each.rule not in _OF_CELLS or EXIT.decode() in each.on)) for life in lifecycles
    )
    return [msgspec.structs.replace(life, transitions=transitions) for life, transitions in kept]


def _address(statement: Statement) -> bytes:
    """The first address among the operands of a statement; empty without one."""
    return next((operand for operand in statement.operands if operand.startswith(b"[")), b"")


def _base(statement: Statement) -> bytes:
    """The register or variable of the first address among the operands of a statement."""
    match = _BASE.match(_address(statement))
    return match[1] if match else b""


def remarks(function: Function, found: Iterable[Misuse]) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on instructions of a kernel at a wrong time, in the order of the text, each with the opcode that it is about."""
    return (_remark(function, each) for each in found)


def _remark(function: Function, misuse: Misuse) -> tuple[Remark, bytes]:
    """The remark on an instruction at a wrong time, with the opcode that it is about."""
    at, wrong, text = misuse.at, misuse.wrong, function.text
    opcode, place = at.opcode, at.offset
    if at.opcode == EXIT:  # the instruction that should not be there is the earlier one
        opcode = misuse.since[-1].opcode
        end = text.find(b";", place)
        token = Token(text[place:end], place) if end >= 0 else Token(opcode, misuse.since[-1].offset)
    else:
        token = Token(opcode, place)
    named = (f"{_name(each.opcode)} of line {function.position(each.offset)[0]}" for each in misuse.since)
    earlier = ", ".join(dict.fromkeys(named))
    path = "".join(f"{', if' if not number else ' and'} {_clause(function, each)}" for number, each in enumerate(misuse.conditions))
    mend = f"; {wrong.mend}" if wrong.mend else ""
    message = f"{wrong.text}{': ' if earlier else ''}{earlier}{path}{mend} (PTX ISA {wrong.source})"
    # The ends of a kernel differ: the instruction before each is the wrong one.  One end breaks a rule once.
    alike = wrong.text if at.opcode != EXIT else f"the end of a thread at {place}"
    return Remark(token, "note" if wrong.advice else "warning", wrong.rule, message, alike=alike), opcode


def _name(opcode: bytes) -> str:
    """The name of an instruction in a message."""
    short = _SHORT.match(opcode.decode(errors="replace"))
    return short[0] if short is not None else ""


def _clause(function: Function, condition: Condition) -> str:
    line = function.position(condition.offset)[0]
    return f"{condition.predicate.decode(errors='replace')} is {'true' if condition.holds else 'false'} in line {line}"
