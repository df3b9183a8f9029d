"""Operands: a picture of each kind that has a layout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxmma.catalog.operands import Operand
from ptxmma.matrices.pictures.fragments import fragment, output_grid
from ptxmma.matrices.pictures.sheet import BLANK, CELL_WIDTH, PANEL, TIMES, Panel, cut, edge, sheet
from ptxmma.model import Granularity, Layout

#: Columns and chunks that an example of sparse storage has at most; the strength of its colours.
_EXAMPLE, _CHUNKS = 16, 4
_STRONG = 2


def operand(shown: Operand) -> str:
    """Draw the places of an operand's elements: of a fragment, of sparsity metadata, of scale factors, of the addresses of rows.

    Raises:
        ValueError: the operand has no layout.
    """
    layout = shown.layout
    if layout is None:
        raise ValueError(f"operand {shown.name!r} has no layout")
    if layout.kind == "fragment":
        endless = bool(layout.growing)
        return fragment(layout, shown.elements_per_register, endless=endless, pattern=shown.sparsity, observed=shown.observed)
    return {"metadata": metadata, "scale": scales, "address": addresses}[layout.kind](layout)


def metadata(layout: Layout) -> str:
    """Draw the bits of a thread's register that describe each chunk of each row; a panel for each selector."""
    width, selectors = layout.steps.get("bit", 1), 1 << layout.map.inputs["selector"]
    lanes, places = layout.map.runs("lane"), layout.map.runs("bit")
    fields = [f"[{width * field + width - 1}:{width * field}]" for field in range(1 << layout.map.outputs["bit"])]
    cols = range(layout.axes["chunk"])
    panels = []
    for selector in range(selectors):
        for rows in cut(layout.rows, 1, PANEL):
            owners = output_grid(lanes, ("row", rows), ("chunk", cols), selector=selector)
            places_there = output_grid(places, ("row", rows), ("chunk", cols), selector=selector)
            panels.append(
                Panel(
                    head=f"selector {selector}" if selectors > 1 else "",
                    corner="row \\ chunk",
                    rows=edge(rows),
                    cols=edge(cols),
                    colours=owners,
                    tops=[[f"T{owner}" for owner in line] for line in owners],
                    labels=[[fields[field] for field in line] for line in places_there],
                    cell=40,
                )
            )
    title = f"Metadata: {layout.rows} rows{TIMES}{len(cols)} chunks"
    note = f"T1 {fields[0]}: in the register of thread 1, bits {fields[0][1:-1]} describe this chunk of this row."
    return sheet(title, [note], panels)


def addresses(layout: Layout) -> str:
    """Draw the thread that gives the address of each row of each matrix."""
    *others, down, across = ("", *layout.coordinates) if len(layout.coordinates) == 1 else layout.coordinates
    rows, cols = range(layout.axes.get(down, 1)), range(layout.axes[across])
    panels = []
    for place in itertools.product(*(range(layout.axes[axis]) for axis in others)):
        fixed = dict(zip(others, place, strict=True))
        owners = output_grid(layout.map.runs("lane"), (down, rows), (across, cols), **fixed)
        panels.append(
            Panel(
                head=", ".join(f"{axis} {number}" for axis, number in fixed.items()),
                corner=f"{down} \\ {across}" if down else across,
                rows=edge(rows) if down else [""],
                cols=edge(cols),
                colours=owners,
                tops=[[f"T{owner}" for owner in line] for line in owners],
                labels=[],
            )
        )
    what = " of ".join(f"this {axis}" for axis in reversed(layout.coordinates))
    return sheet("Addresses", [f"T1: thread 1 gives the address of {what}. Other threads' addresses are ignored."], panels)


def scales(layout: Layout) -> str:
    """Draw the byte of a thread's register that scales each block of each row; a panel for each pair of scale ids."""
    lanes, bytes_ = layout.map.runs("lane"), layout.map.runs("byte")
    line, *_ = layout.axes  # "row" of A, "col" of B
    rows, cols = range(layout.axes[line]), range(layout.axes["block"])
    panels = []
    for thread_id in range(layout.axes["thread_id"]):
        for byte_index in range(layout.axes["byte_id"]):
            byte_id = byte_index * layout.steps.get("byte_id", 1)
            owners = output_grid(lanes, (line, rows), ("block", cols), byte_id=byte_index, thread_id=thread_id)
            places_there = output_grid(bytes_, (line, rows), ("block", cols), byte_id=byte_index, thread_id=thread_id)
            panels.append(
                Panel(
                    head=f"byte-id {byte_id}, thread-id {thread_id}",
                    corner=f"{line} \\ block",
                    rows=edge(rows),
                    cols=edge(cols),
                    colours=owners,
                    tops=[[f"T{owner}" for owner in line] for line in owners],
                    labels=[[f"byte {byte}" for byte in line] for line in places_there],
                )
            )
    matrix, lines = ("A", "rows") if line == "row" else ("B", "columns")
    title = f"Scale factors of {matrix}: {len(rows)} {lines}{TIMES}{len(cols)} along K"
    return sheet(title, ["T1 byte 0: in the register of thread 1, the lowest byte is this scale factor."], panels)


def storage(pattern: Granularity) -> str:
    """An example of sparse storage: a row of the full matrix, the packed row, and the metadata that tells one from the other."""
    values = [field for field in pattern.legal if not pattern.ordered or field in pattern.ordered]
    chunks = min(_EXAMPLE // pattern.chunk, _CHUNKS)
    chosen = [values[index * len(values) // chunks if len(values) >= chunks else index % len(values)] for index in range(chunks)]
    width = pattern.index_bits * pattern.indices
    full, packed, fields = [], [], []
    for index, field in enumerate(chosen):
        units = pattern.kept_units(field)
        first = index * pattern.chunk
        full += [(f"x{first + place}", index) if place // pattern.unit in units else ("0", BLANK) for place in range(pattern.chunk)]
        packed += [(f"x{first + unit * pattern.unit + part}", index) for unit in units for part in range(pattern.unit)]
        fields.append(f"keeps {', '.join(map(str, units))}")
    panels = [
        _strip("a row of the matrix", "column", full),
        _strip("the row as it is stored", "column", packed),
        _strip("its metadata", "bits", [(field, index) for index, field in enumerate(chosen)], fields, CELL_WIDTH * pattern.chunk, width),
    ]
    unit = "each has" if pattern.unit == 1 else f"each {pattern.unit} together have"
    notes = [f"Of {pattern.chunk} columns (a chunk, one colour) {pattern.kept} are stored; {unit} an index of {pattern.index_bits} bits."]
    return sheet(f"Sparse storage {pattern.name}", notes, panels, stacked=True)


def _strip(
    head: str, corner: str, cells: Sequence[tuple[str, int]], labels: Sequence[str] = (), cell: int = CELL_WIDTH, bits: int = 0
) -> Panel:
    """A panel of one row; ``cells`` are texts with the chunk that colours them, numbered, or each so many ``bits`` of a register."""
    return Panel(
        head=head,
        corner=corner,
        rows=[""],
        cols=[f"[{bits * index + bits - 1}:{bits * index}]" if bits else str(index) for index in range(len(cells))],
        colours=[[chunk if chunk == BLANK else _STRONG + 4 * chunk for _, chunk in cells]],
        tops=[[text for text, _ in cells]],
        labels=[labels] if labels else [],
        cell=cell,
    )
