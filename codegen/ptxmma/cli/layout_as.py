"""``ptxmma layout --as``: the way from the registers of one operand to the registers of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from ptxmma.cli.layout_in_tensor_memory import layout_of, named, operands
from ptxmma.cli.options import find, resolved_as, usage_errors
from ptxmma.cli.render import emit

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment
    from ptxmma.cli.command import Question

#: The format of a function for a kernel.
CUDA = "cuda"


class Target(NamedTuple):
    """The options of ``--as``.

    Attributes:
        converted: the instruction of the target.
        operand: its operand; None for the first that it reads.
        through: the load or store of an operand in tensor memory.
        product: the shape and types that its opcode does not state: ``"m=128,n=64"``.
    """

    converted: str
    operand: str | None
    through: str | None
    product: str | None


def names(instruction: Instruction) -> list[str]:
    """Return the names of the operands that hold elements in registers or tensor memory; what the instruction reads comes first."""
    return [*_fragments(instruction), *operands(instruction)]


def target_options(converted: str | None, operand: str | None, through: str | None, product: str | None) -> Target | None:
    """The target of ``--as``; None without it, which the options about it need."""
    if converted is not None:
        return Target(converted, operand, through, product)
    options = {"--as-operand": operand, "--as-through": through, "--as-product": product}
    if given := [name for name, value in options.items() if value is not None]:
        verb = "is" if len(given) == 1 else "are"
        raise click.UsageError(f"{', '.join(given)} {verb} about the instruction of --as INSTRUCTION, which is missing")
    return None


def show(
    instruction: Instruction, operand: str | None, through: str | None, wanted: Target, question: Question, database: str | None
) -> None:
    """Print the way from the registers of an operand to an operand of the target."""
    from ptxmma.catalog.conversion import convert

    form = question.form
    places = [*question.given("lane", "register", "element", "bit"), *(f"--{name}" for name in question.numbers)]
    if wrong := places + question.given("by_lane", "bits", "whole"):
        raise click.UsageError(f"--as is about a whole operand: leave out {', '.join(wrong)}")
    if form not in ("grid", "json", CUDA):
        raise click.UsageError(f"--as prints text, with --json the same for programs, or with --format {CUDA} a function")
    meant = named(instruction, operand or "")
    known = _fragments(instruction)
    if meant is None and (through is not None or operand is None or operand.lower() not in known):
        raise click.UsageError(f"--as needs --operand with elements in registers: {', '.join(known) or 'this instruction has none'}")
    target = resolved_as(find(wanted.converted, database), wanted.product)
    with usage_errors():
        source = known[str(operand).lower()] if meant is None else _moved(instruction, operand, through, "--through, the load", database)
        conversion = convert(source, _target(target, wanted, database), transpose=question.transpose)
        answer = conversion.to_cuda() if form == CUDA else str(conversion)
    if form == "json":
        emit(conversion.to_dict())
    else:
        click.echo(answer)


def _target(instruction: Instruction, wanted: Target, database: str | None) -> Operand | TensorFragment:
    known, tensor = _fragments(instruction), operands(instruction)
    name = wanted.operand
    if name is not None and named(instruction, name) is not None:
        return _moved(instruction, name, wanted.through, "--as-through, the store", database)
    chosen = next(iter(known), "") if name is None else name.lower()
    if chosen not in known:
        listed = "; in tensor memory: ".join(", ".join(each) or "none" for each in ((known, tensor) if tensor else (known,)))
        raise click.UsageError(f"{instruction.canonical} has no operand {chosen or 'with elements'} in registers; it has: {listed}")
    if wanted.through is not None:
        raise click.UsageError(f"--as-through is for an operand in tensor memory: {chosen} of {instruction.canonical} is in registers")
    return known[chosen]


def _moved(instruction: Instruction, name: str | None, through: str | None, wanted: str, database: str | None) -> TensorFragment:
    """The registers of an operand in tensor memory."""
    meant = named(instruction, name or "")
    assert meant is not None
    if through is None:
        raise click.UsageError(f"{meant.name} lies in tensor memory: --as needs {wanted} of its registers")
    layout_of(instruction, meant)
    return meant.through(find(through, database))


def _fragments(instruction: Instruction) -> dict[str, Operand]:
    """The operands that hold elements in registers, by name; what the instruction reads comes first."""
    every = [operand for operand in instruction.operands if operand.layout and operand.layout.kind == "fragment"]
    return {operand.name: operand for operand in sorted(every, key=lambda operand: operand.access != "read")}
