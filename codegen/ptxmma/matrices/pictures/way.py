"""The way of a tile: from a tensor in global memory through shared memory and a matrix descriptor to the registers of D."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.operands import Operand
from ptxmma.matrices.pictures.memory import in_memory
from ptxmma.matrices.pictures.sheet import BLANK, WIDE_CELL, Panel, edge, sheet
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.canonical import Geometry

#: Rows of the tensor that are shown above and below the box.
_AROUND = 1
#: The colour of a row of D.
_RESULT = 28


def way(box: BoxGeometry, at: Sequence[int], layout: Geometry, d: Operand, lines: int) -> str:
    """The first lines of a tile in four places; a cell is the bytes that a swizzle moves together, of D an element.

    Args:
        box: a tensor map of two dimensions.
        at: the coordinates of the copy, multiples of a cell along dimension 0.
        layout: the K-major canonical layout that the box writes.
        d: the result of a product that reads the tile as A.
        lines: the lines that are shown.
    """
    unit = layout.per_unit
    units = range(0, layout.k, unit)
    colours = [[4 * (first // unit) + line % 4 for first in units] for line in range(lines)]
    names = [[f"{line},{first}" for first in units] for line in range(lines)]
    addresses = [[box.locate(layout.start, d0=first, d1=line)[0] for first in units] for line in range(lines)]
    columns = range(0, box.shape[0], unit)
    around = range(at[1] - _AROUND, at[1] + lines + _AROUND)
    inside = [
        [(row - at[1], (first - at[0]) // unit) if row - at[1] in range(lines) and first - at[0] in units else None for first in columns]
        for row in around
    ]
    tensor = Panel(
        head="the tensor in global memory",
        corner="d1 \\ d0",
        rows=edge(around),
        cols=edge(columns),
        colours=[[BLANK if here is None else colours[here[0]][here[1]] for here in line] for line in inside],
        tops=[["" if here is None else names[here[0]][here[1]] for here in line] for line in inside],
        labels=[],
        cell=WIDE_CELL,
    )
    matrix = Panel(
        head="A, as the descriptor reads it",
        corner="row \\ k",
        rows=edge(range(lines)),
        cols=edge(units),
        colours=colours,
        tops=[[str(address) for address in line] for line in addresses],
        labels=[],
        cell=WIDE_CELL,
    )
    holders = [[d.locate(row, col) for col in range(d.cols)] for row in range(lines)]
    result = Panel(
        head="D in registers",
        corner="row \\ col",
        rows=edge(range(lines)),
        cols=edge(range(d.cols)),
        colours=[[_RESULT + row % 4] * d.cols for row in range(lines)],
        tops=[[f"T{lane}" for lane, _ in line] for line in holders],
        labels=[[f"d{element}" for _, element in line] for line in holders],
    )
    extents = " by ".join(map(str, box.box))
    notes = [
        f"A box of {extents} elements {box.element.name if box.element else ''} at ({', '.join(map(str, at))}) with swizzle {box.swizzle}; "
        f"its first {lines} lines. A cell is {unit} elements; its numbers are the line and the first element in the box.",
        "The swizzle exchanges cells within lines of shared memory. The descriptor finds a cell of A at the address that is written "
        "in it. A row of A becomes a row of D, whose elements lie in registers: the thread, and its element.",
    ]
    return sheet("From global memory to D", notes, [tensor, *in_memory(layout.memory, addresses, unit, colours), matrix, result])
