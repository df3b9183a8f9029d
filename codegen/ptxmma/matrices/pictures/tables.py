"""Tables of cells, and words as their bit fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.matrices.pictures.sheet import (
    AXIS,
    BLANK,
    CELL_HEIGHT,
    CELL_WIDTH,
    MARGIN,
    NARROWEST,
    PANEL,
    WIDEST,
    Panel,
    above_panels,
    colour,
    cut,
    document,
    sheet,
    wrapped,
    xml,
)


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
                    cell=width,
                )
            )
    return sheet(title, notes, panels)


class Field(NamedTuple):
    """A field of a word; ``colour`` is :data:`BLANK` for bits that mean nothing."""

    low: int
    width: int
    text: str
    colour: int


def bit_fields(title: str, notes: Sequence[str], words: Sequence[tuple[str, int, Sequence[Field]]], *, per_line: int, cell: int) -> str:
    """Words as their fields, highest bit on the left; ``words`` are ``(name, bits, fields)``, cut into lines of ``per_line`` bits."""
    axis = 7 * max((len(name) for name, _, _ in words), default=0)
    width = max(axis + cell * min(per_line, max(bits for _, bits, _ in words)), 8 * len(title), NARROWEST)
    lines = wrapped(notes, width)
    y = above_panels(lines) + 10
    body: list[str] = []
    for name, bits, fields in words:
        for low in range(bits - per_line if bits > per_line else 0, -1, -per_line):
            high = min(low + per_line, bits)
            right = MARGIN + axis + cell * min(per_line, max(word[1] for word in words))
            if name:
                body.append(f'<text class="p r" x="{MARGIN + axis - 8}" y="{y + 22}">{xml(name)}</text>')
            for field in fields:
                first, last = max(field.low, low), min(field.low + field.width, high)
                if first >= last:
                    continue
                left, across = right - cell * (last - low), cell * (last - first)
                fill = 'class="o b"' if field.colour == BLANK else f'class="b" fill="{colour(field.colour)}"'
                body.append(f'<path {fill} d="M{left} {y + 4}h{across}v{CELL_HEIGHT}h-{across}z"/>')
                text = next((text for text in (field.text, field.text[:1]) if 6 * len(text) <= across), "")
                body.append(f'<text class="t" x="{left + across // 2}" y="{y + 21}">{xml(text)}</text>')
                edges = f"{last - 1}" if last - first == 1 else f"{last - 1}:{first}"
                body.append(f'<text class="x" x="{left + across // 2}" y="{y}">{edges}</text>')
            y += CELL_HEIGHT + 20
    return document(title, lines, width + 2 * MARGIN, y, body)
