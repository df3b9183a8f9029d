"""Fragments: the thread of each element of a matrix, and its place there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxmma.matrices.pictures.sheet import CELL_WIDTH, PANEL, TIMES, TO, Panel, cut, edge, sheet
from ptxmma.model import COPY, Granularity, Layout
from ptxmma.model.bitmap import Run

#: With more rows or columns in a panel, a fragment is drawn with a cell for each register.
_MOST_CELLS = 16


def _spread(runs: Sequence[Run], name: str, value: int) -> int:
    """The contribution of ``value`` of one input to an output; an output of a permutation of bits is the sum of such parts."""
    return sum((value >> run.source & (1 << run.width) - 1) << run.target for run in runs if run.name == name)


def output_grid(runs: Sequence[Run], rows: tuple[str, range], cols: tuple[str, range], **fixed: int) -> list[list[int]]:
    """An output at every row and column; the other inputs are fixed."""
    base = sum(_spread(runs, name, value) for name, value in fixed.items())
    across = [_spread(runs, cols[0], col) for col in cols[1]]
    return [[part + col for col in across] for part in (base + _spread(runs, rows[0], row) for row in rows[1])]


def block(layout: Layout, per_register: int) -> tuple[int, int]:
    """Columns and rows of the rectangle that one register's elements fill; ``(1, 1)`` where they lie apart."""
    bits = layout.map.bits["i"][: per_register.bit_length() - 1]
    row, col = layout.plane
    if bits == tuple((col, bit) for bit in range(len(bits))):
        return per_register, 1
    if bits == tuple((row, bit) for bit in range(len(bits))):
        return 1, per_register
    return 1, 1


def period(layout: Layout) -> tuple[int, int]:
    """``(columns, elements)``: that many columns further on, the same threads hold the element that many numbers further on."""
    columns = layout.map.inverse().bits[layout.plane[1]]
    below = len(columns)
    while below and columns[below - 1][0] == "i" and (below == len(columns) or columns[below - 1][1] + 1 == columns[below][1]):
        below -= 1
    return 1 << below, 1 << columns[below][1] if below < len(columns) else 0


def shown_columns(layout: Layout, endless: bool) -> int:
    """Columns that the picture of a fragment has: all, or two periods of a layout that goes on for every N."""
    return min(2 * period(layout)[0], layout.cols) if endless else layout.cols


def by_register(layout: Layout, columns: int, per_register: int) -> bool:
    """Return whether a picture has a cell for each register instead of each element."""
    rows = _warp_rows(layout) or layout.rows
    return max(rows, columns) > _MOST_CELLS and block(layout, per_register) != (1, 1)


def _warp_rows(layout: Layout) -> int:
    """Rows that belong to one warp, where the rows are many and each warp has rows of its own; else 0."""
    warp = layout.map.bits["lane"][layout.lane_bits :]
    row, _ = layout.plane
    top = layout.map.outputs.get(row, 0) - len(warp)
    return 1 << top if warp and layout.rows > _MOST_CELLS and warp == tuple((row, top + bit) for bit in range(len(warp))) else 0


def _matrices(layout: Layout) -> list[dict[str, int]]:
    """The matrices of a fragment, each by what tells it apart: ``{"computation": 1}``; of copies only the first."""
    axes = [axis for axis in layout.axes if axis not in layout.plane]
    numbers = [range(1 if axis == COPY else layout.axes[axis]) for axis in axes]
    return [dict(zip(axes, place, strict=True)) for place in itertools.product(*numbers)]


def size(layout: Layout, endless: bool) -> str:
    """The size of what it lays out: ``16 x 8``, ``64 x N``, ``16 x 2N``, ``4 x 8 x 8``."""
    return TIMES.join(layout.grown if endless and axis in layout.growing else str(layout.axes[axis]) for axis in layout.coordinates)


#: The letter before the number of a register.
_REGISTER = "r"
#: The width of a cell with the threads of a warp.
_STRIP = 90


