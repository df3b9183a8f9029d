"""``ptxmma layout``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ptxmma.cli.matrices import elsewhere, within
from ptxmma.cli.options import find, instruction_argument, table_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.matrices.arrangements import Arrangement, Place

_Answer = dict[str, str | int]


@click.command("layout")
@instruction_argument
@click.option("--operand", metavar="NAME", help="a, b, c, d, metadata, scale-a or scale-b.")
@click.option("--by-lane", is_flag=True, help="A row for each thread, with the rows and columns of the matrix that it holds.")
@click.option("--transpose", is_flag=True, help="Rows as columns and columns as rows.")
@click.option("--bits", is_flag=True, help="Name the bits: a1[31:16] is the upper half of the second register of A.")
@click.option("--all", "whole", is_flag=True, help="In a grid: all of a matrix whose N varies, and each element of a large one.")
@click.option("--row", type=int, help="One element: its row, with --col.")
@click.option("--col", type=int, help="Its column; of metadata the column in the packed A, of scale factors of A the block.")
@click.option("--lane", type=int, help="What one thread holds, with --element or --bit.")
@click.option("--element", type=int, help="The element of the thread, through all registers; of scale factors the byte.")
@click.option("--bit", type=int, help="Of metadata: a bit of the thread's register.")
@click.option("--computation", type=int, help="Which of several products at once; the first where none is given.")
@click.option("--selector", type=int, help="Of metadata: the sparsity selector; 0 where none is given.")
@click.option("--byte-id", type=int, help="Of scale factors; the first that is legal where none is given.")
@click.option("--thread-id", type=int, help="Of scale factors; the first that is legal where none is given.")
@table_options("svg")
def command(spelling: str, database: str | None, operand: str | None, form: str, **asked: Any) -> None:
    """Say which thread holds which element of an operand, and where.

    The table has a cell for each element of the matrix: 5:r1 a3 is lane 5, register 1, element 3 of the thread.  With --row and --col,
    or --lane and --element, the answer is one element.

    \b
    Example:
      ptxmma layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a --row 9 --col 3
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.matrices.arrangements import arrangement, names

    instruction = find(spelling, database)
    if operand is None:
        known = names(instruction)
        raise click.UsageError(
            f"say which --operand: {', '.join(known)}" if known else f"{instruction.canonical} has no operands in registers"
        )
    _check(operand, form, asked)
    chosen = {name: asked[name] for name in ("computation", "selector", "byte_id", "thread_id") if asked[name] is not None}
    try:
        table = arrangement(instruction, operand, **chosen)
    except ValueError as error:
        hint = elsewhere(instruction, operand)
        raise click.UsageError(f"{error}; ask {hint}" if hint else str(error)) from None
    one = _one(table, operand, asked)
    if one is not None:
        _answer(one, form)
    elif form == "svg":
        click.echo(_picture(table, operand, asked), nl=False)
    elif form == "json":
        _records(table, operand, asked)
    else:
        _table(table, operand, form, asked)


def _check(operand: str, form: str, asked: dict[str, Any]) -> None:
    """Options that contradict each other."""
    by_place, by_thread = ([asked[name] is not None for name in pair] for pair in (("row", "col"), ("lane",)))
    inside = [name for name in ("element", "bit") if asked[name] is not None]
    if any(by_place) and (not all(by_place) or any(by_thread) or inside):
        raise click.UsageError("one element by its place is --row and --col, without --lane, --element and --bit")
    wanted = "bit" if operand == "metadata" else "element"
    if (any(by_thread) or inside) and (inside != [wanted] or not all(by_thread)):
        raise click.UsageError(f"what a thread holds of {operand} is --lane and --{wanted}")
    if (any(by_place) or any(by_thread)) and (form == "svg" or asked["by_lane"] or asked["transpose"]):
        raise click.UsageError("one element is no table: leave out --by-lane, --transpose and --format svg")


# --- one element ------------------------------------------------------------------------------------------------------------


def _one(table: Arrangement, operand: str, asked: dict[str, Any]) -> _Answer | None:
    """The answer to a question about one element; None where the table is asked for."""
    row, col, lane, bits = asked["row"], asked["col"], asked["lane"], asked["bits"]
    packed = operand == "metadata"
    if row is not None:
        columns = table.cols * table.instruction.metadata.granularity.kept if packed else table.cols
        within("row", row, table.rows)
        within("col", col, columns)
        if packed:
            return _index(table, row, col, bits)
        answer = {table.axes[0]: row, table.axes[1]: col} | table.fixed | _of(table.locate(row, col), table, operand, bits)
        return answer | _origin(table, col)
    if lane is not None:
        within("lane", lane, table.threads)
        if packed:
            within("bit", asked["bit"], table.elements * table.layout.field_bits)
            return _described(table, lane, asked["bit"])
        within("element", asked["element"], table.elements)
        at = table.at(lane, asked["element"])
        return _of(table.place(lane, asked["element"]), table, operand, bits) | at | _origin(table, at[table.axes[1]])
    return None


