"""How many columns of tensor memory a kernel allocates and frees, as far as the numbers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmma.check.operand_faults import constants
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.model import Step
    from ptxmma.ptx.known_bits import KnownBits, RegisterBits
    from ptxmma.ptx.statements import Function, Statement


def of_kernel(
    catalog: Catalog, function: Function, bits: RegisterBits, allocating: Step, freeing: Step, statements: Iterable[Statement]
) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the columns of a kernel, each with the opcode that it is about.

    Args:
        catalog: of the instructions.
        function: the kernel.
        bits: of its registers.
        allocating: the step of the protocol.
        freeing: the step of the protocol.
        statements: the instructions of the kernel.
    """
    counts = [each for each in statements if each.broken is None and each.opcode.startswith(opcodes(allocating, freeing))]
    for each, place, text in bits.doubts(lambda known: _doubts(catalog, known, allocating, freeing, counts)):
        yield Remark(function.operand(each, place), "warning", "tensor-memory-columns", text), each.opcode


def _doubts(
    catalog: Catalog, known: KnownBits, allocating: Step, freeing: Step, statements: Iterable[Statement]
) -> Iterator[tuple[Statement, int, str]]:
    """What is doubtful: an instruction, the number of an operand, and why."""
    allocated = set[int | None]()
    freed: list[tuple[Statement, int, int]] = []
    for each in statements:
        instruction = catalog.meaning(spelling_of(each.opcode))
        operands = instruction.forms[0].operands if instruction is not None else ()
        place = next((number for number, operand in enumerate(operands) if operand.kind == "columns"), len(each.operands))
        if place >= len(each.operands):
            continue
        value = known.of(each.operands[place]).within(32)
        columns = None if value.unknown else value.value
        if columns is not None and columns not in (operands[place].immediates or ()):
            if integer(each.operands[place]) is None:
                yield each, place, f"{operands[place].name} is {columns} here; it must be {constants(operands[place].immediates)}"
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
    """How the instructions of steps begin."""
    return tuple(step.instruction.encode() for step in steps)
