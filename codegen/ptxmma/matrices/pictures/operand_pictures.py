"""Operands: a picture of each kind that has a layout."""

from __future__ import annotations

import itertools

from ptxmma.catalog.operands import Operand
from ptxmma.matrices.pictures.fragment_pictures import fragment
from ptxmma.matrices.pictures.shown_layout import output_grid
from ptxmma.matrices.pictures.svg_sheet import PANEL, TIMES, Panel, cut, edge, sheet
from ptxmma.model import Layout

#: Metadata comes in registers of this size.
_REGISTER_BITS = 32


def operand(shown: Operand) -> str:
    """Where the elements of an operand lie: of a fragment, of sparsity metadata or of scale factors; or whose address is that of which row.

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
    """Which bits of which thread's register describe which chunk of which row; a panel for each selector."""
    width, selectors = _REGISTER_BITS >> layout.map.outputs["bit"], 1 << layout.map.inputs["selector"]
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
    """Which thread gives the address of what: of which row of which matrix."""
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
    """Which byte of which thread's register scales which block of which row; a panel for each pair of scale ids."""
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
