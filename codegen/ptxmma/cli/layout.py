"""``ptxmma layout``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import click

from ptxmma.cli import layout_as, layout_in_tensor_memory
from ptxmma.cli.command import NamedNumbers, Question
from ptxmma.cli.layout_in_registers import InRegisters
from ptxmma.cli.layout_in_tensor_memory import InTensorMemory, ThroughRegisters
from ptxmma.cli.options import (
    SectionOption,
    catalog_of,
    completed,
    find,
    instruction_argument,
    product_options,
    resolved_for,
    spellings,
    table_options,
)

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction


def _operands(context: click.Context) -> list[str]:
    """The operands of the instruction that is typed already."""
    from ptxmma.matrices.arrangements import names

    typed = [context.params.get("spelling") or "", *context.args]  # click leaves it in the latter where an option still lacks its value
    known = catalog_of(context.params.get("database"))
    meant = [instruction for instruction in map(known.meaning, typed) if instruction]
    return [name for instruction in meant for name in (*names(instruction), *layout_in_tensor_memory.operands(instruction))]


def _target_operands(context: click.Context) -> list[str]:
    """The operands of the instruction of ``--as``."""
    meant = catalog_of(context.params.get("database")).meaning(context.params.get("converted") or "")
    return layout_as.names(meant) if meant else []


#: Options whose legal values depend on the operand.
_AXES = {
    "row col": "An element of a matrix.",
    "chunk": "With --row, a field of metadata.",
    "block": "With --row or --col, a scale factor.",
    "matrix copy computation": "One of several tables; the first by default.",
    "selector byte-id thread-id scale-id": "What the instruction or its descriptor selects; the first legal value by default.",
    "column cta": "With --lane, a cell of tensor memory; --bit, 0 by default, names one of its bits.",
    "base": "The address of an operand in tensor memory: lanes and columns are then those of the memory.",
    "warp address": "With --through, a warp of the warpgroup and the address that its load has.",
}

CONVERSION = "What becomes an operand of another instruction"


@click.command("layout", cls=NamedNumbers, axes=_AXES)
@instruction_argument
@product_options
@click.option(
    "--operand",
    metavar="NAME",
    shell_complete=completed(_operands),
    help="The manual's name: a, b, c, d, e, r, p …; or metadata, scale-a, scale-b.",
)
@click.option("--lane", type=int, help="Only what this thread holds: of all operands, unless --operand names one.")
@click.option("--register", type=int, help="Only what is in this register of the operand.")
@click.option("--element", type=int, help="Only this element of each thread, counted through its registers; for scale factors the byte.")
@click.option(
    "--bit", type=int, help="For metadata: what this bit of the thread's register describes; with --column, of the cell of tensor memory."
)
@click.option("--by-lane", is_flag=True, help="A row for each thread, with the places of the elements that it holds.")
@click.option("--transpose", is_flag=True, help="Swap rows and columns.")
@click.option("--bits", is_flag=True, help="Name the bits: a1[31:16] is the upper half of the second register of A.")
@click.option(
    "--all", "whole", is_flag=True, help="In a grid: show every column of a matrix whose N varies, and every element of a large one."
)
@click.option(
    "--through",
    metavar="LOAD",
    shell_complete=spellings,
    help="The registers of a tcgen05.ld or st that moves an operand in tensor memory.",
)
@click.option(
    "--as",
    "converted",
    cls=SectionOption,
    section=CONVERSION,
    metavar="INSTRUCTION",
    shell_complete=spellings,
    help="What brings the registers of --operand to an operand of this instruction; with --transpose, transposed.",
)
@click.option(
    "--as-operand",
    cls=SectionOption,
    section=CONVERSION,
    metavar="NAME",
    shell_complete=completed(_target_operands),
    help="The operand of --as; the first matrix that it reads by default.",
)
@click.option(
    "--as-through",
    cls=SectionOption,
    section=CONVERSION,
    metavar="STORE",
    shell_complete=spellings,
    help="The tcgen05.st that moves the registers to an operand of --as in tensor memory.",
)
@click.option(
    "--as-product",
    cls=SectionOption,
    section=CONVERSION,
    metavar="NAME=VALUE,...",
    help="Of --as, what its opcode does not state, as m=128,n=64,atype=bf16; otherwise it is as the options above say.",
)
@table_options("svg", layout_as.CUDA)
def command(
    spelling: str,
    database: str | None,
    operand: str | None,
    through: str | None,
    converted: str | None,
    as_operand: str | None,
    as_through: str | None,
    as_product: str | None,
    **shown: Any,
) -> None:
    """Show which thread holds which element of an operand, and where.

    Prints a table with a cell for each element of the matrix: 5:r1 a3 is lane 5, register 1, element 3 of the thread.  With --lane,
    --register, --element or an axis of the operand, prints a list of the elements there.

    The axes of the operand are options: --row 9 --col 3 for a matrix; --matrix 1 --row 3 for the addresses of ldmatrix; --row 9 --chunk 1
    for metadata, or --row 9 --col 3 for an element of the packed A; --row 9 --block 0 for scale factors.  --matrix, --copy, --computation,
    --selector, --byte-id and --thread-id choose one of several tables; the default is the first.

    An operand in tensor memory needs the shape and the types that its opcode does not state.  --row and --col say where an element lies,
    counted from the address of the operand, or with --base in the whole memory; --lane and --column what lies in a cell.  With --through,
    --row and --col say which register of which thread a load or store moves it to or from; --lane, --register, --warp and --address what a
    register holds; without any of them, Triton's bases.

    With --as, says how the registers of the operand become an operand of another instruction: an accumulator A of the next product, or what
    stmatrix or tcgen05.st stores; with --format cuda as a function.  Both may lie in tensor memory: --through is the load of one,
    --as-through the store of the other.

    \b
    Examples:
      ptxmma layout tcgen05.mma.cta_group::1.kind::f16 --m 128 --n 256 --dtype f16 --operand d-tmem --row 37 --col 200
      ptxmma layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a --row 9 --col 3
      ptxmma layout mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 --operand d --as mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
    """  # noqa: D301  # click's mark for lines that stay as they are
    opcode = find(spelling, database)
    question = Question(**shown)
    about = None if through or converted else layout_in_tensor_memory.about(question)
    instruction = resolved_for(opcode, layout_in_tensor_memory.named(opcode, operand or ""), about)
    if target := layout_as.target_options(converted, as_operand, as_through, as_product):
        layout_as.show(instruction, operand, through, target, question, database)
    else:
        _asked(instruction, operand, through, database, question.form).answer(question)


class _Asked(Protocol):
    """An operand in the space where it lies."""

    def answer(self, question: Question) -> None:
        """Print the part that the question chooses; exits with 2 where there is none."""


def _asked(instruction: Instruction, operand: str | None, through: str | None, database: str | None, form: str) -> _Asked:
    """The operand that ``--operand`` and ``--through`` name."""
    if form == layout_as.CUDA:
        raise click.UsageError(f"--format {form} is for --as: a function that brings the registers of --operand to another operand")
    tensor = layout_in_tensor_memory.named(instruction, operand or "")
    if tensor is None and through is not None:
        known = ", ".join(layout_in_tensor_memory.operands(instruction)) or "this instruction has none"
        raise click.UsageError(f"--through is for an --operand in tensor memory: {known}")
    if tensor is None:
        return InRegisters(instruction, operand)
    held = InTensorMemory(instruction, tensor)
    return held if through is None else ThroughRegisters(held, find(through, database))
