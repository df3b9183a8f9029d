"""``ptxmma layout`` about an operand in tensor memory: where an element lies, what lies at a place, or all of it as blocks."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, NamedTuple

import click

from ptxmma.catalog.operands.operand_form import Missing
from ptxmma.cli.command import Given, numbers_of, within
from ptxmma.cli.options import require_product, usage_errors
from ptxmma.cli.render import Table, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment
    from ptxmma.catalog.operands.tensor_places import Place, TensorPlaces
    from ptxmma.cli.command import Question
    from ptxmma.cli.render import Cell


def operands(instruction: Instruction) -> dict[str, Operand]:
    """The operands of an instruction that lie in tensor memory, by name."""
    every = instruction.operands
    return {operand.name: operand for operand in every if operand.memory is not None}


def named(instruction: Instruction, name: str) -> Operand | None:
    """The operand that a name means, if it lies in tensor memory."""
    try:
        operand = instruction.operand(name)
    except Missing:
        return None
    return operand if operand.memory is not None else None


def layout_of(instruction: Instruction, operand: Operand) -> TensorPlaces:
    """The layout of an operand; exits with 2 where it depends on options that are not given, or is not known."""
    require_product(instruction, f"{operand.name} of {instruction.canonical}")
    if operand.tensor is None:
        raise click.UsageError(operand.why)
    return operand.tensor


def about(question: Question) -> Callable[[TensorPlaces], Table] | None:
    """The answer to a question about one place in an operand, for a layout; None for another question."""
    if question.lane is None and not question.numbers:
        return None

    def answer(placed: TensorPlaces) -> Table:
        numbers = {**question.numbers}
        base = _start(placed, numbers, placed.layout.title)
        if question.lane is not None:
            return _content(placed, question.lane, question.bit or 0, numbers, placed.layout.title, base)
        given = _numbers(placed, numbers, placed.layout.title)
        return _place(placed, given, base)

    return answer


class InTensorMemory(NamedTuple):
    """An operand in tensor memory."""

    instruction: Instruction
    operand: Operand

    @property
    def subject(self) -> str:
        """The name of the operand in messages."""
        return f"{self.operand.name} of {self.instruction.canonical}"

    def answer(self, question: Question) -> None:
        """Print one place where the options name one, and otherwise the whole operand."""
        placed, subject = self.placed(question), self.subject
        if question.register is not None:
            raise click.UsageError(f"{self.operand.name} lies in tensor memory: --register needs --through, the load of the register")
        numbers = {**question.numbers}
        base = _start(placed, numbers, subject)
        if question.lane is not None:
            _refuse_pictures(question, "--lane")
            draw(_content(placed, question.lane, question.bit or 0, numbers, subject, base), question.form)
            return
        if question.bit is not None:
            raise click.UsageError(f"--bit needs --lane and --column: a cell of {subject}")
        given = _numbers(placed, numbers, subject)
        if not given.keys() & set(placed.axes):
            _show_blocks(placed, given, question.form)
            return
        _require_all(placed, given, subject)
        _refuse_pictures(question, *(f"--{axis}" for axis in placed.axes))
        draw(_place(placed, given, base), question.form)

    def placed(self, question: Question) -> TensorPlaces:
        """The layout of the operand; exits with 2 where options are for tables of registers."""
        placed = layout_of(self.instruction, self.operand)
        if wrong := question.given("element", "by_lane", "transpose", "bits", "whole"):
            raise click.UsageError(f"{self.operand.name} lies in tensor memory: leave out {', '.join(wrong)}, for tables of registers")
        return placed


def _numbers(placed: TensorPlaces, numbers: Given, subject: str) -> dict[str, int]:
    """The numbers that are given for the axes; of metadata a column of the packed A names its chunk."""
    legal: dict[str, Sequence[int]] = {axis: range(size) for axis, size in placed.sizes.items()}
    kept = placed.numbers["chunk_size"] // placed.numbers["ratio"] if "chunk" in placed.sizes else 0
    if kept:  # each chunk has so many columns of the packed A
        legal["col"] = range(placed.sizes["chunk"] * kept)
    given = numbers_of(numbers, {**legal, **placed.selections}, subject, _next_steps(placed))
    if kept and "col" in given:
        if "chunk" in given:
            raise click.UsageError("--col of metadata is a column of the packed A: leave out --chunk")
        given["chunk"] = given["col"] // kept
    return given


def _require_all(placed: TensorPlaces, given: Mapping[str, int], subject: str) -> None:
    """Report axes without a number."""
    if missing := [f"--{axis}" for axis in placed.axes if axis not in given]:
        raise click.UsageError(f"name an element of {subject}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")


def _place(placed: TensorPlaces, given: Mapping[str, int], base: Place | None) -> Table:
    """The place of an element, counted from the address of the operand or, where it is known, of the memory."""
    point = {name: number for name, number in given.items() if name in placed.sizes or name in placed.selections}
    place = placed.locate(**point)  # type: ignore[arg-type]  # no axis is called check
    if base is not None:
        place = place._replace(lane=base.lane + place.lane, column=base.column + place.column)
    address = f"{'base + ' if base is None else ''}{placed.memory.address_of(lane=place.lane, column=place.column):#x}"
    return Table([*given, *place._fields, "address"], [[*given.values(), *place, address]])


def _refuse_pictures(question: Question, *options: str) -> None:
    """Report ``--format svg`` where options choose a part of the operand."""
    if question.form == "svg":
        raise click.UsageError(f"--format svg is for a whole operand: leave out {' and '.join(options)}, or take another format")


def _start(placed: TensorPlaces, numbers: Given, subject: str) -> Place | None:
    """The place that ``--base`` names, which is taken out of the numbers; None without it."""
    if "base" not in numbers:
        return None
    base = numbers_of({"base": numbers.pop("base")}, {"base": placed.memory.addresses}, subject)["base"]
    with usage_errors():
        return placed.start(base)


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


def _content(placed: TensorPlaces, lane: int, low: int, numbers: Given, subject: str, base: Place | None) -> Table:
    """The content of a cell, counted from the address of the operand or, where it is known, of the memory."""
    memory = placed.memory
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
    return Table([*placed.sizes, *cell], [[*axes, *cell.values()]])


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


#: The options that name a register of a thread, beside ``--lane``, ``--register`` and ``--bit``.
_WARPS = ("warp", "cta", "address")


class ThroughRegisters(NamedTuple):
    """The registers that a load or store of tensor memory moves an operand to or from."""

    held: InTensorMemory
    transfer: Instruction

    def answer(self, question: Question) -> None:
        """Print the register of an element, or the elements of some registers, where the options name them, else Triton's bases of all."""
        placed, subject = self.held.placed(question), self.held.subject
        _refuse_pictures(question, "--through")
        registers = {"lane": question.lane, "register": question.register, "bit": question.bit}
        named = {name: value for name, value in registers.items() if value is not None}
        with usage_errors():
            fragment = self.held.operand.through(self.transfer)
            addresses = placed.memory.addresses
            places = {"warp": range(_warps(fragment)), "cta": range(placed.numbers["ctas"]), "address": addresses}
            axes = {axis: range(size) for axis, size in placed.sizes.items()}
            given = numbers_of(question.numbers, {**axes, **placed.selections, "base": addresses, **places}, subject)
            base = given.pop("base", 0)
            placed.start(base)
            named |= {name: given.pop(name) for name in _WARPS if name in given}
            if not given.keys() & set(placed.axes):
                table = _elements(fragment, named, given, base) if named else _bases(fragment)
            else:
                if named:
                    wrong = ", ".join(f"--{name}" for name in named)
                    raise click.UsageError(f"an element of {subject} or a register, not both: leave out {wrong}, or the element")
                _require_all(placed, given, subject)
                place = fragment.locate(base=base, **given)
                table = Table([*given, *place._fields], [[*given.values(), *place[:-1], f"{place.address:#x}"]])
        draw(table, question.form)


