"""Fragments: the thread of each element of a matrix, and its place there."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.matrices.pictures.sheet import CELL_WIDTH, PANEL, TO, Panel, cut, edge, sheet
from ptxmma.matrices.pictures.shown_layout import (
    WARP_BITS,
    block,
    by_register,
    matrices,
    output_grid,
    period,
    shown_columns,
    size,
    warp_rows,
)
from ptxmma.model import COPY, Granularity, Layout

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
    high = warp_rows(layout)
    for fixed in matrices(layout):
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
    warps, threads = range(1, layout.rows // high), 1 << WARP_BITS
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
