"""Prints answers for people and programs: tables as a grid, CSV, Markdown or JSON."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console


FORMATS = ("grid", "csv", "markdown", "json")

#: Wide enough for any table: output that is not a terminal is neither folded nor cut off.
_ENDLESS = 1 << 16
_GAP = "  "
#: The space between two columns of Rich's tables.
_BETWEEN = " | "


class Cell(NamedTuple):
    """A value with the colour that a terminal gives it, in Rich's words: ``"on blue"``."""

    value: str | int | None
    style: str = ""


def plain(cell: str | int | Cell | None) -> str:
    """The text of a cell."""
    return str(cell.value if isinstance(cell, Cell) else cell)


class Table(NamedTuple):
    """Rows under named columns; None is an empty cell, in JSON ``null``."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | Cell | None]]
    title: str = ""  # above a grid only


def draw(table: Table, form: str) -> None:
    """Print a table in one of :data:`FORMATS`."""
    if form == "grid":
        _grid(table)
    else:
        click.echo({"csv": _csv, "markdown": _markdown, "json": _json}[form](table), nl=False)


def emit(value: Any) -> None:
    """Print an answer as JSON."""
    click.echo(_pretty(value, 2))


def blocks(titled: Mapping[str, Sequence[str]]) -> None:
    """Print lines under titles; those without lines are left out.

    In a terminal lines are wrapped, with continuation lines indented further; elsewhere lines are not wrapped.
    """
    for title, lines in titled.items():
        if lines:
            click.echo("\n" + heading(title))
            for line in lines:
                click.echo(wrapped(f"  {line}"))


def _pretty(value: Any, indent: int) -> str:
    """Indented JSON; msgspec takes a fifth of the time of :mod:`json` for a large table.

    Versions, which are strings of their own, are written as strings.
    """
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=indent).decode()


def heading(text: str) -> str:
    """Text that is emphasised in a terminal; :func:`click.echo` makes it plain elsewhere."""
    return text if os.environ.get("NO_COLOR") else click.style(text, bold=True)


def wrapped(line: str) -> str:
    """A line of prose, wrapped between words in a terminal, with continuation lines indented; unchanged elsewhere."""
    if not sys.stdout.isatty():
        return line
    indent = len(line) - len(line.lstrip()) + 2
    width = max(shutil.get_terminal_size().columns, 2 * indent)
    return textwrap.fill(line, width, subsequent_indent=" " * indent, drop_whitespace=True, break_long_words=False, break_on_hyphens=False)


def console() -> Console:
    """Rich's console: in a terminal with its width and colours, elsewhere with neither; respects ``NO_COLOR``."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _ENDLESS, highlight=False, markup=False, emoji=False)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[str]:
    """Rows as lines of aligned columns, those marked in ``right`` to the right; leaves out columns without text."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    ends = right or [False] * len(columns)
    padded = [
        [cell.rjust(width) if end else cell.ljust(width) for cell in column]
        for column, width, end in zip(columns, widths, ends, strict=True)
        if width
    ]
    return [_GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def _grid(table: Table) -> None:
    """Plain columns if they need neither colour nor folding; otherwise Rich, which is slower.

    Where a terminal is too narrow for the longest words side by side, each row is a paragraph with the names of its columns.
    """
    for line in table.title.splitlines():
        click.echo(wrapped(line))
    numbers = [all(isinstance(_value(row[place]), int) for row in table.rows) for place in range(len(table.columns))]
    coloured = any(isinstance(cell, Cell) and cell.style for row in table.rows for cell in row)
    texts = [list(table.columns), *(list(map(_text, row)) for row in table.rows)]
    if not (coloured and sys.stdout.isatty()):
        lines = aligned(texts, numbers)
        if not sys.stdout.isatty() or max(map(len, lines)) <= shutil.get_terminal_size().columns:
            click.echo("\n".join(lines))
            return
    widths = _widths(texts, shutil.get_terminal_size().columns - len(_BETWEEN) * (len(table.columns) - 1))
    if widths:
        _folded(table, numbers, widths)
    else:
        _paragraphs(texts)


def _widths(texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of columns, together at most ``room``, that break no word; empty if there are none."""
    columns = list(zip(*texts, strict=True))
    least = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    if sum(least) > room:
        return []
    widths = [max(map(len, column)) for column in columns]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda place: widths[place] if widths[place] > least[place] else 0)
        widths[widest] -= 1
    return widths


def _folded(table: Table, numbers: Sequence[bool], widths: Sequence[int]) -> None:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, number, width in zip(table.columns, numbers, widths, strict=True):
        grid.add_column(name, justify="right" if number else "left", width=width)
    for row in table.rows:
        grid.add_row(*(Text(_text(cell), style=cell.style if isinstance(cell, Cell) else "") for cell in row))
    console().print(grid)


def _paragraphs(texts: Sequence[Sequence[str]]) -> None:
    """Each row as its first cell, and below it the others with their names."""
    names, *rows = texts
    for first, *others in rows:
        named = "; ".join(f"{name}: {text}" for name, text in zip(names[1:], others, strict=True) if text)
        click.echo("\n".join(wrapped(line) for line in (first, f"  {named}") if line))


def _value(cell: str | int | Cell | None) -> str | int | None:
    return cell.value if isinstance(cell, Cell) else cell


def _text(cell: str | int | Cell | None) -> str:
    value = _value(cell)
    return "" if value is None else str(value)


def _csv(table: Table) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_text(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def _markdown(table: Table) -> str:
    rows = [[_text(cell).replace("|", "\\|") for cell in row] for row in [table.columns, *table.rows]]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |\n" for row in rows]
    return "".join([head, "|" + "|".join("-" * (width + 2) for width in widths) + "|\n", *body])


def _json(table: Table) -> str:
    rows = [dict(zip(table.columns, map(_value, row), strict=True)) for row in table.rows]
    return _pretty(rows, 1) + "\n"


#: Blanks beside the text of a cell.
_BESIDE = 3


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