def _elements(fragment: TensorFragment, named: Mapping[str, int], selected: Mapping[str, int], base: int) -> Table:
    """The elements in the registers of all loads that have these numbers."""
    layout, memory = fragment.registers, fragment.places.memory
    for name, legal in (("lane", memory.partition["lane"]), ("register", layout.registers), ("bit", memory.cell)):
        if name in named:
            within(name, named[name], legal)
    numbers: dict[str, list[int]] = {
        "cta": list(range(fragment.places.numbers["ctas"])),
        "warp": list(range(_warps(fragment))),
        "lane": list(range(memory.partition["lane"])),
        "register": list(range(layout.registers)),
    }
    numbers |= {name: [value] for name, value in named.items() if name in numbers}
    step = min(fragment.places.unit, layout.bits)
    bits = [named["bit"] // step * step] if "bit" in named else range(0, memory.cell, step)
    rows: list[list[str | int | Cell | None]] = []
    for cta, warp in itertools.product(numbers["cta"], numbers["warp"]):
        addresses = fragment.addresses(warp, base)
        for address in addresses:
            if named.get("address", address) == address:
                for lane, register, bit in itertools.product(numbers["lane"], numbers["register"], bits):
                    try:
                        axes = fragment.coords(address, lane, register, bit, base=base, cta=cta, **selected)
                    except ValueError:  # the operand leaves this part of the memory free
                        continue
                    rows.append([*axes, cta, warp, lane, register, bit, f"{address:#x}"])
    if not rows:
        said = ", ".join(f"{name} {value:#x}" if name == "address" else f"{name} {value}" for name, value in named.items())
        warp = named.get("warp", memory.parts(named.get("address", 0))["lane"] // memory.partition["lane"])
        loads = ", ".join(f"{address:#x}" for address in fragment.addresses(warp, base))
        raise click.UsageError(f"no load has an element in {said}; those of warp {warp} have the taddr {loads}")
    return Table([*fragment.places.sizes, "cta", "warp", "lane", "register", "bit", "address"], rows)


def _warps(fragment: TensorFragment) -> int:
    """Warps that reach all lanes together."""
    return fragment.places.memory.most("lane") // fragment.places.memory.partition["lane"]


def _bases(fragment: TensorFragment) -> Table:
    """Triton's bases: what each bit of the number of an element, a thread, a warp and a CTA adds to the coordinates."""
    axes = list(fragment.places.sizes)
    rows: list[list[str | int | Cell | None]] = [
        [name, 1 << bit, *basis] for name, bases in fragment.to_triton().items() for bit, basis in enumerate(bases)
    ]
    return Table(["of", "number", *axes], rows)
