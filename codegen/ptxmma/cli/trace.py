"""``ptxmma trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.named_numbers import Given, NamedNumbers, numbers_of
from ptxmma.cli.options import completed, find, instruction_argument, swizzles, table_options
from ptxmma.cli.tiles import swizzle_name

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.matrices.canonical import Geometry

_MAJOR = click.Choice(["k", "mn"], case_sensitive=False)

_SCALE_IDS = ("byte-id-a", "thread-id-a", "byte-id-b", "thread-id-b")


def _scale_id_options(command: click.decorators.FC) -> click.decorators.FC:
    for name in reversed(_SCALE_IDS):
        command = click.option(f"--{name}", type=int, help="For scale factors; the first legal value by default.")(command)
    return command


@click.command(
    "trace", cls=NamedNumbers, axes={"row col": "An element of D, or of what is moved.", "matrix computation": "One of several."}
)
@instruction_argument
@click.option(
    "--a-from", type=click.Choice(["registers", "descriptor"]), help="Where A is, if the instruction takes both; registers by default."
)
@click.option("--selector", type=int, help="The sparsity selector; 0 by default.")
@click.option("--stride", type=int, help="For wmma: elements from a row, or column, to the next in memory; by default without gaps.")
@click.option(
    "--swizzle",
    metavar="BYTES",
    shell_complete=completed(swizzles),
    help="For matrices in shared memory, whose addresses it shows: none, 32, 64 or 128 bytes.",
)
@click.option("--major-a", type=_MAJOR, help="Which dimension of A is contiguous in shared memory: k, by default, or mn.")
@click.option("--major-b", type=_MAJOR, help="The same of B.")
@_scale_id_options
@table_options()
def command(
    spelling: str,
    database: str | None,
    numbers: Given,
    a_from: str | None,
    selector: int | None,
    stride: int | None,
    swizzle: str | None,
    major_a: str | None,
    major_b: str | None,
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
    Examples:
      ptxmma trace mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 --row 9 --col 3
      ptxmma trace wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 --row 9 --col 3 --swizzle 128
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.cli import moved_elements, product_terms
    from ptxmma.matrices.operations import operation
    from ptxmma.matrices.tracing import Moves, trace

    instruction = find(spelling, database)
    ids = {name: value for name in _SCALE_IDS if (value := scale_ids[name.replace("-", "_")]) is not None}
    majors = {"a": major_a, "b": major_b}
    images = _images(instruction, a_from, swizzle, {name: major for name, major in majors.items() if major})
    options = {"form": a_from, "selector": selector, "stride": stride, "scale_ids": ids or None, "images": images or None}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        operand = operation(instruction).traced(instruction)
        axes = _axes(operand, numbers, instruction.canonical)
        traced = trace(instruction, **axes, **given)
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None
    if isinstance(traced, Moves):
        moved_elements.show(instruction, operand, traced, form)
    else:
        product_terms.show(instruction, operand, traced, form, images)


def _images(instruction: Instruction, a_from: str | None, swizzle: str | None, majors: dict[str, str]) -> dict[str, Geometry]:
    """The smallest images that hold the matrices in shared memory, whole panels of the swizzle, by the names of the matrices."""
    from ptxmma.matrices.canonical import Geometry, canonical
    from ptxmma.matrices.product_operands import product_operands
    from ptxmma.matrices.shared_types import element_of, memory_of

    if swizzle is None and not majors:
        return {}
    if instruction.operation != "multiply":
        raise click.UsageError(f"{instruction.canonical} reads no matrix through a descriptor: leave out --swizzle and --major")
    operands = product_operands(instruction)
    described = [each for each in (operands.a, operands.b) if each.described and (each is operands.b or a_from == "descriptor")]
    letters = {operands.letter(each.name) for each in described}
    if wrong := [f"--major-{name}" for name in majors if name not in letters] or ([] if described else ["--swizzle"]):
        hint = "; --a-from descriptor reads A there" if operands.a.described else ""
        raise click.UsageError(f"{instruction.canonical} does not read that matrix from shared memory: leave out {', '.join(wrong)}{hint}")
    if swizzle is None:
        raise click.UsageError("--major-a and --major-b need --swizzle: none, 32, 64 or 128")
    images, name, database = {}, swizzle_name(swizzle), instruction.database
    try:
        for each in described:
            major = majors.get(operands.letter(each.name), "k").upper()
            span = canonical(memory_of(database), major, name).mode.bytes
            panel = span * 8 // element_of(each.element, major, database).bits
            depth = -(-each.depth // panel) * panel if major == "K" else each.depth
            images[each.name] = Geometry(each.element, major, name, each.lines, depth, database=database)
    except ValueError as error:
        raise click.UsageError(f"{each.name.upper()}: {str(error).partition('; store_tiles')[0]}") from None
    return images


def _axes(operand: Operand, numbers: Given, instruction: str) -> dict[str, int]:
    """The place of the element: a number for each axis of the operand."""
    assert operand.layout is not None
    legal = {axis: range(operand.sizes[axis]) for axis in operand.layout.axes}
    axes = numbers_of(numbers, legal, f"{operand.name} of {instruction}")
    if missing := [f"--{axis}" for axis in operand.axes if axis not in axes]:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise click.UsageError(f"name an element of {operand.name} of {instruction}: {lacks}")
    return axes
