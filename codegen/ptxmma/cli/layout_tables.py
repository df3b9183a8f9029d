"""``ptxmma layout`` about a whole operand: its table, its picture, its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.cli.command import Question
    from ptxmma.matrices.arrangements import Arrangement, Place


class _Grid(NamedTuple):
    """A table before it is drawn: texts with the thread that colours them; no thread, no text."""

    corner: str
    rows: Sequence[str]
    cols: Sequence[str]
    cells: Sequence[Sequence[tuple[str, int | None]]]
    note: str = ""

    def transposed(self) -> _Grid:
        corner = " \\ ".join(reversed(self.corner.split(" \\ ")))
        return _Grid(corner, self.cols, self.rows, list(zip(*self.cells, strict=True)), self.note)


class _Extent(NamedTuple):
    """The part of a matrix that is shown: columns or elements, the rows and columns of a cell, and a note about it."""

    cols: int
    elements: int
    down: int = 1
    across: int = 1
    note: str = ""


def _extent(table: Arrangement, short: bool) -> _Extent:
    """Everything, or two periods of a layout that repeats for every N, and a cell for each register of a large matrix."""
    everything = _Extent(table.cols, table.elements)
    layout = table.layout
    if not short or layout.kind != "fragment":
        return everything
    from ptxmma.matrices import pictures

    cols = min(pictures.shown_columns(layout, bool(layout.growing)), table.cols)
    if cols < table.cols:
        period, step = pictures.period(layout)
        note = (
            f"Columns {cols} to {table.cols - 1} go on like this: {period} {'column' if period == 1 else 'columns'} further the same "
            f"thread has the element numbered {step} higher. --all shows them."
        )
        return _Extent(cols, cols // period * step, note=note)
    if pictures.by_register(layout, cols, table.per_register):
        across, down = pictures.block(layout, table.per_register)
        note = f"A cell is a register of {table.per_register} elements. --all shows each element."
        return _Extent(cols, table.elements, down, across, note)
    return everything


def _grid(table: Arrangement, question: Question, *, short: bool) -> _Grid:
    """The table that the options select."""
    extent = _extent(table, short and not question.whole)
    grid = (_by_lane if question.by_lane else _by_element)(table, extent, question.bits)
    return grid.transposed() if question.transpose else grid


def _by_element(table: Arrangement, extent: _Extent, bits: bool) -> _Grid:
    rows, cols = range(0, table.rows, extent.down), range(0, extent.cols, extent.across)
    merged = extent.down * extent.across > 1

    def text(place: Place) -> str:
        if merged:
            return f"lane {place.lane}, {register_name(place, table)}" if bits else f"{place.lane}:r{place.register}"
        return place_bits(place, table) if bits else f"{place.lane}:{cell_text(place, table)}"

    cells = [[(text(place), place.lane) for place in line] for line in table.places(rows, cols)]
    return _Grid(" \\ ".join(filter(None, table.axes)), _edge(rows), _edge(cols), cells, extent.note)


def _by_lane(table: Arrangement, extent: _Extent, bits: bool) -> _Grid:
    step = extent.down * extent.across
    elements = range(0, extent.elements, step)

    def name(place: Place) -> str:
        if step > 1:
            return register_name(place, table) if bits else f"r{place.register}"
        return named_bits(place, table) if bits else cell_text(place, table)

    def text(at: tuple[int, int] | None) -> str:
        if at is None:
            return ""
        edges = (_edge(range(first, first + size, size))[0] for first, size in zip(at, (extent.down, extent.across), strict=True))
        return ",".join(edge for edge, axis in zip(edges, table.axes, strict=True) if axis)

    places = table.contents(range(table.threads), elements)
    cells = [[(text(at), lane if at else None) for at in line] for lane, line in enumerate(places)]
    names = [name(table.place(0, first)) for first in elements]
    what = "register" if step > 1 else "bits" if bits else "element"
    return _Grid(f"lane \\ {what}", [str(lane) for lane in range(table.threads)], names, cells, extent.note)


def _edge(span: range) -> list[str]:
    return [str(first) if span.step == 1 else f"{first}-{first + span.step - 1}" for first in span]


def _size(table: Arrangement) -> str:
    chosen = "".join(f", {name.replace('_', '-')} {value}" for name, value in table.fixed.items())
    packed = ", packed" if table.operand.sparsity is not None else ""
    return f"{table.rows} x {table.cols}{packed}{chosen}"


def show(table: Arrangement, question: Question, *, usual: bool) -> None:
    """Print the table of an operand; ``usual`` where it is the table that is shown by default."""
    if question.form == "svg":
        click.echo(_picture(table, question, usual=usual), nl=False)
    elif question.form == "json":
        _show_records(table, question)
    else:
        _show_table(table, question)


def _show_table(table: Arrangement, question: Question) -> None:
    from ptxmma.cli.render import Table, coloured, draw_matrix, wrapped
    from ptxmma.matrices.pictures import seen

    grid = _grid(table, question, short=question.form == "grid")
    rows = [
        [name, *(text if lane is None else coloured(text, lane) for text, lane in line)]
        for name, line in zip(grid.rows, grid.cells, strict=True)
    ]
    title = f"{table.name} of {table.instruction.canonical}: {_size(table)}"
    if question.form == "grid" and table.operand.observed:
        title += f"\n{seen(table.operand.observed)}"
    corner = f"{grid.corner} (observed on {table.operand.observed})" if question.form != "grid" and table.operand.observed else grid.corner
    draw_matrix(Table([corner, *grid.cols], rows, title), question.form)
    if question.form == "grid" and grid.note:
        click.echo(wrapped(grid.note))


def _picture(table: Arrangement, question: Question, *, usual: bool) -> str:
    """The picture of the reference for the usual table, shown as usual; otherwise a picture of just this table."""
    from ptxmma.matrices import pictures

    if usual and not question.given("by_lane", "transpose", "bits", "whole"):
        return pictures.operand(table.operand)
    grid = _grid(table, question, short=True)
    marks = [[pictures.Mark(text, pictures.BLANK if lane is None else lane) for text, lane in line] for line in grid.cells]
    observed = [pictures.seen(table.operand.observed)] if table.operand.observed else []
    notes = [table.instruction.canonical, *observed, *([grid.note] if grid.note else [])]
    corner = grid.corner.replace("element", "elem").replace("register", "reg")  # there is little room
    return pictures.table(f"{table.name}: {_size(table)}", notes, corner, grid.rows, grid.cols, marks)


def _show_records(table: Arrangement, question: Question) -> None:
    """Every element in the order of the table, for programs."""
    from ptxmma.cli.render import emit

    rows, cols = range(table.rows), range(table.cols)
    places = [
        ((row, col), place) for row, line in zip(rows, table.places(rows, cols), strict=True) for col, place in zip(cols, line, strict=True)
    ]

    def order(located: tuple[tuple[int, int], Place]) -> tuple[int, ...]:
        at, place = located
        key = (place.lane, place.element) if question.by_lane else at
        return key[::-1] if question.transpose else key

    elements = [
        {
            **{axis: number for axis, number in zip(table.axes, at, strict=True) if axis},
            **place_answer(place, table, question.bits),
        }
        for at, place in sorted(places, key=order)
    ]
    about = {"instruction": table.instruction.canonical, "operand": table.name, "rows": table.rows, "cols": table.cols}
    observed = {"observed": table.operand.observed} if table.operand.observed else {}
    emit({**about, **table.fixed, **observed, "elements": elements})


Answer = dict[str, str | int]


def cell_text(place: Place, table: Arrangement) -> str:
    """``"r1 a3"``; an element that fills its register has no second name."""
    from ptxmma.matrices.pictures import element_letter

    if table.layout.kind == "metadata":
        return f"[{place.bits}]"
    if table.layout.kind == "scale":
        return f"byte {place.element}"
    if table.layout.kind == "address":
        return table.name
    element = f"{element_letter(table.name)}{place.element}"
    return element if table.per_register == 1 else f"r{place.register} {element}"


def place_bits(place: Place, table: Arrangement) -> str:
    """``"lane 3, a1[15:0]"``."""
    return f"lane {place.lane}, {named_bits(place, table)}"


def named_bits(place: Place, table: Arrangement) -> str:
    """``"a1[15:0]"``."""
    return f"{register_name(place, table)}[{place.bits}]"


def register_name(place: Place, table: Arrangement) -> str:
    """``"a1"``; an operand of one register has no number."""
    return f"{table.name}{place.register}" if table.layout.kind == "fragment" else table.operand.name


def place_answer(place: Place, table: Arrangement, bits: bool) -> Answer:
    """The place of an element: named by its bits, or by thread, register and number."""
    if bits:
        return {"place": place_bits(place, table)}
    if table.layout.kind == "address":
        return {"lane": place.lane}
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