def _of(place: Place, table: Arrangement, operand: str, bits: bool) -> _Answer:
    if bits:
        return {"place": _bits(place, table, operand)}
    return {"lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}


def _origin(table: Arrangement, col: int) -> _Answer:
    """Of a sparse A: the columns of the full matrix that an element may come from."""
    if table.operand.sparsity is None:
        return {}
    return {"from columns": " or ".join(map(str, table.instruction.metadata.columns(col)))}


def _index(table: Arrangement, row: int, col: int, bits: bool) -> _Answer:
    """Where the index of an element of the packed A stands."""
    metadata, selector = table.instruction.metadata, table.fixed["selector"]
    lane, low, width = metadata.index(row, col, selector)
    chunk = col // metadata.granularity.kept
    index = _range(low, width)
    where: _Answer = {"place": f"lane {lane}, {table.operand.name}[{index}]"} if bits else {"lane": lane, "bits": index}
    field = _range(*metadata.locate(row, chunk, selector)[1:])
    columns = " or ".join(map(str, metadata.columns(col)))
    return {"row": row, "col": col, "selector": selector, **where, "chunk": chunk, "field": field, "from columns": columns}


def _described(table: Arrangement, lane: int, bit: int) -> _Answer:
    """What a bit of a thread's metadata describes."""
    metadata = table.instruction.metadata
    pattern = metadata.granularity
    field, inside = divmod(bit, metadata.width)
    at = table.at(lane, field)
    index = inside // pattern.index_bits
    held = pattern.kept // pattern.indices
    first = at["chunk"] * pattern.kept + index * held
    cols = str(first) if held == 1 else f"{first} to {first + held - 1}"
    low = field * metadata.width
    bits, whole = _range(low + index * pattern.index_bits, pattern.index_bits), _range(low, metadata.width)
    chosen, row, chunk = (at[name] for name in ("selector", "row", "chunk"))
    return {"lane": lane, "bits": bits, "field": whole, "selector": chosen, "row": row, "chunk": chunk, "cols": cols}


def _range(low: int, width: int) -> str:
    return f"{low + width - 1}:{low}" if width > 1 else str(low)


def _answer(answer: _Answer, form: str) -> None:
    from ptxmma.cli.render import Table, draw, emit

    if form == "json":
        emit(answer)
    else:
        draw(Table([name.replace("_", "-") for name in answer], [list(answer.values())]), form)


# --- whole tables -----------------------------------------------------------------------------------------------------------


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
    """How much of a matrix is shown: columns or elements, and the rows and columns of a cell; with what there is to say of it."""

    cols: int
    elements: int
    down: int = 1
    across: int = 1
    note: str = ""


def _extent(table: Arrangement, short: bool) -> _Extent:
    """All, or what people can read: two periods of what goes on for every N, a cell for each register of what is large."""
    everything = _Extent(table.cols, table.elements)
    layout = table.layout
    if not short or layout.kind != "fragment":
        return everything
    from ptxmma.matrices import pictures

    cols = min(pictures.shown_columns(layout, pictures.endless(table.instruction.database.spec, layout)), table.cols)
    if cols < table.cols:
        period, step = pictures.period(layout)
        note = (
            f"Columns {cols} to {table.cols - 1} go on like this: {period} columns further the same thread has the element numbered "
            f"{step} higher. --all shows them."
        )
        return _Extent(cols, cols // period * step, note=note)
    if pictures.by_register(layout, cols, table.per_register):
        across, down = pictures.block(layout, table.per_register)
        note = f"A cell is a register of {table.per_register} elements. --all shows each element."
        return _Extent(cols, table.elements, down, across, note)
    return everything


def _grid(table: Arrangement, operand: str, short: bool, asked: dict[str, Any]) -> _Grid:
    """The table that is asked for."""
    extent = _extent(table, short and not asked["whole"])
    grid = (_by_lane if asked["by_lane"] else _by_element)(table, operand, extent, asked["bits"])
    return grid.transposed() if asked["transpose"] else grid


def _by_element(table: Arrangement, operand: str, extent: _Extent, bits: bool) -> _Grid:
    rows, cols = range(0, table.rows, extent.down), range(0, extent.cols, extent.across)
    merged = extent.down * extent.across > 1

    def text(place: Place) -> str:
        if merged:
            return f"lane {place.lane}, {_register(place, table, operand)}" if bits else f"{place.lane}:r{place.register}"
        return _bits(place, table, operand) if bits else f"{place.lane}:{_short(place, table, operand)}"

    cells = [[(text(place), place.lane) for place in line] for line in table.places(rows, cols)]
    return _Grid(" \\ ".join(table.axes), _edge(rows), _edge(cols), cells, extent.note)


def _by_lane(table: Arrangement, operand: str, extent: _Extent, bits: bool) -> _Grid:
    step = extent.down * extent.across
    elements = range(0, extent.elements, step)

    def name(place: Place) -> str:
        if step > 1:
            return _register(place, table, operand) if bits else f"r{place.register}"
        return _named_bits(place, table, operand) if bits else _short(place, table, operand)

    def text(at: tuple[int, int] | None) -> str:
        if at is None:
            return ""
        row, col = (_edge(range(first, first + size, size))[0] for first, size in zip(at, (extent.down, extent.across), strict=True))
        return f"{row},{col}"

    held = table.held(range(table.threads), elements)
    cells = [[(text(at), lane if at else None) for at in line] for lane, line in enumerate(held)]
    names = [name(table.place(0, first)) for first in elements]
    what = "register" if step > 1 else "bits" if bits else "element"
    return _Grid(f"lane \\ {what}", [str(lane) for lane in range(table.threads)], names, cells, extent.note)


def _edge(span: range) -> list[str]:
    return [str(first) if span.step == 1 else f"{first}-{first + span.step - 1}" for first in span]


def _short(place: Place, table: Arrangement, operand: str) -> str:
    """``"r1 a3"``; an element that fills its register needs no second name."""
    if table.layout.kind == "metadata":
        return f"[{place.bits}]"
    if table.layout.kind == "scale":
        return f"byte {place.element}"
    return f"{operand}{place.element}" if table.per_register == 1 else f"r{place.register} {operand}{place.element}"


def _bits(place: Place, table: Arrangement, operand: str) -> str:
    """``"lane 3, a1[15:0]"``."""
    return f"lane {place.lane}, {_named_bits(place, table, operand)}"


def _named_bits(place: Place, table: Arrangement, operand: str) -> str:
    """``"a1[15:0]"``."""
    return f"{_register(place, table, operand)}[{place.bits}]"


def _register(place: Place, table: Arrangement, operand: str) -> str:
    """``"a1"``; an operand of one register has no number."""
    return f"{operand}{place.register}" if table.layout.kind == "fragment" else table.operand.name


def _size(table: Arrangement) -> str:
    chosen = "".join(f", {name.replace('_', '-')} {value}" for name, value in table.fixed.items())
    packed = ", packed" if table.operand.sparsity is not None else ""
    return f"{table.rows} x {table.cols}{packed}{chosen}"


def _table(table: Arrangement, operand: str, form: str, asked: dict[str, Any]) -> None:
    from ptxmma.cli.matrices import coloured, draw_matrix
    from ptxmma.cli.render import Table, wrapped

    grid = _grid(table, operand, form == "grid", asked)
    rows = [
        [name, *(text if lane is None else coloured(text, lane) for text, lane in line)]
        for name, line in zip(grid.rows, grid.cells, strict=True)
    ]
    title = f"{operand} of {table.instruction.canonical}: {_size(table)}"
    draw_matrix(Table([grid.corner, *grid.cols], rows, title), form)
    if form == "grid" and grid.note:
        click.echo(wrapped(grid.note))


def _picture(table: Arrangement, operand: str, asked: dict[str, Any]) -> str:
    """The picture of the reference where the whole operand is asked for, else one of just this table."""
    from ptxmma.matrices import pictures

    if not any(asked[name] for name in ("by_lane", "transpose", "bits", "whole")):
        return pictures.operand(table.instruction.database.spec, table.operand)
    grid = _grid(table, operand, True, asked)
    marks = [[pictures.Mark(text, pictures.BLANK if lane is None else lane) for text, lane in line] for line in grid.cells]
    notes = [table.instruction.canonical, *([grid.note] if grid.note else [])]
    corner = grid.corner.replace("element", "elem").replace("register", "reg")  # there is little room
    return pictures.table(f"{operand}: {_size(table)}", notes, corner, grid.rows, grid.cols, marks)


def _records(table: Arrangement, operand: str, asked: dict[str, Any]) -> None:
    """Every element in the order of the table, for programs."""
    from ptxmma.cli.render import emit

    rows, cols = range(table.rows), range(table.cols)
    found = [
        ((row, col), place) for row, line in zip(rows, table.places(rows, cols), strict=True) for col, place in zip(cols, line, strict=True)
    ]

    def order(one: tuple[tuple[int, int], Place]) -> tuple[int, ...]:
        at, place = one
        key = (place.lane, place.element) if asked["by_lane"] else at
        return key[::-1] if asked["transpose"] else key

    elements = [
        {**dict(zip(table.axes, at, strict=True)), **_of(place, table, operand, asked["bits"])} for at, place in sorted(found, key=order)
    ]
    about = {"instruction": table.instruction.canonical, "operand": operand, "rows": table.rows, "cols": table.cols}
    emit({**about, **table.fixed, "elements": elements})
