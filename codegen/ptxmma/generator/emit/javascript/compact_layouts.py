"""Layouts and their formulas as JavaScript reads them: ``layout_records.js`` expands them."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.javascript.interned import Interned, table, without_empty
from ptxmma.generator.emit.javascript.short_texts import bit_places
from ptxmma.model import Layout


def formulas(catalog: Catalog) -> dict[str, Any]:
    """The formulas of the spec as people read them, each with what is the same for all its layouts."""
    kinds = {layout.entry: layout.kind for layout in catalog.database.layouts if layout.kind != "fragment"}
    entries = []
    for index, entry in enumerate(catalog.database.spec.register_layouts):
        at = {axis: [f"{case.value}  if {case.when}" if case.when else case.value for case in cases] for axis, cases in entry.at.items()}
        about = without_empty(kind=kinds.get(index), let=entry.let, at=at, apart=entry.apart, text=entry.text, observed=entry.observed)
        entries.append({"operands": entry.operands} | about | {"source": entry.source})
    return table(entries)


def record(layout: Layout, maps: Interned, axes: Interned, warp: int) -> list[Any]:
    """Numbers of the formula, of the map and of the axes, then bits, the summed axis, growing axes, threads and steps.

    Usual values at the end are left out: nothing, and a warp of threads.
    The map says which bit of which output each bit of an input becomes: ``"col:0 row:3+2"``.  Its outputs are the axes where it begins
    with a lane, and otherwise those that it mentions, unless it lists others.
    """
    bits = {name: bit_places(places) for name, places in layout.map.bits.items()}
    mentioned = dict.fromkeys(output for places in layout.map.bits.values() for output, _ in places)
    if list(layout.map.outputs) != list(layout.axes if "lane" in bits else mentioned):
        bits["->"] = " ".join(layout.map.outputs)
    about = [layout.bits, layout.summed, layout.growing, layout.threads, layout.steps]
    usual: list[Any] = [0, "", (), warp, {}]
    while about and about[-1] == usual[len(about) - 1]:
        about.pop()
    return [layout.entry, maps.number(bits), axes.number(layout.axes), *about]
