"""``ptxmma layout`` about an operand in tensor memory: where an element lies, what lies at a place, or all of it as blocks."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import click

from ptxmma.cli.named_numbers import Given, numbers_of
from ptxmma.cli.product_options import require_product
from ptxmma.cli.render import Table, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import TensorOperand
    from ptxmma.catalog.operands.tensor_places import Place, TensorPlaces


def operands(instruction: Instruction) -> dict[str, TensorOperand]:
    """The operands of an instruction that lie in tensor memory, by name."""
    from ptxmma.catalog.operands import TensorOperand

    every = (operand for form in instruction.forms for operand in form.operands)
    return {operand.name: operand for operand in every if isinstance(operand, TensorOperand)}


def named(instruction: Instruction, name: str) -> TensorOperand | None:
    """The operand in tensor memory of a name in upper or lower case, of the beginning of one, or of a kind.

    ``"scale-A-tmem"`` is also ``"scale-a"``, and ``"sp-meta-tmem"`` is ``"metadata"``.
    """
    lowered = name.lower()
    every = operands(instruction).values()
    exact = [operand for operand in every if operand.name.lower() == lowered]
    alike = [operand for operand in every if operand.name.lower().startswith(f"{lowered}-") or operand.kind == f"tensor-{lowered}"]
    fitting = exact or alike
    return fitting[0] if len(fitting) == 1 else None


def layout_of(instruction: Instruction, operand: TensorOperand) -> TensorPlaces:
    """The layout of an operand; exits with 2 where it depends on options that are not given, or is not known."""
    require_product(instruction, f"{operand.name} of {instruction.canonical}")
    if operand.tensor is None:
        raise click.UsageError(operand.why)
    return operand.tensor


def show(instruction: Instruction, operand: TensorOperand, lane: int | None, bit: int | None, numbers: Given, form: str) -> None:
    """Print one place where the options name one, and otherwise the whole operand."""
    placed = layout_of(instruction, operand)
    subject = f"{operand.name} of {instruction.canonical}"
    base = _start(placed, numbers, subject)
    if lane is not None:
        refuse_pictures(form, "--lane")
        _show_place(placed, lane, bit, numbers, subject, base, form)
        return
    if bit is not None:
        raise click.UsageError(f"--bit needs --lane and --column: a cell of {subject}")
    legal: dict[str, Sequence[int]] = {axis: range(size) for axis, size in placed.sizes.items()}
    kept = placed.numbers["chunk_size"] // placed.numbers["ratio"] if "chunk" in placed.sizes else 0
    if kept:  # each chunk has so many columns of the packed A
        legal["col"] = range(placed.sizes["chunk"] * kept)
    given = numbers_of(numbers, {**legal, **placed.selections}, subject, _next_steps(placed))
    if kept and "col" in given:
        if "chunk" in given:
            raise click.UsageError("--col of metadata is a column of the packed A: leave out --chunk")
        given["chunk"] = given["col"] // kept
    if not given.keys() & set(placed.axes):
        _show_blocks(placed, given, form)
        return
    if missing := [f"--{axis}" for axis in placed.axes if axis not in given]:
        raise click.UsageError(f"name an element of {subject}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    refuse_pictures(form, *(f"--{axis}" for axis in placed.axes))
    point = {name: number for name, number in given.items() if name in placed.sizes or name in placed.selections}
    place = placed.locate(**point)  # type: ignore[arg-type]  # no axis is called check
    if base is not None:
        place = place._replace(lane=base.lane + place.lane, column=base.column + place.column)
    address = f"{'base + ' if base is None else ''}{placed.memory.address_of(lane=place.lane, column=place.column):#x}"
    draw(Table([*given, *place._fields, "address"], [[*given.values(), *place, address]]), form)


def refuse_pictures(form: str, *options: str) -> None:
    """Report ``--format svg`` where options choose a part of the operand."""
    if form == "svg":
        raise click.UsageError(f"--format svg is for a whole operand: leave out {' and '.join(options)}, or take another format")


def _start(placed: TensorPlaces, numbers: Given, subject: str) -> Place | None:
    """The place that ``--base`` names, which is taken out of the numbers; None without it."""
    if "base" not in numbers:
        return None
    base = numbers_of({"base": numbers.pop("base")}, {"base": placed.memory.addresses}, subject)["base"]
    try:
        return placed.start(base)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _next_steps(placed: TensorPlaces) -> dict[str, Callable[[int], str]]:
    """The place past the end of each axis along K: the next step, in the same cells where the descriptor selects a part of them."""
    from ptxmma.model import formula

    def hint(axis: str) -> Callable[[int], str]:
        def text(number: int) -> str:
            again = placed.selected_for(axis, number) if number >= 0 else None
            options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in (again or {}).items())
            later = f"a later step reads {axis} {number} as {options}" if again else f"another {axis} along K belongs to a later step"
            return f": an instruction covers K = {placed.numbers['k']}; {later}"

        return text

    along = {axis for axis, size in placed.layout.axes.items() if formula.names(formula.parse(size)).keys() & {"k", "blocks"}}
    return {axis: hint(axis) for axis in along}


def _show_place(placed: TensorPlaces, lane: int, bit: int | None, numbers: Given, subject: str, base: Place | None, form: str) -> None:
    """Show the content of a cell, counted from the address of the operand or, where it is known, of the memory."""
    from ptxmma.cli.matrices import within

    memory = placed.memory
    low = bit or 0
    within("lane", lane, memory.most("lane"))
    within("bit", low, memory.cell)
    limits: dict[str, Sequence[int]] = {
        "column": range(memory.most("column")),
        "cta": range(placed.numbers["ctas"]),
    }
    given = numbers_of(numbers, {**limits, **placed.selections}, subject)
    if "column" not in given:
        raise click.UsageError(f"--lane needs --column: a cell of {subject}")
    selected = {name: value for name, value in given.items() if name in placed.selections}
    cell = {"lane": lane, "column": given["column"], "bit": low, "cta": given.get("cta", 0)}
    try:
        first_lane, first_column = (0, 0) if base is None else (base.lane, base.column)
        at = lane - first_lane, cell["column"] - first_column, low, cell["cta"]
        axes = placed.coords(*at, **selected)
    except ValueError as error:
        raise click.UsageError(f"{error}{_selecting(placed, at)}") from None
    draw(Table([*placed.sizes, *cell], [[*axes, *cell.values()]]), form)


def _selecting(placed: TensorPlaces, at: tuple[int, int, int, int]) -> str:
    """The selections with which something lies at a place, for a message."""
    said = []
    for values in itertools.product(*placed.selections.values()):
        chosen = dict(zip(placed.selections, values, strict=True))
        with contextlib.suppress(ValueError):
            placed.coords(*at, **chosen)
            said.append(" ".join(f"--{name.replace('_', '-')} {value}" for name, value in chosen.items()))
    return f"; something does with {' or '.join(said)}" if said else ""


def _show_blocks(placed: TensorPlaces, given: Mapping[str, int], form: str) -> None:
    """The whole operand."""
    from ptxmma.matrices.pictures import tensor_memory as tensor_pictures

    selected = {name: value for name, value in given.items() if name in placed.selections}
    if form == "svg":
        click.echo(tensor_pictures.tensor(placed, placed.layout.title, [tensor_pictures.COUNTED], selected), nl=False)
        return
    rows = tensor_pictures.listed(placed, selected)
    draw(Table(list(rows[0]), [list(row.values()) for row in rows], title=placed.layout.title), form)
