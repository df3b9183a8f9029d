"""Any table of cells as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.matrices.pictures.svg_sheet import AXIS, CELL_WIDTH, PANEL, WIDEST, Panel, cut, sheet, xml


class Mark(NamedTuple):
    """A cell of :func:`table`; ``colour`` is a thread or any number, or :data:`BLANK`."""

    text: str
    colour: int


def table(title: str, notes: Sequence[str], corner: str, rows: Sequence[str], cols: Sequence[str], cells: Sequence[Sequence[Mark]]) -> str:
    """A picture of any table of cells, cut into panels; rows and columns are named along its edges."""
    width = max(CELL_WIDTH, 7 * max((len(cell.text) for line in cells for cell in line), default=0) + 8)  # of bold letters
    fit = min(PANEL, 1 << max(1, (WIDEST - AXIS) // width).bit_length() - 1)
    panels = []
    for down in cut(len(rows), 1, PANEL):
        for across in cut(len(cols), 1, fit):
            part = [[cells[row][col] for col in across] for row in down]
            panels.append(
                Panel(
                    head="",
                    corner=corner,
                    rows=[rows[row] for row in down],
                    cols=[cols[col] for col in across],
                    colours=[[cell.colour for cell in line] for line in part],
                    tops=[[xml(cell.text) for cell in line] for line in part],
                    labels=[],
                    cell=width,
                )
            )
    return sheet(title, notes, panels)
