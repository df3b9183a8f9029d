"""The page of tensor memory, its size, its addresses and the layouts of operands in it; the uses of these layouts on other pages."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ptxmma.catalog.evidence import Summary
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.variants import Variant
from ptxmma.generator.emit import tensor_functions
from ptxmma.generator.emit.docs import evidence_pages, rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.matrices.arrangements import arrangement
from ptxmma.matrices.pictures import tensor_memory as tensor_pictures
from ptxmma.model import Condition, Space, Spec, TensorLayout

_LOADS = "tensor-load"


class TensorUse(NamedTuple):
    """The largest variant of an instruction that has a layout, the first of those that are as large.

    Attributes:
        opcode: the instruction as it is spelt.
        variant: the variant, or the product that its descriptor chooses.
        operand: the operand as PTX names it: ``"d-tmem"``.
        places: the layout, and its sizes there.
    """

    opcode: Instruction
    variant: Variant
    operand: str
    places: TensorPlaces

    @property
    def instruction(self) -> str:
        """The instruction's name: ``"tcgen05.mma.sp"``."""
        return self.variant.instruction.name

    @property
    def explorer(self) -> str:
        """The address that shows it, from the first folder of the site."""
        chosen = ",".join(f"{name}:{value}" for name, value in self.variant.chosen)
        return EXPLORER + explorer(i=self.opcode.canonical, v="tensor", operand=self.operand, **({"product": chosen} if chosen else {}))

    @property
    def blocks(self) -> int:
        """Scale factors of a row; 0 for other operands."""
        return self.places.sizes.get("block", 0)

    @property
    def size(self) -> int:
        """The sum of the sizes of its axes, by which uses of a layout compare."""
        return sum(self.places.sizes.values())


def uses_of(catalog: Catalog) -> list[TensorUse]:
    """The uses of every layout, in the order of the spec: one for each instruction and, of scale factors, each number of them in a row."""
    spec = catalog.database.spec
    made: dict[tuple[str, str, int], TensorUse] = {}
    layouts = spec.tensor_layouts
    kinds, order = {layout.operand for layout in layouts}, [layout.name for layout in layouts]
    for entry in spec.instructions:
        if kinds & {kind.kind for kind in entry.operand_kinds.values()}:
            for use in _placed(spec, catalog.of(entry.name)):
                key = (entry.name, use.places.layout.name, use.blocks)
                made[key] = max(made.get(key, use), use, key=lambda each: each.size)
    return sorted(made.values(), key=lambda use: order.index(use.places.layout.name))


def _placed(spec: Spec, instructions: Iterable[Instruction]) -> Iterator[TensorUse]:
    for instruction in instructions:
        operands = {operand.name: operand for operand in instruction.operands}
        for variant in _widest(spec, instruction.variant):
            for name, operand in operands.items():
                places = resolution.places(spec, variant, operand.kind, operand.of)
                if places is not None:
                    yield TensorUse(instruction, variant, name, places)


def _widest(spec: Spec, opcode: Variant) -> Iterable[Variant]:
    """The products of an opcode with the largest N for each choice of the rest; the opcode itself where it states its shape."""
    if opcode.instruction.operation != resolution.OPERATION or spec.tensor_products is None:
        return [opcode]
    choices = product_rules.every(spec.tensor_products, opcode.facts)
    widest = {tuple([pair for pair in choice.values.items() if pair[0] != "n"]): choice for choice in choices}
    return [resolution.Product(opcode, choice) for choice in widest.values()]


def loaded(catalog: Catalog, load: Instruction) -> str:
    """The explorer's view of D of a product in the registers of a load; ``""`` for loads in several accesses and other instructions."""
    spec = catalog.database.spec
    fragment = next((operand for operand in load.operands if operand.layout is not None), None)
    if load.operation != _LOADS or fragment is None or arrangement(load, fragment.name).legal:
        return ""
    for opcode in catalog.all(lambda entry: entry.operation == resolution.OPERATION):
        for product in resolution.every(spec, opcode.variant):
            if resolution.numbers(spec, product, "d")["bits"] == fragment.bits:
                return EXPLORER + explorer(i=opcode.canonical, v="tensor", product=f"dtype:{product.types['d']}", load=load.canonical)
    return ""


