"""``ptxmma layout``."""

from __future__ import annotations

from typing import Any

import click

from ptxmma.cli.matrices import elsewhere
from ptxmma.cli.one_element import one_element, show_answer
from ptxmma.cli.options import find, instruction_argument, table_options
from ptxmma.cli.whole_operand import picture, show_records, show_table


@click.command("layout")
@instruction_argument
@click.option("--operand", metavar="NAME", help="As the manual names it: a, b, c, d, r or p; metadata, scale-a or scale-b.")
@click.option("--by-lane", is_flag=True, help="A row for each thread, with the rows and columns of the matrix that it holds.")
@click.option("--transpose", is_flag=True, help="Rows as columns and columns as rows.")
@click.option("--bits", is_flag=True, help="Name the bits: a1[31:16] is the upper half of the second register of A.")
@click.option("--all", "whole", is_flag=True, help="In a grid: all of a matrix whose N varies, and each element of a large one.")
@click.option("--row", type=int, help="One element: its row, with --col; of addresses the matrix.")
@click.option(
    "--col", type=int, help="Its column; of metadata the column in the packed A, of scale factors of A the block, of addresses the row."
)
@click.option("--lane", type=int, help="What one thread holds, with --element or --bit.")
@click.option("--element", type=int, help="The element of the thread, through all registers; of scale factors the byte, of addresses 0.")
@click.option("--bit", type=int, help="Of metadata: a bit of the thread's register.")
@click.option("--computation", type=int, help="Which of several products at once; the first where none is given.")
@click.option("--selector", type=int, help="Of metadata: the sparsity selector; 0 where none is given.")
@click.option("--byte-id", type=int, help="Of scale factors; the first that is legal where none is given.")
@click.option("--thread-id", type=int, help="Of scale factors; the first that is legal where none is given.")
@click.option("--choose", type=(str, int), multiple=True, metavar="AXIS N", help="Any other axis: --choose matrix 2; the first by default.")
@table_options("svg")
def command(spelling: str, database: str | None, operand: str | None, form: str, choose: tuple[tuple[str, int], ...], **asked: Any) -> None:
    """Say which thread holds which element of an operand, and where.

    The table has a cell for each element of the matrix: 5:r1 a3 is lane 5, register 1, element 3 of the thread.  With --row and --col,
    or --lane and --element, the answer is one element.

    \b
    Example:
      ptxmma layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a --row 9 --col 3
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.matrices.arrangements import arrangement, names

    instruction = find(spelling, database)
    if operand is None:
        known = names(instruction)
        raise click.UsageError(
            f"say which --operand: {', '.join(known)}" if known else f"{instruction.canonical} has no operands in registers"
        )
    _check(operand, form, asked)
    chosen = {name: asked[name] for name in ("computation", "selector", "byte_id", "thread_id") if asked[name] is not None}
    chosen |= {name.replace("-", "_"): number for name, number in choose}
    try:
        table = arrangement(instruction, operand, **chosen)
    except ValueError as error:
        hint = elsewhere(instruction, operand)
        raise click.UsageError(f"{error}; ask {hint}" if hint else str(error)) from None
    one = one_element(table, operand, asked)
    if one is not None:
        show_answer(one, form)
    elif form == "svg":
        click.echo(picture(table, operand, asked), nl=False)
    elif form == "json":
        show_records(table, operand, asked)
    else:
        show_table(table, operand, form, asked)


def _check(operand: str, form: str, asked: dict[str, Any]) -> None:
    """Options that contradict each other."""
    by_place, by_thread = ([asked[name] is not None for name in pair] for pair in (("row", "col"), ("lane",)))
    inside = [name for name in ("element", "bit") if asked[name] is not None]
    if any(by_place) and (not all(by_place) or any(by_thread) or inside):
        raise click.UsageError("one element by its place is --row and --col, without --lane, --element and --bit")
    wanted = "bit" if operand == "metadata" else "element"
    if (any(by_thread) or inside) and (inside != [wanted] or not all(by_thread)):
        raise click.UsageError(f"what a thread holds of {operand} is --lane and --{wanted}")
    if (any(by_place) or any(by_thread)) and (form == "svg" or asked["by_lane"] or asked["transpose"]):
        raise click.UsageError("one element is no table: leave out --by-lane, --transpose and --format svg")
