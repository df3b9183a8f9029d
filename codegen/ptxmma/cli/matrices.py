"""Code that verbs about places share: tables of a matrix, coloured and split to fit a terminal; numbers within limits."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ptxmma.cli.render import Cell, Table, console, draw

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Instruction

#: Blanks beside the text of a cell.
_BESIDE = 3


def within(option: str, value: int, limit: int) -> None:
    """Report the value of an option outside 0..limit-1."""
    if not 0 <= value < limit:
        raise click.UsageError(f"--{option} {value} is outside 0..{limit - 1}")


def elsewhere(instruction: Instruction, matrix: str) -> str:
    """The command that shows a matrix in shared memory; empty if the instruction does not read it through a descriptor."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_format
    from ptxmma.matrices.product_operands import described

    each = described(instruction).get(matrix)
    if each is None:
        return ""
    spec, own = instruction.database.spec, matrix_format(instruction.database.spec, instruction.family).family
    family = "" if own == matrix_format(spec).family else f"--family {own} "
    size = f"--rows {each.lines} --cols {each.depth}"
    return f"`ptxmma smem {family}--type {each.element.name} {'--padded ' * each.padded}--major k --swizzle none {size}`"


def coloured(text: str | int, number: int) -> Cell:
    """A cell in the colour that pictures use for a thread, or for any other number."""
    shades = _shades()
    return Cell(text, f"#14171a on {shades[number % len(shades)]}")


@functools.cache
def _shades() -> list[str]:
    """The colours of pictures; for a terminal of 256 colours the nearest of those, no two alike."""
    from ptxmma.matrices.pictures import COLOURS, colour

    shades = [colour(number) for number in range(COLOURS)]
    if not sys.stdout.isatty() or console().color_system != "256":
        return shades
    steps = (0, 95, 135, 175, 215, 255)  # the cube of xterm's colours, and its greys
    cube = [(red, green, blue) for red in steps for green in steps for blue in steps]
    free = dict(enumerate(cube + [(8 + 10 * grey,) * 3 for grey in range(24)], 16))
    nearest = []
    for shade in shades:
        parts = [int(shade[place : place + 2], 16) for place in (1, 3, 5)]
        chosen = min(free, key=lambda entry: sum((one - other) ** 2 for one, other in zip(free[entry], parts, strict=True)))
        free.pop(chosen)
        nearest.append(f"color({chosen})")
    return nearest


def draw_matrix(table: Table, form: str) -> None:
    """Print a table whose first column names the rows: in a terminal as parts that fit, each with these names."""
    if form != "grid" or not sys.stdout.isatty():
        draw(table, form)
        return
    for number, part in enumerate(_parts(table, console().width)):
        if number:
            click.echo()
        draw(part, form)


def _parts(table: Table, width: int) -> Iterator[Table]:
    sizes = [max(len(name), *(_length(row[place]) for row in table.rows)) + _BESIDE for place, name in enumerate(table.columns)]
    fit = max(1, (width - sizes[0]) // max(sizes[1:], default=1))
    if fit < len(sizes) - 1:
        fit = 1 << fit.bit_length() - 1  # rows and columns repeat in powers of two
    for first in range(1, len(sizes), fit):
        cut = slice(first, first + fit)
        rows = [[row[0], *row[cut]] for row in table.rows]
        yield Table([table.columns[0], *table.columns[cut]], rows, table.title if first == 1 else "")


def _length(cell: str | int | Cell | None) -> int:
    value = cell.value if isinstance(cell, Cell) else cell
    return 0 if value is None else len(str(value))
