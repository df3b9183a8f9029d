"""The uses of layouts in tensor memory (operands of products), and their views in the explorer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import resolution
from ptxmma.catalog.variants import Variant
from ptxmma.generator.emit.docs import rest
from ptxmma.matrices.arrangements import arrangement
from ptxmma.model import Condition, Spec, TensorLayout

_LOADS = "tensor-load"


class TensorUse(NamedTuple):
    """The largest variant of an instruction that has a layout, the first of those that are as large.

    Attributes:
        instruction: its name: ``"tcgen05.mma.sp"``.
        operand: the operand as PTX names it: ``"d-tmem"``.
        places: the layout, and its sizes there.
        explorer: the address that shows it, from the first folder of the site.
    """

    instruction: str
    operand: str
    places: TensorPlaces
    explorer: str

    @property
    def blocks(self) -> int:
        """Scale factors of a row; 0 for other operands."""
        return self.places.sizes.get("block", 0)

    @property
    def size(self) -> int:
        """The sum of the sizes of its axes, by which uses of a layout compare."""
        return sum(self.places.sizes.values())


def uses(catalog: Catalog) -> list[TensorUse]:
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
        operands = {operand.name: operand for form in instruction.forms for operand in form.operands}
        for variant in _widest(spec, instruction.variant):
            for name, operand in operands.items():
                places = resolution.places(spec, variant, operand.kind, operand.of)
                if places is not None:
                    yield TensorUse(variant.instruction.name, name, places, _address(instruction, variant, name))


def _widest(spec: Spec, opcode: Variant) -> Iterable[Variant]:
    """The products of an opcode with the largest N for each choice of the rest; the opcode itself where it states its shape."""
    if opcode.instruction.operation != resolution.OPERATION:
        return [opcode]
    return {tuple(pair for pair in product.chosen if pair[0] != "n"): product for product in resolution.every(spec, opcode)}.values()


def _address(instruction: Instruction, variant: Variant, operand: str) -> str:
    chosen = ",".join(f"{name}:{value}" for name, value in variant.chosen) if isinstance(variant, resolution.Product) else ""
    return EXPLORER + explorer(i=instruction.canonical, v="tensor", operand=operand, **({"product": chosen} if chosen else {}))


def loaded(catalog: Catalog, load: Instruction) -> str:
    """The explorer's view of D of a product in the registers of a load; ``""`` for loads in several accesses and other instructions."""
    spec = catalog.database.spec
    fragment = next((operand for form in load.forms for operand in form.operands if operand.layout is not None), None)
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