def fragment(layout: Layout, per_register: int, *, endless: bool, pattern: Granularity | None, observed: str = "") -> str:
    """Draw the thread of each element of a matrix, and its place there.

    ``per_register`` is the number of elements in a register; ``endless`` says that N is only the largest of many; ``pattern`` is the
    sparsity of a packed A, whose columns in the full matrix are then named too; ``observed`` is the target on which a layout was measured
    that the manual leaves open.
    """
    name = element_letter(layout.operands[0])
    columns = shown_columns(layout, endless)
    merged = by_register(layout, columns, per_register)
    across, down = block(layout, per_register)
    step_x, step_y = (across, down) if merged else (1, 1)
    back = layout.map.inverse()
    lanes, items = back.runs("lane"), back.runs("i")
    threads = [f"T{thread}" for thread in range(layout.threads)]
    names = _element_names(name, 1 << layout.map.inputs["i"], per_register, merged)
    panels = []
    row, col = layout.plane
    high = _warp_rows(layout)
    for fixed in _matrices(layout):
        head = ", ".join(f"{axis} {number}" for axis, number in fixed.items() if layout.axes[axis] > 1 and axis != COPY)
        for rows in cut(high or layout.rows, step_y, PANEL):
            for cols in cut(columns, step_x, PANEL):
                owners = output_grid(lanes, (row, rows), (col, cols), **fixed)
                items_there = output_grid(items, (row, rows), (col, cols), **fixed)
                panels.append(
                    Panel(
                        head=head or ("warp 0" if high else ""),
                        corner=f"{row} \\ {col}" if row else col,
                        rows=edge(rows) if row else [""],
                        cols=edge(cols),
                        colours=owners,
                        tops=[[threads[owner] for owner in line] for line in owners],
                        labels=[[names[item] for item in line] for line in items_there],
                        spans=_windows(cols, across, pattern) if pattern else (),
                        block=(1, 1) if merged else (across, down),
                        cell=_wide(names) if merged else CELL_WIDTH,
                        more="⋯" if columns < layout.cols else "",
                    )
                )
    if high:
        panels.append(_other_warps(layout, high))
    title = f"{_names(layout)}: {size(layout, endless)}" + (", packed" if pattern else "")
    measured = [seen(observed)] if observed else []
    return sheet(title, measured + _fragment_notes(layout, per_register, merged, endless, pattern), panels)


def seen(target: str) -> str:
    """The note on a layout that was measured on a target."""
    return f"Observed on {target}: the manual leaves this layout open."


def _other_warps(layout: Layout, high: int) -> Panel:
    """The rows and threads of the warps above the first, which lie alike: bits of the warp lead to the highest bits of the row."""
    warps, threads = range(1, layout.rows // high), 1 << layout.lane_bits
    return Panel(
        head="the other warps, like warp 0",
        corner="row",
        rows=edge(range(high, layout.rows, high)),
        cols=[""],
        colours=[[warp] for warp in warps],
        tops=[[f"T{threads * warp}{TO}T{threads * warp + threads - 1}"] for warp in warps],
        labels=[[f"as T0{TO}T{threads - 1}"] for _ in warps],
        cell=_STRIP,
    )


def _element_names(name: str, count: int, per_register: int, merged: bool) -> list[str]:
    if merged:
        return [f"r{item // per_register} {name}{item}{TO}{item + per_register - 1}" for item in range(count)]
    return [f"r{item // per_register} {name}{item}" if per_register > 1 else f"{name}{item}" for item in range(count)]


def _wide(names: Sequence[str]) -> int:
    return 5 * max(map(len, names)) + 10


def _windows(cols: range, width: int, pattern: Granularity) -> list[tuple[int, int, str]]:
    """The columns of the full matrix that each register's elements come from."""
    ratio = pattern.chunk // pattern.kept
    columns = width if cols.step == 1 else 1
    return [(index, columns, f"{cols[index] * ratio}{TO}{(cols[index] + width) * ratio - 1}") for index in range(0, len(cols), columns)]


def _names(layout: Layout) -> str:
    """The operands as one says them: ``C and D``."""
    return " and ".join(name.upper() if len(name) == 1 else name for name in layout.operands)


def element_letter(operand: str) -> str:
    """The letter before the number of an element: the operand's name, or i, as in the formulas, if the name reads like a register."""
    return "i" if operand == _REGISTER else operand


def _fragment_notes(layout: Layout, per_register: int, merged: bool, endless: bool, pattern: Granularity | None) -> list[str]:
    name = element_letter(layout.operands[0])
    elements = 1 << layout.map.inputs["i"]
    register = f"r{1 if elements > per_register else 0}"
    last = elements - 1 if elements <= per_register else 2 * per_register - 1
    if merged:
        first = last - per_register + 1
        cell = f"T1 {register} {name}{first}{TO}{last}"
        notes = [f"A cell is a register. {cell}: thread 1, register {register[1:]}, elements {first} to {last}."]
    elif per_register > 1:
        notes = [f"T1 {register} {name}{last}: thread 1, register {register[1:]}, element {last}."]
        notes[0] += " Thick lines separate registers." if block(layout, per_register) != (1, 1) else ""
    else:
        notes = [f"T1 {name}{last}: thread 1, element {last}, which fills register {last}."]
    if endless:
        columns, step = period(layout)
        columns_word = "column" if columns == 1 else "columns"
        notes.append(
            f"This goes on for all of N: {columns} {columns_word} further on the same thread has the element numbered {step} higher."
        )
    if layout.axes.get(COPY, 1) > 1:
        notes.append(f"Threads hold {layout.axes[COPY]} copies of every element; this is the first.")
    if pattern is not None:
        notes.append("Columns are those of the packed matrix; the brackets show which columns of the full matrix a register covers.")
    return notes
