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
#: The width of a cell with the bits of a field.
_WIDE = 40


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
    fields = [f"[{width * field + width - 1}:{width * field}]" for field in range(1 << layout.map.outputs["bit"])]
    cols = range(layout.axes["chunk"])
    panels = [
        _held(layout, f"selector {selector}" if selectors > 1 else "", {"row": rows, "chunk": cols}, {"selector": selector}, "bit", fields)
        for selector in range(selectors)
        for rows in cut(layout.rows, 1, PANEL)
    ]
    title = f"Metadata: {layout.rows} rows{TIMES}{len(cols)} chunks"
    note = f"T1 {fields[0]}: in the register of thread 1, bits {fields[0][1:-1]} describe this chunk of this row."
    return sheet(title, [note], [panel._replace(cell=_WIDE) for panel in panels])


def addresses(layout: Layout) -> str:
    """Draw the thread that gives the address of each row of each matrix."""
    *others, down, across = ("", *layout.coordinates) if len(layout.coordinates) == 1 else layout.coordinates
    spans = {down: range(layout.axes.get(down, 1)), across: range(layout.axes[across])}
    panels = []
    for place in itertools.product(*(range(layout.axes[axis]) for axis in others)):
        fixed = dict(zip(others, place, strict=True))
        panels.append(_held(layout, ", ".join(f"{axis} {number}" for axis, number in fixed.items()), spans, fixed))
    what = " of ".join(f"this {axis}" for axis in reversed(layout.coordinates))
    return sheet("Addresses", [f"T1: thread 1 gives the address of {what}. Other threads' addresses are ignored."], panels)


def scales(layout: Layout) -> str:
    """Draw the byte of a thread's register that scales each block of each row; a panel for each pair of scale ids."""
    line, *_ = layout.axes  # "row" of A, "col" of B
    spans = {line: range(layout.axes[line]), "block": range(layout.axes["block"])}
    labels = [f"byte {byte}" for byte in range(1 << layout.map.outputs["byte"])]
    panels = []
    for thread_id, number in itertools.product(range(layout.axes["thread_id"]), range(layout.axes["byte_id"])):
        head = f"byte-id {number * layout.steps.get('byte_id', 1)}, thread-id {thread_id}"
        panels.append(_held(layout, head, spans, {"byte_id": number, "thread_id": thread_id}, "byte", labels))
    matrix, lines = ("A", "rows") if line == "row" else ("B", "columns")
    title = f"Scale factors of {matrix}: {layout.axes[line]} {lines}{TIMES}{layout.axes['block']} along K"
    return sheet(title, ["T1 byte 0: in the register of thread 1, the lowest byte is this scale factor."], panels)


def _held(
    layout: Layout, head: str, spans: dict[str, range], fixed: dict[str, int], coordinate: str = "", names: Sequence[str] = ()
) -> Panel:
    """The threads that hold the data of some rows and columns, each with the name of another coordinate where one has names."""
    (down, rows), (across, cols) = spans.items()
    owners = output_grid(layout.map.runs("lane"), (down, rows), (across, cols), **fixed)
    places = output_grid(layout.map.runs(coordinate), (down, rows), (across, cols), **fixed) if names else []
    return Panel(
        head=head,
        corner=f"{down} \\ {across}" if down else across,
        rows=edge(rows) if down else [""],
        cols=edge(cols),
        colours=owners,
        tops=[[f"T{owner}" for owner in line] for line in owners],
        labels=[[names[place] for place in line] for line in places],
    )


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
