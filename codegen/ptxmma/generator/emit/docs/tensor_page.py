"""The page of tensor memory: its size and addresses, and the layouts of operands in it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from ptxmma.catalog.evidence import Summary
from ptxmma.catalog.evidence.witnesses import Difference, Witness
from ptxmma.generator.emit import tensor_functions
from ptxmma.generator.emit.docs import evidence_pages, instruction_tables, rest, struct_tables, tensor_uses
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.docs.tensor_uses import TensorUse
from ptxmma.generator.emit.formula_text import to_latex
from ptxmma.matrices import pictures
from ptxmma.matrices.pictures import tensor_memory as tensor_pictures
from ptxmma.model import Space, TensorLayout

#: Columns of B in the pictures of its scale factors.
_NARROW = 64


def page(memory: Space, uses: Sequence[TensorUse], gallery: Gallery, summary: Summary, witness: Witness | None) -> dict[str, Any]:
    """The values for the page's template; ``witness`` are the peers, where they were asked."""
    largest: dict[tuple[str, int], TensorUse] = {}
    for use in sorted(uses, key=lambda each: -each.size):
        largest.setdefault((use.places.layout.name, use.blocks), use)
    shown = sorted(largest.values(), key=lambda use: use.blocks)
    bits = sorted(memory.address.items(), key=lambda part: -part[1])
    return {
        "memory": memory,
        "module": tensor_functions.module(memory),
        "columns": struct_tables.table(
            memory.coordinates["column"], titles={"targets": "Targets, and those that include one", "size": "Columns"}
        ),
        "address": " + ".join(rf"\mathrm{{{name}}} \cdot 2^{{{bit}}}" if bit else rf"\mathrm{{{name}}}" for name, bit in bits),
        "layouts": [
            _layout(memory, layout, [use for use in shown if use.places.layout is layout], gallery)
            | {"witnesses": evidence_pages.agreement([summary.of_layout(layout.name)])}
            for layout in memory.layouts
        ],
        "differences": struct_tables.table(
            witness.of(Difference) if witness is not None else (),
            titles={"subjects": "Definitions of the peer", "theirs": "The peer", "ours": "ptxmma"},
            cells={"subjects": lambda difference: "\n\n".join(map(rest.code, difference.subjects))},
            code=("operand",),
        ),
        "notes": instruction_tables.statements(memory.notes),
        "source": rest.source(memory.source),
    }


def _layout(memory: Space, layout: TensorLayout, uses: Sequence[TensorUse], gallery: Gallery) -> dict[str, Any]:
    there, back = tensor_functions.of_layout(layout)
    axes = [axis for axis in layout.axes if axis not in layout.apart]
    return {
        "name": layout.name,
        "label": tensor_uses.label(layout),
        "heading": rest.text(tensor_uses.title(layout)),
        "details": rest.text("".join(_details(layout))),
        "when": rest.condition(layout.of),
        "axes": rest.codes(axes),
        "copies": rest.codes(layout.apart),
        "forward": [rf"\mathrm{{{name}}} &= {to_latex(layout.at[name])}" for name in layout.at],
        "back": [rf"\mathrm{{{axis}}} &= {to_latex(text)}" for axis, text in layout.back.items()],
        "selections": struct_tables.table(
            layout.selections,
            titles={"name": "Selection", "when": "For", "values": "Legal values"},
            cells={"values": lambda entry: ", ".join(map(str, entry.values))},
            code=("name",),
        ),
        "align": ", ".join(map(str, layout.align)) if len(layout.align) > 1 else "",
        "python": rest.codes(f"{each.name}({', '.join(each.parameters)})" for each in (there, back)),
        "c": rest.codes(f"ptxmma_{memory.name}_{layout.name}_{name}" for name in (*there.results, *back.results)),
        "pictures": [{"name": _picture(use, gallery), "explorer": f"../{use.explorer}"} for use in uses],
        "source": rest.source(layout.source),
    }


def _picture(use: TensorUse, gallery: Gallery) -> str:
    """The layout as the use has it; of scale factors, one for each number of them in a row."""
    shown, layout = use.places, use.places.layout
    selected = {name: values[-1] for name, values in shown.selections.items()} if use.blocks else {}
    name, said = f"tensor_{layout.name}", [f"{axis} 0..{size - 1}" for axis, size in shown.sizes.items() if axis in shown.axes]
    if use.blocks:
        sizes = shown.sizes | ({"col": _NARROW} if "col" in shown.sizes else {})
        shown = msgspec.structs.replace(shown, sizes=sizes, numbers=shown.numbers | {"n": _NARROW})
        name, said = f"{name}_{use.blocks}", [f"{use.blocks} in a row", *(f"{key} = {value}" for key, value in selected.items())]
    notes = [f"{', '.join(said)}. {tensor_pictures.COUNTED}"]
    return gallery.other(name, functools.partial(pictures.tensor, shown, tensor_uses.title(layout), [*_details(layout), *notes], selected))


def _details(layout: TensorLayout) -> list[str]:
    """The part of a layout's title that its section's title lacks, as a sentence."""
    said = layout.title.partition(": ")[2]
    return [f"{said[0].upper()}{said[1:]}."] if said else []
