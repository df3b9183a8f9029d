"""``ptxmma layout --as``: how a fragment becomes another operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.render import emit

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment

#: The format of a function for a kernel.
CUDA = "cuda"


def fragments(instruction: Instruction) -> dict[str, Operand]:
    """The operands of an instruction that hold elements in registers, by name; what it reads comes first."""
    every = [operand for form in instruction.forms for operand in form.operands if operand.layout and operand.layout.kind == "fragment"]
    return {operand.name: operand for operand in sorted(every, key=lambda operand: operand.access != "read")}


def show(source: Operand | TensorFragment, target: Instruction, name: str | None, form: str, *, transpose: bool) -> None:
    """Print what brings the registers of the source to an operand of the target, of which the first that it reads is the default."""
    from ptxmma.catalog.conversion import convert
    from ptxmma.catalog.conversion_text import record

    if form not in ("grid", "json", CUDA):
        raise click.UsageError(f"--as prints text, with --json the same for programs, or with --format {CUDA} a function")
    known = fragments(target)
    chosen = next(iter(known), "") if name is None else name.lower()
    if chosen not in known:
        listed = ", ".join(known) or "none"
        raise click.UsageError(f"{target.canonical} has no operand {chosen or 'with elements'} in registers; it has: {listed}")
    try:
        conversion = convert(source, known[chosen], transpose=transpose)
        answer = conversion.to_cuda() if form == CUDA else str(conversion)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if form == "json":
        emit(record(conversion))
    else:
        click.echo(answer)
