"""The page of tensor memory: its size and addresses, and the layouts of operands in it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from ptxmma.catalog.evidence import Summary
from ptxmma.catalog.tensor_places import TensorPlaces
from ptxmma.catalog.witnesses import Difference, Witness
from ptxmma.generator import tensor_proof
from ptxmma.generator.emit import tensor_functions
from ptxmma.generator.emit.docs import agreement, rest, rule_tables, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import to_latex
from ptxmma.matrices import pictures
from ptxmma.matrices.pictures import tensor_pictures
from ptxmma.model import COORDINATES, Spec, TensorLayout, TensorMemory

#: Columns of B in the pictures of its scale factors.
_NARROW = 64


def page(spec: Spec, memory: TensorMemory, gallery: Gallery, summary: Summary, witness: Witness | None) -> dict[str, Any]:
    """What the page shows; ``witness`` are the peers, where they were asked."""
    largest: dict[str, TensorPlaces] = {}
    for placed in tensor_proof.uses(spec):
        first = largest.setdefault(placed.layout.name, placed)
        if sum(placed.sizes.values()) > sum(first.sizes.values()):
            largest[placed.layout.name] = placed
    bits = sorted(memory.address.items(), key=lambda part: -part[1])
    return {
        "memory": memory,
        "columns": struct_tables.table(memory.columns, titles={"targets": "Targets, and those that include one", "columns": "Columns"}),
        "address": " + ".join(rf"\mathrm{{{name}}} \cdot 2^{{{bit}}}" if bit else rf"\mathrm{{{name}}}" for name, bit in bits),
        "layouts": [
            _layout(layout, largest.get(layout.name), gallery) | {"witnesses": agreement.sentence([summary.of_layout(layout.name)])}
            for layout in memory.layouts
        ],
        "differences": struct_tables.table(
            witness.of(Difference) if witness is not None else (),
            titles={"subjects": "Definitions of the peer", "theirs": "The peer", "ours": "ptxmma"},
            cells={"subjects": lambda difference: "\n\n".join(map(rest.code, difference.subjects))},
            code=("operand",),
        ),
        "notes": rule_tables.statements(memory.notes),
        "source": rest.source(memory.source),
    }


def _layout(layout: TensorLayout, placed: TensorPlaces | None, gallery: Gallery) -> dict[str, Any]:
    head, _, details = layout.title.partition(":")
    there, back = tensor_functions.of_layout(layout)
    axes = [axis for axis in layout.axes if axis not in layout.apart]
    return {
        "name": layout.name,
        "label": rest.label("tensor", layout.name),
        "heading": rest.text(head[0].upper() + head[1:]),
        "title": rest.text(details.strip()[:1].upper() + details.strip()[1:]),
        "when": rest.condition(layout.of),
        "axes": rest.codes(axes),
        "copies": rest.codes(layout.apart),
        "forward": [rf"\mathrm{{{name}}} &= {to_latex(layout.at[name])}" for name in COORDINATES if name in layout.at],
        "back": [rf"\mathrm{{{axis}}} &= {to_latex(text)}" for axis, text in layout.back.items()],
        "selections": struct_tables.table(
            layout.selections,
            titles={"name": "Selection", "when": "For", "values": "Legal values"},
            cells={"values": lambda entry: ", ".join(map(str, entry.values))},
            code=("name",),
        ),
        "align": ", ".join(map(str, layout.align)) if len(layout.align) > 1 else "",
        "python": rest.codes(f"{each.name}({', '.join(each.parameters)})" for each in (there, back)),
        "c": rest.codes(f"ptxmma_tensor_{layout.name}_{name}" for name in (*there.results, *back.results)),
        "pictures": list(_pictures(placed, gallery)) if placed else [],
        "source": rest.source(layout.source),
    }


def _pictures(placed: TensorPlaces, gallery: Gallery) -> Iterator[str]:
    """The layout at its largest; of scale factors, for each number of them in a row."""
    layout = placed.layout
    blocks = [number for selection in layout.selections for when in selection.when for number in when.get("blocks", ())]
    for number in sorted(map(int, blocks)) or [0]:
        shown, selected = placed, {}
        name, said = f"tensor_{layout.name}", [f"{axis} 0..{size - 1}" for axis, size in placed.sizes.items() if axis in placed.coordinates]
        if number:
            legal = next(entry for entry in layout.selections if any(number in when.get("blocks", ()) for when in entry.when))
            sizes = placed.sizes | {"block": number} | ({"col": _NARROW} if "col" in placed.sizes else {})
            shown = msgspec.structs.replace(placed, sizes=sizes, numbers=placed.numbers | {"n": _NARROW})
            selected = {legal.name: legal.values[-1]}
            name, said = f"{name}_{number}", [f"{number} in a row", *(f"{key} = {value}" for key, value in selected.items())]
        notes = [f"{', '.join(said)}. {tensor_pictures.COUNTED}"]
        title = layout.title[0].upper() + layout.title[1:]
        yield gallery.other(name, functools.partial(pictures.tensor, shown, title, notes, selected))
