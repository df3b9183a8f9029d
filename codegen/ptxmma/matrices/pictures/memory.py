"""Shared memory: swizzle atoms, and whole matrices as they lie there."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.matrices.pictures.sheet import BLANK, PANEL, TIMES, WIDE_CELL, Panel, cut, edge, sheet
from ptxmma.model import Swizzle
from ptxmma.model.formula import Value, evaluate, parse

#: A line of the picture of shared memory: once through all banks.
_LINE = 128
_UNIT = 16


def _atom_places(swizzle: Swizzle, formula: str) -> dict[tuple[int, int], int]:
    """``(strided, leading)`` in 16-byte units -> byte offset of the unit in an aligned atom, by the spec's formula."""
    leading, strided = swizzle.bytes // _UNIT, swizzle.atom_mn[1]
    tree = parse(formula)
    places = {}
    for row in range(strided):
        for unit in range(leading):
            address: Value = row * swizzle.bytes + unit * _UNIT
            value = evaluate(tree, {"address": address, "base_offset": 0, "span": swizzle.bytes})
            assert isinstance(value, int)
            places[row, unit] = value
    return places


def atom(swizzle: Swizzle, majorness: str, formula: str) -> str:
    """A swizzle atom: where each 16-byte unit of the matrix lies in shared memory."""
    places = _atom_places(swizzle, formula)
    leading, strided = swizzle.bytes // _UNIT, swizzle.atom_mn[1]
    along, down = ("k", "x") if majorness == "K" else ("x", "k")
    per_line = _LINE // _UNIT
    lines = -(-leading * strided // per_line)
    holder = {place: unit for unit, place in places.items()}
    inside = [[holder[_LINE * line + _UNIT * unit] for unit in range(per_line)] for line in range(lines)]
    matrix = Panel(
        head="in the matrix",
        corner=f"{down} \\ unit",
        rows=edge(range(strided)),
        cols=edge(range(leading)),
        colours=[[4 * unit + row % 4 for unit in range(leading)] for row in range(strided)],
        tops=[[f"{row},{unit}" for unit in range(leading)] for row in range(strided)],
        labels=[[f"+{places[row, unit]}" for unit in range(leading)] for row in range(strided)],
        cell=40,
    )
    memory = Panel(
        head="in shared memory",
        corner="byte",
        rows=[f"+{_LINE * line}" for line in range(lines)],
        cols=[f"+{_UNIT * unit}" for unit in range(per_line)],
        colours=[[4 * unit + row % 4 for row, unit in line] for line in inside],
        tops=[[f"{row},{unit}" for row, unit in line] for line in inside],
        labels=[[_moved(row * leading + unit, place) for place, (row, unit) in enumerate(units)] for units in inside],
        cell=40,
    )
    across = swizzle.atom_k if majorness == "K" else swizzle.atom_mn
    title = f"{swizzle.title}, {majorness}-major: an atom of {across[0]}{TIMES}{across[1]} units of {_UNIT} bytes (x{TIMES}k)"
    notes = [
        f"Units run along {along}; x is a row of A or a column of B. On the left, where each unit lies: bytes from the start of the atom.",
        f"On the right, what is there: a line is {_LINE} bytes, once through all banks; u ^ x is where unit u was moved from.",
    ]
    return sheet(title, notes, [matrix, memory])


def image(title: str, notes: Sequence[str], corner: str, step: int, addresses: Sequence[Sequence[int]]) -> str:
    """A whole matrix in shared memory: on the left where each 16-byte unit of each line lies, on the right what is there.

    ``corner`` names lines and positions along them, ``step`` is the number of elements in a unit, ``addresses`` has one for each unit,
    line by line, as they lie after the swizzle.
    """
    units = range(len(addresses[0]))
    tint = [[4 * unit + line % 4 for unit in units] for line in range(len(addresses))]
    holder = {address: (line, unit) for line, row in enumerate(addresses) for unit, address in enumerate(row)}
    base = min(holder) // _LINE * _LINE
    lines = range(base, max(holder) + 1, _LINE)
    per_line = range(0, _LINE, _UNIT)
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
                    labels=[],
                    cell=WIDE_CELL,
                )
            )
    for part in cut(len(lines), 1, PANEL):
        inside = [[holder.get(lines[line] + byte) for byte in per_line] for line in part]
        panels.append(
            Panel(
                head="in shared memory",
                corner="address",
                rows=[str(lines[line]) for line in part],
                cols=[f"+{byte}" for byte in per_line],
                colours=[[tint[at[0]][at[1]] if at else BLANK for at in row] for row in inside],
                tops=[[f"{at[0]},{step * at[1]}" if at else "" for at in row] for row in inside],
                labels=[],
                cell=WIDE_CELL,
            )
        )
    return sheet(title, notes, panels)


def _moved(before: int, place: int) -> str:
    """The XOR that moved a unit within its line, as text."""
    unit = before % (_LINE // _UNIT)
    return f"{unit} ^ {unit ^ place}"
