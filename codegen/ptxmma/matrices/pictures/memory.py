"""Shared memory: swizzle atoms, canonical layouts, whole matrices as they lie there, and the way of a tile through it.

A unit is what a swizzle moves together: as many bytes as a matrix is aligned to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.catalog.operands import Operand
from ptxmma.matrices.pictures.sheet import BLANK, PANEL, TIMES, WIDE_CELL, Panel, cut, edge, sheet
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.canonical import Canonical, Geometry
from ptxmma.model import SharedMemory
from ptxmma.model.memory import Banks

#: Panels, and groups of lines, in the picture of a canonical layout: the steps from one to the next are LBO and SBO.
_PANELS, _GROUPS = 2, 2


def _turn(banks: Banks) -> int:
    """The bytes of a line of memory in pictures: once through all banks."""
    return banks.count * banks.bytes


def atom(canonical: Canonical) -> str:
    """A swizzle atom: where each unit of the matrix lies in shared memory, counted from the start of the atom."""
    memory, swizzle, layout = canonical
    size, turn, strided = memory.alignment, _turn(memory.banks), layout.lines
    leading = swizzle.bytes // size
    places = [[canonical.swizzled(row * swizzle.bytes + unit * size, 0) for unit in range(leading)] for row in range(strided)]
    down, along = ("x", "k") if layout.contiguous == "k" else ("k", "x")
    per_line = turn // size
    lines = -(-leading * strided // per_line)
    holder = {place: (row, unit) for row, line in enumerate(places) for unit, place in enumerate(line)}
    inside = [[holder[turn * line + size * unit] for unit in range(per_line)] for line in range(lines)]

    def moved(before: int, place: int) -> str:
        """The XOR that moved a unit within its line."""
        unit = before % per_line
        return f"{unit} ^ {unit ^ place}"

    matrix = Panel(
        head="in the matrix",
        corner=f"{down} \\ unit",
        rows=edge(range(strided)),
        cols=edge(range(leading)),
        colours=[[4 * unit + row % 4 for unit in range(leading)] for row in range(strided)],
        tops=[[f"{row},{unit}" for unit in range(leading)] for row in range(strided)],
        labels=[[f"+{place}" for place in line] for line in places],
        cell=40,
    )
    in_memory = Panel(
        head="in shared memory",
        corner="byte",
        rows=[f"+{turn * line}" for line in range(lines)],
        cols=[f"+{size * unit}" for unit in range(per_line)],
        colours=[[4 * unit + row % 4 for row, unit in line] for line in inside],
        tops=[[f"{row},{unit}" for row, unit in line] for line in inside],
        labels=[[moved(row * leading + unit, place) for place, (row, unit) in enumerate(units)] for units in inside],
        cell=40,
    )
    across = swizzle.atom_k if layout.contiguous == "k" else swizzle.atom_mn
    title = f"{swizzle.title}, {layout.majorness}-major: an atom of {across[0]}{TIMES}{across[1]} units of {size} bytes (x{TIMES}k)"
    notes = [
        f"Units run along {along}; x is a row of A or a column of B. On the left, where each unit lies: bytes from the start of the atom.",
        f"On the right, what is there: a line is {turn} bytes, once through all banks; u ^ x is where unit u was moved from.",
    ]
    return sheet(title, notes, [matrix, in_memory])


def canonical_layout(canonical: Canonical) -> str:
    """A canonical layout: the units of a dense matrix of a few panels and groups of lines, and the strides between these."""
    memory, swizzle, layout = canonical
    strides = {layout.group_stride: layout.lines * swizzle.bytes}
    strides[layout.panel_stride] = _GROUPS * strides[layout.group_stride]
    lines, along = range(_GROUPS * layout.lines), range(0, _PANELS * swizzle.bytes, memory.alignment)
    by_row = layout.contiguous == "k"
    offsets = [[canonical.offset(*((line, byte) if by_row else (byte, line)), **strides) for byte in along] for line in lines]
    addresses = [[canonical.swizzled(offset, 0) for offset in line] for line in offsets]
    title = f"{layout.majorness}-major, {swizzle.title}: LBO {strides['lbo']}, SBO {strides['sbo']}"
    notes = [
        f"{_PANELS} panels of {swizzle.bytes} bytes side by side, {_GROUPS} groups of {layout.lines} lines one below the other: "
        f"{layout.panel_stride.upper()} leads from panel to panel, {layout.group_stride.upper()} from group to group.",
        f"On the left, where each {memory.alignment} bytes lie, from the start. On the right, what is there: its line and its unit.",
    ]
    return image(memory, title, notes, f"{'x' if by_row else 'k'} \\ unit", 1, addresses)


def image(memory: SharedMemory, title: str, notes: Sequence[str], corner: str, step: int, addresses: Sequence[Sequence[int]]) -> str:
    """A whole matrix in shared memory: on the left where each unit of each line lies, on the right what is there.

    ``corner`` names lines and positions along them, ``step`` is the number of elements in a unit, ``addresses`` has one for each unit,
    line by line, as they lie after the swizzle.
    """
    units = range(len(addresses[0]))
    tint = [[4 * unit + line % 4 for unit in units] for line in range(len(addresses))]
    panels = []
    for down in cut(len(addresses), 1, PANEL):
        for across in cut(len(units), 1, PANEL):
            panels.append(
                Panel(
                    head="in the matrix",
                    corner=corner,
                    rows=edge(down),
                    cols=[edge(range(step * unit, step * unit + step, step))[0] for unit in across],
                    colours=[[tint[line][unit] for unit in across] for line in down],
                    tops=[[str(addresses[line][unit]) for unit in across] for line in down],
                    cell=WIDE_CELL,
                )
            )
    return sheet(title, notes, [*panels, *in_memory(memory, addresses, step, tint)])


def in_memory(memory: SharedMemory, addresses: Sequence[Sequence[int]], step: int, colours: Sequence[Sequence[int]]) -> list[Panel]:
    """Shared memory, a line of it once through all banks: what is at each address, its line and its first element."""
    turn = _turn(memory.banks)
    holder = {address: (line, unit) for line, row in enumerate(addresses) for unit, address in enumerate(row)}
    base = min(holder) // turn * turn
    lines = range(base, max(holder) + 1, turn)
    per_line = range(0, turn, memory.alignment)
    panels = []
    for part in cut(len(lines), 1, PANEL):
        inside = [[holder.get(lines[line] + byte) for byte in per_line] for line in part]
        panels.append(
            Panel(
                head="in shared memory",
                corner="address",
                rows=[str(lines[line]) for line in part],
                cols=[f"+{byte}" for byte in per_line],
                colours=[[colours[at[0]][at[1]] if at else BLANK for at in row] for row in inside],
                tops=[[f"{at[0]},{step * at[1]}" if at else "" for at in row] for row in inside],
                cell=WIDE_CELL,
            )
        )
    return panels


# --- the way of a tile -------------------------------------------------------------------------------------------------------


#: Rows of the tensor that are shown above and below the box.
_AROUND = 1
#: The colour of a row of D.
_RESULT = 28


class Ends(NamedTuple):
    """The operands at the end of the way of a tile.

    Attributes:
        a: A in registers, for a product that reads no shared memory.
        d: D in registers.
        tensor_d: D in tensor memory.
    """

    a: Operand
    d: Operand
    tensor_d: Operand


def way(box: BoxGeometry, at: Sequence[int], layout: Geometry, ends: Ends, lines: int) -> str:
    """The first lines of a tile in each place; a cell is the bytes that a swizzle moves together, of D an element.

    Args:
        box: a tensor map of two dimensions.
        at: the coordinates of the copy, multiples of a cell along dimension 0.
        layout: the K-major canonical layout that the box writes.
        ends: operands of products that read the tile as A.
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
        cell=WIDE_CELL,
    )
    matrix = Panel(
        head="A, as the descriptor reads it",
        corner="row \\ k",
        rows=edge(range(lines)),
        cols=edge(units),
        colours=colours,
        tops=[[str(address) for address in line] for line in addresses],
        cell=WIDE_CELL,
    )
    loaded = [[[ends.a.locate(line, col % ends.a.cols) for col in range(first, first + unit)] for first in units] for line in range(lines)]
    registers = Panel(
        head="A in registers",
        corner="row \\ k",
        rows=edge(range(lines)),
        cols=edge(units),
        colours=colours,
        tops=[[f"T{edge(range(cell[0][0], cell[-1][0] + 1, len(cell) // 2))[0]}" for cell in line] for line in loaded],
        labels=[[" ".join(f"a{element}" for element in sorted({element for _, element in cell})) for cell in line] for line in loaded],
        cell=WIDE_CELL,
    )
    shown = range(ends.d.cols)
    result, tensor_result = (
        Panel(
            head=head,
            corner="row \\ col",
            rows=edge(range(lines)),
            cols=edge(shown),
            colours=[[_RESULT + row % 4] * len(shown) for row in range(lines)],
            tops=[[f"{letter}{place[0]}" for place in line] for line in places],
            labels=[[f"{of}{place[1]}" for place in line] for line in places],
        )
        for head, letter, of, places in (
            ("D in registers", "T", "d", [[ends.d.locate(row, col) for col in shown] for row in range(lines)]),
            ("D in tensor memory", "L", "c", [[_cell(ends.tensor_d, row, col) for col in shown] for row in range(lines)]),
        )
    )
    extents = " by ".join(map(str, box.box))
    notes = [
        f"A box of {extents} elements {box.element.name if box.element else ''} at ({', '.join(map(str, at))}) with swizzle {box.swizzle}; "
        f"its first {lines} lines. A cell is {unit} elements; its numbers are the line and the first element in the box.",
        "The swizzle exchanges cells within lines of shared memory. wgmma and tcgen05 read A through a descriptor, which finds a cell at "
        "the address that is written in it. mma reads A from registers, which ldmatrix fills: four threads hold a cell.",
        "A row of A becomes a row of D. Its elements lie in registers of a thread (T), or with tcgen05 in a lane (L) and a column (c) "
        "of tensor memory.",
    ]
    return sheet(
        "From global memory to D",
        notes,
        [tensor, *in_memory(layout.memory, addresses, unit, colours), matrix, registers, result, tensor_result],
    )


def _cell(d: Operand, row: int, col: int) -> tuple[int, int]:
    """Lane and column of an element in tensor memory."""
    place = d.places(row=row, col=col)[0]
    return place.lane, place.column
