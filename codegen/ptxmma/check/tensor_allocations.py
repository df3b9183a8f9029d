"""How many columns of tensor memory a kernel allocates and frees, as far as the numbers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmma.check.operand_faults import wanted
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.ptx.known_bits import KnownBits
from ptxmma.ptx.literals import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.model import Step
    from ptxmma.ptx.statements import Function, Statement


def of_kernel(
    catalog: Catalog, function: Function, allocating: Step, freeing: Step, statements: Iterable[Statement]
) -> Iterator[tuple[Remark, bytes]]:
    """The remarks on the columns of a kernel, each with the opcode that it is about.

    Args:
        catalog: of the instructions.
        function: the kernel.
        allocating: the step of the protocol.
        freeing: the step of the protocol.
        statements: the instructions of the kernel.
    """
    known: KnownBits | None = None
    allocated = set[int | None]()
    freed: list[tuple[Remark, bytes, int]] = []
    for each in statements:
        instruction = catalog.meaning(spelling_of(each.opcode)) if each.opcode.startswith(opcodes(allocating, freeing)) else None
        operands = instruction.forms[0].operands if instruction is not None else ()
        place = next((number for number, operand in enumerate(operands) if operand.kind == "columns"), len(each.operands))
        if place >= len(each.operands):
            continue
        columns = integer(each.operands[place])
        if columns is None:
            known = known or KnownBits(function.text)
            bits = known.of(each.operands[place]).within(32)
            columns = None if bits.unknown else bits.value
            if columns is not None and columns not in (operands[place].immediates or ()):
                text = f"{operands[place].name} is {columns} here; it must be {wanted(operands[place])}"
                yield Remark(function.operand(each, place), "warning", "tensor-memory-columns", text), each.opcode
        if columns not in (operands[place].immediates or ()):
            columns = None
        if each.opcode.startswith(opcodes(allocating)):
            allocated.add(columns)
        elif columns is not None:
            text = f"it frees {columns} columns, and no {allocating.instruction} of the kernel has as many (PTX ISA {freeing.source})"
            freed.append((Remark(function.operand(each, place), "warning", "tensor-memory-columns", text), each.opcode, columns))
    if allocated and None not in allocated:
        yield from ((remark, opcode) for remark, opcode, columns in freed if columns not in allocated)


def opcodes(*steps: Step) -> tuple[bytes, ...]:
    """How the instructions of steps begin."""
    return tuple(step.instruction.encode() for step in steps)
