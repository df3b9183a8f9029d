"""Columns of tensor memory that a kernel allocates and frees, as far as their numbers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.operand_faults import constants
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.model import Step
    from ptxmma.ptx.known_bits import KnownBits, RegisterBits
    from ptxmma.ptx.statements import Function, Statement

RULES: Mapping[str, Rule] = {
    "tensor-memory-columns": Rule(
        "A kernel frees as many columns of tensor memory as it has allocated, and their number is a legal one in a register, too.",
        "Assemblers look at constants alone, and at each by itself. An allocation of which a part is freed is not one that the manual has.",
        "Write the same number into tcgen05.alloc and tcgen05.dealloc: a power of two from 32 to 512.",
        examples.tensor_kernel(examples.TENSOR_ALLOCATION.replace(" 32;", " 64;"), "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE),
        examples.tensor_kernel(examples.TENSOR_ALLOCATION, "ld.shared.b32 %r0, [slot];", examples.TENSOR_FREE),
    ),
}


def of_kernel(
    catalog: Catalog, function: Function, bits: RegisterBits, allocating: Step, freeing: Step, statements: Iterable[Statement]
) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the columns of a kernel, each with the opcode that it is about.

    Args:
        catalog: the catalog of the instructions.
        function: the kernel.
        bits: the bits of its registers.
        allocating: the step of the protocol.
        freeing: the step of the protocol.
        statements: the instructions of the kernel.
    """
    counts = [each for each in statements if each.broken is None and each.opcode.startswith(opcodes(allocating, freeing))]
    for each, place, text in bits.doubts(lambda known: _doubts(catalog, known, allocating, freeing, counts)):
        yield Remark(function.operand(each, place), "warning", "tensor-memory-columns", text), each.opcode


class Count(NamedTuple):
    """The operand of an instruction that is a number of columns.

    Attributes:
        place: the number of the operand.
        name: the operand's.
        legal: the numbers that it may be.
        columns: the number; None where it is not known.
    """

    place: int
    name: str
    legal: tuple[int, ...]
    columns: int | None


def count_of(catalog: Catalog, known: KnownBits, statement: Statement) -> Count | None:
    """The number of columns that an instruction allocates or frees; None where it has no such operand."""
    instruction = catalog.meaning(spelling_of(statement.opcode))
    operands = instruction.forms[0].operands if instruction is not None else ()
    for place, (operand, written) in enumerate(zip(operands, statement.operands, strict=False)):
        if operand.kind == "columns":
            value = known.of(written).within(32)
            return Count(place, operand.name, tuple(operand.immediates or ()), None if value.unknown else value.value)
    return None


def _doubts(
    catalog: Catalog, known: KnownBits, allocating: Step, freeing: Step, statements: Iterable[Statement]
) -> Iterator[tuple[Statement, int, str]]:
    """The doubts: an instruction, the number of an operand, and the reason."""
    allocated = set[int | None]()
    freed: list[tuple[Statement, int, int]] = []
    for each in statements:
        count = count_of(catalog, known, each)
        if count is None:
            continue
        place, columns = count.place, count.columns
        if columns is not None and columns not in count.legal:
            if integer(each.operands[place]) is None:
                yield each, place, f"{count.name} is {columns} here; it must be {constants(count.legal)}"
            columns = None
        if each.opcode.startswith(opcodes(allocating)):
            allocated.add(columns)
        elif columns is not None:
            freed.append((each, place, columns))
    if allocated and None not in allocated:
        for each, place, columns in freed:
            if columns not in allocated:
                lacking = f"no {allocating.instruction} of the kernel has as many"
                yield each, place, f"it frees {columns} columns, and {lacking} (PTX ISA {freeing.source})"


def opcodes(*steps: Step) -> tuple[bytes, ...]:
    """The first words of the instructions of steps."""
    return tuple(step.instruction.encode() for step in steps)
