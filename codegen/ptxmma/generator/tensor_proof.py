"""Proves the layouts of tensor memory over every place of every legal product: inside of it, each alone at its place, and back again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator.build import Positions
from ptxmma.generator.digit_proof import difference
from ptxmma.generator.problems import Problem
from ptxmma.model import Condition, Facts, Spec, TensorProducts, formula
from ptxmma.model.digits import NotDigitsError

_Test = tuple[str, tuple[str | int, ...]]

#: The numbers that the type of the elements decides.
_OF_ELEMENTS = frozenset({"bits", "shift"})


def uses(spec: Spec) -> Iterator[TensorPlaces]:
    """The layouts of the operands of every legal product; of those that differ in a size that no formula reads, the largest alone."""
    largest: dict[tuple[object, ...], TensorPlaces] = {}
    for copied in _copies(spec):
        largest.setdefault((copied.layout.name,), copied)
    for placed in _of_products(spec):
        place = (placed.layout.name, *_read(placed), *placed.selections.items())
        if place not in largest or math.prod(largest[place].sizes.values()) < math.prod(placed.sizes.values()):
            largest[place] = placed
    yield from largest.values()


def _copies(spec: Spec) -> Iterator[TensorPlaces]:
    """The places that instructions of a fixed size write."""
    for instruction in spec.instructions:
        for kind in dict.fromkeys(entry.kind for entry in instruction.operand_kinds.values() if entry.kind == "tensor-copy"):
            for variant in expand(instruction):
                placed = resolution.places(spec, variant, kind, "")
                if placed is not None:
                    yield placed


def _of_products(spec: Spec) -> Iterator[TensorPlaces]:
    """The operands of products, those once that agree in all that conditions test and formulas of layouts read."""
    if not spec.tensor_layouts or spec.tensor_products is None:
        return
    read = _read_by_kind(spec)
    products: set[tuple[object, ...]] = set()
    for opcode, types, operands in _typed(spec, spec.tensor_products, read):
        for choice in product_rules.sized(spec.tensor_products, opcode.facts, types):
            product = resolution.Product(opcode, choice)
            facts = {**product.facts, **resolution.sizes(spec, product)}
            for kind, matrix in operands:
                known = {**facts, **resolution.element_bits(spec, product, matrix)} if read[kind] >= _OF_ELEMENTS else facts
                alike = (kind, matrix, *map(known.get, read[kind]))
                if alike not in products:
                    products.add(alike)
                    if placed := resolution.places(spec, product, kind, matrix):
                        yield placed


def _read_by_kind(spec: Spec) -> dict[str, set[str]]:
    """The numbers that layouts of each kind of operand depend on: names in formulas and conditions, and the CTAs, which limit each."""
    names: dict[str, set[str]] = {}
    for entry in spec.tensor_layouts:
        read = names.setdefault(entry.operand, {"ctas"})
        for text in (entry.unit, *entry.axes.values(), *entry.at.values()):
            read.update(formula.names(formula.parse(text)))
        for condition in (*entry.of, *(each for selection in entry.selections for each in selection.when)):
            read.update(condition)
        if read & _OF_ELEMENTS:
            read |= _OF_ELEMENTS
    return names


def _typed(
    spec: Spec, rules: TensorProducts, read: Mapping[str, set[str]]
) -> Iterator[tuple[Variant, dict[str, str], list[tuple[str, str]]]]:
    """Opcodes with element types and operands, those once that have the same sizes and agree in what layouts of their kind read."""
    sizing = _tests(
        [
            *product_rules.conditions(rules),
            *(entry.when for entry in spec.types.containers),
            *(entry.of for entry in spec.granularities),
        ]
    )
    known: set[tuple[object, ...]] = set()
    for instruction in spec.instructions:
        for opcode in expand(instruction) if instruction.operation == resolution.OPERATION else ():
            described = [operand for operand in resolution.described(opcode) if operand[0] in read]
            for types in product_rules.typed(rules, opcode.facts):
                facts = {**opcode.facts, **types}
                sizes, operands = (*opcode.extents.items(), *_answers(sizing, facts)), []
                for kind, matrix in described:
                    element = _width(spec, types.get(f"{matrix}type", "")) if read[kind] >= _OF_ELEMENTS else ()
                    alike = (kind, matrix, *element, *sizes, *map(facts.get, read[kind]))
                    if alike not in known:
                        known.add(alike)
                        operands.append((kind, matrix))
                if operands:
                    yield opcode, types, operands


def _width(spec: Spec, element: str) -> tuple[object, ...]:
    """The facts that decide on the bits of elements of a type: its own bits, and the containers that it may sit in."""
    bits = [entry.bits for entry in spec.types.elements if entry.name == element]
    return (*bits, *(element in entry.elements for entry in spec.types.containers))


def _tests(conditions: Iterable[Sequence[Condition]]) -> frozenset[_Test]:
    """The facts that conditions test, each with the values that one of them allows."""
    return frozenset(test for each in conditions for condition in each for test in condition.items())


def _answers(tests: Collection[_Test], facts: Facts) -> tuple[bool, ...]:
    return tuple([facts.get(name, "") in allowed for name, allowed in tests])


def _read(placed: TensorPlaces) -> list[tuple[str, int]]:
    """The numbers that the formulas read, besides the coordinates."""
    names = {name for text in placed.layout.at.values() for name in formula.names(formula.parse(text))}
    return [(name, value) for name, value in sorted(placed.numbers.items()) if name in names]


def problems(spec: Spec, positions: Positions) -> Iterator[Problem]:
    """The first fault of each layout: unused, a formula that is not a sum of digits, a place outside, or two things at one place."""
    wrong, used = set[str](), set[str]()
    for placed in uses(spec):
        name = placed.layout.name
        used.add(name)
        if name in wrong:
            continue
        number = spec.spaces.index(placed.memory)
        index = placed.memory.layouts.index(placed.layout)
        for selected in itertools.product(*placed.selections.values()):
            chosen = dict(zip(placed.selections, selected, strict=True))
            fault = _fault(placed, chosen)
            if fault:
                where, message = fault
                yield Problem(positions.at("spaces", number, "layouts", index, *where), f"{name}: {message}")
                wrong.add(name)
                break
    for number, memory in enumerate(spec.spaces):
        for index, layout in enumerate(memory.layouts):
            here = positions.at("spaces", number, "layouts", index, "of")
            if layout.name not in used and (here.added or not positions.overlaid):
                yield Problem(here, f"no operand of a legal product has the layout {layout.name}; mend its condition, or leave it out")


def _fault(placed: TensorPlaces, chosen: dict[str, int]) -> tuple[tuple[str, ...], str] | None:
    """The faulty part of a layout, and its fault; None without one."""
    layout, memory = placed.layout, placed.memory
    try:
        digits = placed.digits(chosen)
    except NotDigitsError as error:
        return ("at", error.coordinate) if error.coordinate else ("at",), f"{error}{_with(placed, chosen)}"
    limits = {name: memory.least(name) for name in memory.coordinates} | {"cta": placed.numbers["ctas"]}
    for name in memory.coordinates:
        last = digits.reach(name) + (placed.unit - 1 if name == "bit" else 0)
        if last >= limits[name]:
            return ("at", name), f"{name} reaches {last}{_with(placed, chosen)}; allowed: 0..{limits[name] - 1}"
    different = difference(digits, layout.at, layout.back, placed.numbers | chosen)
    if different:
        coordinate, text = different
        order = "the smallest weight first and each weight a multiple of the one before"
        return ("at", coordinate) if coordinate else ("at",), f"{text!r} is not a sum of digits, {order}{_with(placed, chosen)}"
    return None


def _with(placed: TensorPlaces, chosen: dict[str, int]) -> str:
    said = [f"{name} = {value}" for name, value in (*_read(placed), *chosen.items())]
    return f" with {', '.join(said)}" if said else ""
