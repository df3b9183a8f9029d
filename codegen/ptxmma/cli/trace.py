"""``ptxmma trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.named_numbers import Given, NamedNumbers, numbers_of
from ptxmma.cli.options import find, instruction_argument, table_options

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand

_SCALE_IDS = ("byte-id-a", "thread-id-a", "byte-id-b", "thread-id-b")


def _scale_id_options(command: click.decorators.FC) -> click.decorators.FC:
    for name in reversed(_SCALE_IDS):
        command = click.option(f"--{name}", type=int, help="For scale factors; the first legal value by default.")(command)
    return command


@click.command("trace", cls=NamedNumbers)
@instruction_argument
@click.option(
    "--a-from", type=click.Choice(["registers", "descriptor"]), help="Where A is, if the instruction takes both; registers by default."
)
@click.option("--selector", type=int, help="The sparsity selector; 0 by default.")
@click.option("--stride", type=int, help="For wmma: elements from a row, or column, to the next in memory; by default without gaps.")
@_scale_id_options
@table_options()
def command(
    spelling: str,
    database: str | None,
    numbers: Given,
    a_from: str | None,
    selector: int | None,
    stride: int | None,
    form: str,
    **scale_ids: int | None,
) -> None:
    """Show what feeds one element of D, or where an element is moved from and to.

    Name the element by the axes of the matrix: --row 9 --col 3, or --matrix 1 --row 3 --col 5 for ldmatrix.

    For a product, prints every element of A, B and C with its lane and its bits, the metadata that picks rows of B, and the scale factors:
    a line for each term of the sum.  A sparse A has a term for each stored element, with every row of B that its index may pick.  For a
    load or a store, prints the register of the element, and its bytes relative to the address that a thread gives.  For a transposition,
    prints both registers.

    \b
    Example:
      ptxmma trace mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 --row 9 --col 3
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.cli import moved_elements, product_terms
    from ptxmma.matrices.operations import operation
    from ptxmma.matrices.tracing import Moves, trace

    instruction = find(spelling, database)
    ids = {name: value for name in _SCALE_IDS if (value := scale_ids[name.replace("-", "_")]) is not None}
    options = {"form": a_from, "selector": selector, "stride": stride, "scale_ids": ids or None}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        operand = operation(instruction).traced(instruction)
        axes = _axes(operand, numbers, instruction.canonical)
        traced = trace(instruction, **axes, **given)
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None
    show = moved_elements.show if isinstance(traced, Moves) else product_terms.show
    show(instruction, operand, traced, form)


def _axes(operand: Operand, numbers: Given, instruction: str) -> dict[str, int]:
    """The place of the element: a number for each axis of the operand."""
    assert operand.layout is not None
    legal = {axis: range(operand.sizes[axis]) for axis in operand.layout.axes}
    axes = numbers_of(numbers, legal, f"{operand.name} of {instruction}")
    if missing := [f"--{axis}" for axis in operand.axes if axis not in axes]:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise click.UsageError(f"name an element of {operand.name} of {instruction}: {lacks}")
    return axes
