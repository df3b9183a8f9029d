"""The part of a layout that a picture or a table shows: its columns, and elements or registers as cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxmma.matrices.pictures.sheet import TIMES
from ptxmma.model import COPY, Layout
from ptxmma.model.bitmap import Run

#: With more rows or columns in a panel, a fragment is drawn with a cell for each register.
MOST_CELLS = 16


#: Bits of a thread's place in its warp.
WARP_BITS = 5


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
    rows = warp_rows(layout) or layout.rows
    return max(rows, columns) > MOST_CELLS and block(layout, per_register) != (1, 1)


def warp_rows(layout: Layout) -> int:
    """Rows that belong to one warp, where the rows are many and each warp has rows of its own; else 0."""
    warp = layout.map.bits["lane"][WARP_BITS:]
    row, _ = layout.plane
    top = layout.map.outputs.get(row, 0) - len(warp)
    return 1 << top if warp and layout.rows > MOST_CELLS and warp == tuple((row, top + bit) for bit in range(len(warp))) else 0


def matrices(layout: Layout) -> list[dict[str, int]]:
    """The matrices of a fragment, each by what tells it apart: ``{"computation": 1}``; of copies only the first."""
    axes = [axis for axis in layout.axes if axis not in layout.plane]
    numbers = [range(1 if axis == COPY else layout.axes[axis]) for axis in axes]
    return [dict(zip(axes, place, strict=True)) for place in itertools.product(*numbers)]


def size(layout: Layout, endless: bool) -> str:
    """The size of what it lays out: ``16 x 8``, ``64 x N``, ``16 x 2N``, ``4 x 8 x 8``."""
    return TIMES.join(layout.grown if endless and axis in layout.growing else str(layout.axes[axis]) for axis in layout.coordinates)
