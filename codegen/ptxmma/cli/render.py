"""Tables as people and programs want them: a grid, CSV, Markdown, JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("grid", "csv", "markdown", "json")

#: Wide enough for any table: where no terminal reads it, nothing is folded or cut off.
_ENDLESS = 1 << 16


class Cell(NamedTuple):
    """A value with the colour that a terminal gives it, in Rich's words: ``"on blue"``."""

    value: str | int | None
    style: str = ""


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
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def console(*, stderr: bool = False) -> Console:
    """Where Rich prints: a terminal with its width and colours, or something else without either; ``NO_COLOR`` is respected."""
    from rich.console import Console

    file = sys.stderr if stderr else sys.stdout
    return Console(file=file, width=None if file.isatty() else _ENDLESS, highlight=False, markup=False, emoji=False)


def _grid(table: Table) -> None:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    # Lines only below the names, and ASCII where nobody draws them: what a pipe reads can be cut into columns.
    held = console()
    terminal = held.is_terminal
    grid = Grid(title=table.title or None, title_justify="left", box=box.SIMPLE_HEAD if terminal else None, pad_edge=terminal)
    numbers = [all(isinstance(_value(row[place]), int) for row in table.rows) for place in range(len(table.columns))]
    for name, number in zip(table.columns, numbers, strict=True):
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(_text(cell), style=cell.style if isinstance(cell, Cell) else "") for cell in row))
    held.print(grid)


def _value(cell: str | int | Cell | None) -> str | int | None:
    return cell.value if isinstance(cell, Cell) else cell


def _text(cell: str | int | Cell | None) -> str:
    value = _value(cell)
    return "" if value is None else str(value)


def _csv(table: Table) -> str:
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
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