def table(uses: Iterable[TensorUse], root: str) -> str:
    """The layouts of the operands of an instruction, with links to their formulas and to the explorer."""
    rows: dict[str, tuple[str, ...]] = {}
    for use in uses:
        layout = use.places.layout
        shown = f"`open <{root}{use.explorer}>`__"
        rows.setdefault(
            layout.name, (rest.code(use.operand), rest.link(title(layout), label(layout)), _where(layout, use.instruction), shown)
        )
    return rest.table(("Operand", "Layout", "Where", "Explorer"), rows.values())


def _where(layout: TensorLayout, instruction: str) -> str:
    """The condition under which an instruction has a layout, in words."""
    alternatives = [part for part in layout.of if instruction in part.get("name", (instruction,))]
    others: list[Condition] = [{name: values for name, values in part.items() if name != "name"} for part in alternatives]
    return rest.condition(others) if all(others) else "always"


def title(layout: TensorLayout) -> str:
    """The title of its section."""
    head = layout.title.partition(": ")[0]
    return head[0].upper() + head[1:]


def label(layout: TensorLayout) -> str:
    """The label of its section."""
    return rest.label("tensor", layout.name)


#: Columns of B in the pictures of its scale factors.
_NARROW = 64


# --- the page --------------------------------------------------------------------------------------------------------------


def page(memory: Space, uses: Sequence[TensorUse], gallery: Gallery, summary: Summary) -> dict[str, Any]:
    """The values for the page's template."""
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
    }


def _layout(memory: Space, layout: TensorLayout, uses: Sequence[TensorUse], gallery: Gallery) -> dict[str, Any]:
    there, back = tensor_functions.of_layout(layout)
    return {
        "layout": layout,
        "label": label(layout),
        "heading": rest.text(title(layout)),
        "details": rest.text("".join(_details(layout))),
        "selections": struct_tables.table(
            layout.selections,
            titles={"name": "Selection", "when": "For", "values": "Legal values"},
            cells={"values": lambda entry: ", ".join(map(str, entry.values))},
            code=("name",),
        ),
        "python": rest.codes(f"{each.name}({', '.join(each.parameters)})" for each in (there, back)),
        "c": rest.codes(f"ptxmma_{memory.name}_{layout.name}_{name}" for name in (*there.results, *back.results)),
        "pictures": [{"name": picture(use, gallery), "explorer": f"../{use.explorer}"} for use in uses],
    }


def picture(use: TensorUse, gallery: Gallery) -> str:
    """The layout as the use has it; of scale factors, one for each number of them in a row."""
    shown, layout = use.places, use.places.layout
    selected = {name: values[-1] for name, values in shown.selections.items()} if use.blocks else {}
    name, said = f"tensor_{layout.name}", [f"{axis} 0..{size - 1}" for axis, size in shown.sizes.items() if axis in shown.axes]
    if use.blocks:
        sizes = shown.sizes | ({"col": _NARROW} if "col" in shown.sizes else {})
        shown = msgspec.structs.replace(shown, sizes=sizes, numbers=shown.numbers | {"n": _NARROW})
        name, said = f"{name}_{use.blocks}", [f"{use.blocks} in a row", *(f"{key} = {value}" for key, value in selected.items())]
    notes = [f"{', '.join(said)}. {tensor_pictures.COUNTED}"]
    return gallery.other(name, functools.partial(pictures.tensor, shown, title(layout), [*_details(layout), *notes], selected))


def _details(layout: TensorLayout) -> list[str]:
    """The part of a layout's title that its section's title lacks, as a sentence."""
    said = layout.title.partition(": ")[2]
    return [f"{said[0].upper()}{said[1:]}."] if said else []
