"""``ptxmma layout --through``: which registers a load or store of tensor memory moves an operand to or from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.named_numbers import Given, numbers_of
from ptxmma.cli.render import Table, draw
from ptxmma.cli.tensor_layout import BASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import TensorOperand
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment
    from ptxmma.cli.render import Cell


def show(instruction: Instruction, operand: TensorOperand, transfer: Instruction, numbers: Given, form: str) -> None:
    """Print the register of one element where the options name one, and otherwise the bases of all."""
    try:
        fragment = operand.through(transfer)
        subject = f"{operand.name} of {instruction.canonical}"
        given = numbers_of(numbers, {**_legal(fragment), "base": BASES}, subject)
        base = given.pop("base", 0)
        fragment.places.start(base)
        if not given:
            draw(_bases(fragment), form)
            return
        if missing := [f"--{axis}" for axis in fragment.places.coordinates if axis not in given]:
            raise click.UsageError(f"name an element of {subject}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        place = fragment.locate(base=base, **given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    draw(Table([*given, *place._fields], [[*given.values(), *place[:-1], f"{place.address:#x}"]]), form)


def _legal(fragment: TensorFragment) -> dict[str, Sequence[int]]:
    return {**{axis: range(size) for axis, size in fragment.places.sizes.items()}, **fragment.places.selections}


def _bases(fragment: TensorFragment) -> Table:
    """Triton's bases: what each bit of the number of an element, a thread, a warp and a CTA adds to the coordinates."""
    axes = list(fragment.places.sizes)
    rows: list[list[str | int | Cell | None]] = [
        [name, 1 << bit, *basis] for name, bases in fragment.to_triton().items() for bit, basis in enumerate(bases)
    ]
    return Table(["of", "number", *axes], rows)
