"""``ptxmma layout --through``: which registers a load or store of tensor memory moves an operand to or from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from ptxmma.cli.matrices import within
from ptxmma.cli.named_numbers import Given, numbers_of
from ptxmma.cli.render import Table, draw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import TensorOperand
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment
    from ptxmma.cli.render import Cell


#: The options that name a register of a thread, beside ``--lane``, ``--register`` and ``--bit``.
_WARPS = ("warp", "cta", "address")


def show(
    instruction: Instruction, operand: TensorOperand, transfer: Instruction, numbers: Given, form: str, **registers: int | None
) -> None:
    """Print the register of one element, or the elements of some registers, where the options name them, and otherwise the bases of all.

    ``registers`` has the values of ``lane``, ``register`` and ``bit``.
    """
    named = {name: value for name, value in registers.items() if value is not None}
    try:
        fragment = operand.through(transfer)
        subject = f"{operand.name} of {instruction.canonical}"
        addresses = fragment.places.memory.addresses
        places = {"warp": range(_warps(fragment)), "cta": range(fragment.places.numbers["ctas"]), "address": addresses}
        given = numbers_of(numbers, {**_legal(fragment), "base": addresses, **places}, subject)
        base = given.pop("base", 0)
        fragment.places.start(base)
        named |= {name: given.pop(name) for name in _WARPS if name in given}
        if not given.keys() & set(fragment.places.axes):
            draw(_elements(fragment, named, given, base) if named else _bases(fragment), form)
            return
        if named:
            wrong = ", ".join(f"--{name}" for name in named)
            raise click.UsageError(f"an element of {subject} or a register, not both: leave out {wrong}, or the element")
        if missing := [f"--{axis}" for axis in fragment.places.axes if axis not in given]:
            raise click.UsageError(f"name an element of {subject}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        place = fragment.locate(base=base, **given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    draw(Table([*given, *place._fields], [[*given.values(), *place[:-1], f"{place.address:#x}"]]), form)


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


def _legal(fragment: TensorFragment) -> dict[str, Sequence[int]]:
    return {**{axis: range(size) for axis, size in fragment.places.sizes.items()}, **fragment.places.selections}


def _bases(fragment: TensorFragment) -> Table:
    """Triton's bases: what each bit of the number of an element, a thread, a warp and a CTA adds to the coordinates."""
    axes = list(fragment.places.sizes)
    rows: list[list[str | int | Cell | None]] = [
        [name, 1 << bit, *basis] for name, bases in fragment.to_triton().items() for bit, basis in enumerate(bases)
    ]
    return Table(["of", "number", *axes], rows)
