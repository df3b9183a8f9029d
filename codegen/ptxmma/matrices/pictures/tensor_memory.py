"""Tensor memory: what lies in which lanes and columns, as blocks that are whole ranges of the operand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.matrices.pictures.sheet import BLANK, TO, Panel, cut, sheet, xml

if TYPE_CHECKING:
    from ptxmma.arrays.elements import Array

#: From where pictures count.
COUNTED = "Lanes and columns count from the operand's address; bits within a cell, where elements share cells."
#: Lanes and bits of a block, the largest first.
_LANES, _BITS = (32, 16, 8, 1), (32, 16, 8)
#: Groups of columns that a wider operand is shown in.
_GROUPS = 4
#: Cells beside each other in a panel, at most.
_MOST = 12
#: Pixels of a letter.
_LETTER = 7


class _Block(NamedTuple):
    """The ranges of the operand that lie in a block, by axis.

    ``plain`` says that the block is full, and that its lanes are the first axis in order.
    """

    ranges: dict[str, tuple[int, int]]
    plain: bool


_Blocks = dict[tuple[int, int, int, int], _Block]


def tensor(placed: TensorPlaces, title: str, notes: Sequence[str], chosen: Mapping[str, int] | None = None) -> str:
    """An operand in tensor memory, panels for each CTA of a pair; ``chosen`` are its selections, 0 or the first if absent."""
    blocks, size = _drawn(placed, chosen)
    columns = (max(column for _, _, column, _ in blocks) + 1) * size[1]
    groups, most = -(-columns // size[1]), max(_MOST * size[2] // placed.memory.cell, 1)
    parts = cut(groups, 1, -(-groups // -(-groups // most)))
    ctas = sorted({key[0] for key in blocks})
    panels = [_panel(placed, blocks, cta, size, part) for cta, part in itertools.product(ctas, list(parts))]
    return sheet(title, notes, panels)


def listed(placed: TensorPlaces, chosen: Mapping[str, int] | None = None) -> list[dict[str, str]]:
    """The blocks of an operand: the ranges of its axes in each, and of lanes, columns and bits."""
    blocks, (lanes, width, bits) = _drawn(placed, chosen)
    rows = []
    for (cta, lane, column, bit), block in blocks.items():
        row = {axis: _range(*block.ranges[axis]) for axis in placed.sizes}
        row |= {"cta": str(cta)} if placed.numbers["ctas"] > 1 else {}
        row |= {"lane": _range(lane * lanes, lane * lanes + lanes - 1), "column": _range(column * width, column * width + width - 1)}
        rows.append(row | ({"bit": _range(bit * bits, bit * bits + bits - 1)} if bits < placed.memory.cell else {}))
    return rows


def _drawn(placed: TensorPlaces, chosen: Mapping[str, int] | None) -> tuple[_Blocks, tuple[int, int, int]]:
    """The blocks that a picture shows, with their lanes, columns and bits: the largest that are plain."""
    places = _places(placed, {name: legal[0] for name, legal in placed.selections.items()} | dict(chosen or {}))
    columns = int(places[-2].max()) + 1
    for size in itertools.product(_LANES, dict.fromkeys((max(columns // _GROUPS, 1), 1)), _BITS):
        blocks = _blocks(placed, places, size)
        if all(block.plain for block in blocks.values()):
            break
    return blocks, size


def _places(placed: TensorPlaces, selected: Mapping[str, int]) -> Array:
    """Every place, a column each: a row for each axis, then CTAs, lanes, columns and bits."""
    import numpy as np  # most questions are answered without it

    points = np.indices([*placed.sizes.values()]).reshape(len(placed.sizes), -1)
    place: dict[str, Any] = {**dict(zip(placed.sizes, points, strict=True)), **selected}
    there = placed.locate(**place)
    return np.vstack([points, *(np.broadcast_to(values, points.shape[1]) for values in there)])


def _blocks(placed: TensorPlaces, places: Array, size: tuple[int, int, int]) -> _Blocks:
    """The blocks of that many lanes, columns and bits, by CTA, then by lanes, columns and bits."""
    import numpy as np  # most questions are answered without it

    lanes, width, bits = size
    cta, lane, column, bit = places[-4:]
    keys = np.stack([cta, lane // lanes, column // width, bit // bits])
    order = np.lexsort(keys[::-1])  # which sorts by its last row first
    keys, inside = keys[:, order], places[:, order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1).any(axis=0))
    counts = np.diff(starts, append=keys.shape[1])
    first, last = (extreme.reduceat(inside, starts, axis=1) for extreme in (np.minimum, np.maximum))
    in_order = inside[0] - np.repeat(first[0], counts) == inside[-3] % lanes
    plain = (counts == lanes * width * max(bits // placed.unit, 1)) & np.logical_and.reduceat(in_order, starts)
    each = zip(keys[:, starts].T.tolist(), first.T.tolist(), last.T.tolist(), plain.tolist(), strict=True)
    return {
        (*key,): _Block(dict(zip(placed.sizes, zip(low, high, strict=True), strict=False)), is_plain) for key, low, high, is_plain in each
    }


def _panel(placed: TensorPlaces, blocks: _Blocks, cta: int, size: tuple[int, int, int], across: range) -> Panel:
    lanes, width, bits = size
    deep = range(placed.memory.cell // bits)
    rows, cells = [], []
    for down in _lines(blocks, cta, placed.memory.most("lane") // lanes):
        rows.append(_range(lanes * down[0], lanes * down[-1] + lanes - 1))
        cells.append([blocks.get((cta, down[0], column, bit)) for column in across for bit in deep])
    texts = [[_texts(placed, cell) for cell in line] for line in cells]
    first = next(iter(placed.sizes))
    tints = {start: number for number, start in enumerate(sorted({block.ranges[first][0] for block in blocks.values()}))}
    longest = max(len(part) for line in texts for pair in line for part in pair)
    names = [f"{_range(width * column, width * column + width - 1)}" for column in across]
    split = len(deep) > 1
    return Panel(
        head=f"CTA {cta} of the pair" if placed.numbers.get("ctas", 1) > 1 else "",
        corner="lane \\ bit" if split else "lane",
        rows=rows,
        cols=[f"{_range(bits * bit, bits * bit + bits - 1)}" if split else name for name in names for bit in deep],
        colours=[
            [BLANK if cell is None else 4 * tints[cell.ranges[first][0]] + cell.ranges[first][0] % 4 for cell in line] for line in cells
        ],
        tops=[[xml(top) for top, _ in line] for line in texts],
        labels=[[xml(bottom) for _, bottom in line] for line in texts],
        spans=[(len(deep) * column, len(deep), f"column {name}") for column, name in enumerate(names)]
        if split
        else [(0, len(names), "column")],
        cell=max(44, _LETTER * longest + 8),
    )


def _lines(blocks: _Blocks, cta: int, count: int) -> Iterator[list[int]]:
    """The rows of a panel, as numbers of blocks of lanes: neighbours in which nothing lies share one."""
    filled = {lane for of_cta, lane, *_ in blocks if of_cta == cta}
    for holds, run in itertools.groupby(range(count), filled.__contains__):
        lanes = list(run)
        yield from ([lane] for lane in lanes) if holds else [lanes]


def _texts(placed: TensorPlaces, block: _Block | None) -> tuple[str, str]:
    """The two lines in a block: the range of the first axis and the range of the second."""
    if block is None:
        return "", ""
    first, *others = [f"{axis} {_range(*block.ranges[axis])}" for axis in placed.axes]
    return first, ", ".join(others)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}{TO}{last}"
