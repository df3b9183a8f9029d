"""The pictures of a page of instructions: their places, and the text below each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ptxmma.catalog.links import EXPLORER, explorer
from ptxmma.catalog.operands import multiplicands
from ptxmma.generator.emit.docs import rest
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.docs.layout_uses import Use
from ptxmma.model import InstructionSet

#: Places of a product: A is on the left, B above, the accumulators between them.
_PRODUCT = ("left", "above", "result")
_BESIDE = "beside"


def figures(gallery: Gallery, entries: Iterable[InstructionSet], uses: Iterable[Use], root: str) -> dict[str, list[dict[str, Any]]]:
    """The pictures by their places, one for each layout; ``root`` leads from the page to the site's first folder."""
    places: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.operation == "multiply":
            places |= {(entry.name, name): place for name, place in zip(multiplicands(entry), ("left", "above"), strict=False)}
            places |= {(entry.name, name): "result" for name, kind in entry.operand_kinds.items() if kind.kind == "accumulator"}
    by_picture: dict[str, list[Use]] = {}
    for use in uses:
        by_picture.setdefault(use.picture, []).append(use)
    made: dict[str, list[dict[str, Any]]] = {place: [] for place in (*_PRODUCT, _BESIDE)}
    for picture, group in by_picture.items():
        place = next((places[key] for use in group if (key := (use.instruction, use.operand.name)) in places), _BESIDE)
        made[place].append(
            {
                "picture": picture,
                "width": gallery.width(picture),
                "alt": f"Layout of {' and '.join(dict.fromkeys(use.operand.name for use in group))}",
                "explorer": f"{root}{EXPLORER}{explorer(i=group[0].canonical)}",
                "caption": _caption(group),
            }
        )
    return {place: shown for place, shown in made.items() if shown}


def _caption(group: Sequence[Use]) -> str:
    """The operands, their types and sizes, and the layout's name in generated code."""
    names = rest.codes(dict.fromkeys(use.operand.name for use in group))
    types = list(dict.fromkeys(use.element for use in group if use.element))
    modifiers = list(dict.fromkeys(use.modifiers for use in group if use.modifiers))
    text = names + (f" of {rest.codes(types)}" if types else "")
    text += f" with {' or '.join(map(rest.code, modifiers))}" if modifiers else ""
    counts = list(dict.fromkeys((use.elements, use.registers) for use in group if use.elements))
    if len(counts) == 1:
        elements, registers = counts[0]
        holders = "one register" if registers == "1" else f"{registers} registers"
        text += f": {elements} elements in {holders}" if elements != "1" else ": one element"
    return f"{text}. {rest.codes(dict.fromkeys(use.layout.name for use in group))}"
