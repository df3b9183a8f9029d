"""Spaces: their parts are coordinates, addresses have room for every place, and formulas of layouts there have known names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from ptxmma.catalog import requirements
from ptxmma.catalog.operands.tensor_places import Place as TensorPlace
from ptxmma.catalog.products.product_rules import ARGUMENTS
from ptxmma.catalog.variants import expand
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import OPERAND_FACTS, Place, RuleContext, listed
from ptxmma.model import CoordinateSize, Space, TensorLayout, formula
from ptxmma.model.formula import FormulaError

#: The coordinates of an on-chip memory, and the parts that it must have.
_COORDINATES = TensorPlace._fields
_NEEDED = {"coordinates": ("lane", "column", "bit"), "address": ("lane", "column"), "partition": ("lane",), "allocation": ("column",)}

#: Operands that are matrices of elements; generated functions call their axes row and col.
_MATRICES = {"tensor-accumulator", "tensor-matrix"}

#: The numbers that formulas of layouts read, besides sizes of the instruction.
_NUMBERS = {*OPERAND_FACTS - {"operand"}, *ARGUMENTS, "shift", "ctas", "blocks"}


def problems(context: RuleContext) -> Iterator[Problem]:
    """Parts of spaces that lead nowhere, addresses without room, and formulas that cannot be read."""
    for index, space in enumerate(context.spec.spaces):
        place: Place = ("spaces", index)
        yield from _parts(context, space, place)
        yield from _sizes(context, space, place)
        yield from _address(context, space, place)
        if space.layouts or space.of or space in context.spec.tensor_memories:
            yield from _memory(context, space, place)
        for number, layout in enumerate(space.layouts):
            yield from _layout(context, space, layout, (*place, "layouts", number))
    yield from _reached(context)


def _parts(context: RuleContext, space: Space, place: Place) -> Iterator[Problem]:
    """Addresses, partitions and allocations count coordinates of the space."""
    for part in ("address", "partition", "allocation"):
        for name in getattr(space, part):
            yield from context.known("coordinate", [name], space.coordinates, *place, part, name)


def _sizes(context: RuleContext, space: Space, place: Place) -> Iterator[Problem]:
    """A coordinate has a size on targets that exist; a warp reaches a whole part of it, and a unit of allocation fits."""
    for name, extents in space.coordinates.items():
        here, step = context.at(*place, "partition", name), space.partition.get(name, 1)
        for size in sorted({extent.size for extent in extents if extent.size % step}):
            yield Problem(here, f"the size of {name}, {size}, is not a multiple of {step}; give a divisor of {size}")
        unit, most = space.allocation.get(name, 1), min((extent.size for extent in extents), default=0)
        if extents and (unit > most or unit & (unit - 1)):
            yield Problem(context.at(*place, "allocation", name), f"a unit of allocation is a power of two up to {most}, not {unit}")


def sizes_by_target(context: RuleContext) -> Iterator[Problem]:
    """A coordinate has one size on each target with an instruction that reaches the space; every row of sizes has a target."""
    known = requirements.targets_of(context.spec)
    reached = _reaching(context)
    for index, space in enumerate(context.spec.spaces):
        for name, extents in space.coordinates.items():
            place: Place = ("spaces", index, "coordinates", name)
            left = {target.name for target in context.spec.targets}
            named: dict[str, int] = {}
            for number, extent in enumerate(extents):
                here = context.at(*place, number)
                twice = [target for target in extent.targets if named.setdefault(target, number) != number]
                own = {target.name for target in known.including(extent.targets)} if extent.targets else left
                if twice:
                    yield clash(f"{twice[0]} has another size of the {name} already", here, context.at(*place, named[twice[0]]))
                elif not own & left:
                    yield Problem(here, f"the rows before have a size of the {name} for each of these targets; put this row before them")
                left -= own
            for target, entry in reached.get(space.name, {}).items() if extents else ():
                if target in left:
                    text = f"the {name} of {space.title} has no size on {target}, where {entry} reaches it; sizes are for {_for(extents)}"
                    yield from context.once(context.at(*place), text)


def _for(extents: Iterable[CoordinateSize]) -> str:
    return listed(target for extent in extents for target in extent.targets)


def _reaching(context: RuleContext) -> dict[str, dict[str, str]]:
    """Of each on-chip memory, the targets on which an instruction reaches it, with the first one that does."""
    reached: dict[str, dict[str, str]] = {}
    for entry in context.spec.instructions:
        if any(operand.kind == "columns" or operand.kind.startswith("tensor-") for operand in entry.operand_kinds.values()):
            for variant in expand(entry):
                memory = context.spec.tensor_memory_of(variant.facts)
                for target in requirements.accepting(context.spec, variant) if memory else ():
                    reached.setdefault(memory.name if memory else "", {}).setdefault(target.name, entry.name)
    return reached


def _address(context: RuleContext, space: Space, place: Place) -> Iterator[Problem]:
    """The parts of an address lie apart and inside, and every number of a coordinate has a place in it."""
    owners: dict[int, str] = {}
    for name, low in space.address.items():
        here = context.at(*place, "address", name)
        if low >= space.address_bits:
            yield Problem(here, f"bit {low} is outside an address of {space.address_bits} bits; address_bits: gives their number")
        elif (first := owners.setdefault(low, name)) != name:
            yield clash(f"the {name} begins at bit {low}, as the {first} does", here, context.at(*place, "address", first))
        else:
            width, most = space.address_width(name), max((extent.size for extent in space.coordinates.get(name, ())), default=0)
            if 1 << width < most:
                yield Problem(here, f"addresses have {width} bits for the {name}, which reach {1 << width} of them; there are {most}")


def _memory(context: RuleContext, space: Space, place: Place) -> Iterator[Problem]:
    """An on-chip memory has lanes, columns and cells of bits, which a warp reaches and an allocation takes in parts."""
    for part, needed in _NEEDED.items():
        if missing := [name for name in needed if name not in getattr(space, part)]:
            text = f"{part} of the on-chip memory {space.name!r} lacks {listed(missing)}; it needs {listed(needed)}"
            yield Problem(context.at(*place, part), text)
    for name, extents in space.coordinates.items():
        here = context.at(*place, "coordinates", name)
        yield from context.known("coordinate of an on-chip memory", [name], _COORDINATES, *place, "coordinates", name)
        if not extents:
            yield Problem(here, f"{name} has no size; give one, or a list of sizes by target")
    if (cells := space.coordinates.get("bit")) and any(cell.size & (cell.size - 1) for cell in cells):
        yield Problem(context.at(*place, "coordinates", "bit"), "the bits of a cell must be a power of two")


def _reached(context: RuleContext) -> Iterator[Problem]:
    """A family reaches one memory at most."""
    named = (
        (family, ("spaces", index, "of"))
        for index, space in enumerate(context.spec.spaces)
        for family in sorted(set().union(*(context.families(condition) for condition in space.of)))
    )
    yield from context.twice(named, "the family {!r} would reach two memories")


def _layout(context: RuleContext, space: Space, layout: TensorLayout, place: Place) -> Iterator[Problem]:
    """Formulas of a layout give coordinates, and read axes, selections and numbers."""
    sizes = _NUMBERS.union(*context.extents.values())
    chosen = [selection.name for selection in layout.selections]
    yield from context.known("coordinate", layout.at, space.coordinates, *place, "at")
    yield from context.known("axis", layout.apart, layout.axes, *place, "apart")
    if layout.operand in _MATRICES and layout.axes.keys() - set(layout.apart) != {"row", "col"}:
        yield Problem(
            context.at(*place, "axes"), f"the axes of a matrix are row and col, and what apart: lists; here are {listed(layout.axes)}"
        )
    for number, selection in enumerate(layout.selections if layout.operand == "tensor-scales" else ()):
        if not all("blocks" in condition for condition in selection.when or ({},)):
            text = "a selection of scale factors is for some numbers of them: when: needs blocks in each condition"
            yield Problem(context.at(*place, "selections", number), text)
    with contextlib.suppress(FormulaError):  # reported below
        read = {name for text in layout.at.values() for name in formula.names(formula.parse(text))}
        for number, selection in enumerate(layout.selections):
            if selection.name not in read:
                yield Problem(context.at(*place, "selections", number, "name"), f"no formula reads {selection.name!r}; leave it out")
    formulas = [(text, sizes, ("axes", axis)) for axis, text in layout.axes.items()]
    formulas += [(text, {*layout.axes, *chosen, *sizes}, ("at", name)) for name, text in layout.at.items()]
    for text, known, where in (*formulas, (layout.unit, sizes, ("unit",))):
        try:
            unknown = set(formula.names(formula.parse(text))) - known
        except FormulaError as error:
            yield Problem(context.at(*place, *where), str(error))
            continue
        yield from context.known("name", sorted(unknown), sorted(known), *place, *where)
