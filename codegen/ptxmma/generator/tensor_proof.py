"""Proves the layouts of tensor memory over every place of every legal product: inside of it, each alone at its place, and back again."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from ptxmma.catalog.operands import tensor_places
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.resolution import Product
from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator.build import Positions
from ptxmma.generator.digit_proof import difference
from ptxmma.generator.problems import Problem, clash
from ptxmma.model import Facts, Space, Spec, TensorKind, TensorProducts, formula, matches
from ptxmma.model.digits import NotDigitsError
from ptxmma.model.formula import FormulaError

_Test = tuple[str, tuple[str | int, ...]]

#: The kind of the operand that a copy of fixed size writes.
_COPY = "tensor-copy"
#: The kinds of operands that are matrices of elements.
_MATRICES = ("tensor-accumulator", "tensor-matrix")
#: The numbers that the type of the elements decides.
_OF_ELEMENTS = frozenset({"bits", "shift"})


class _Operand(NamedTuple):
    """An operand that lies in tensor memory: of a kind, and of a matrix of a product; ``""`` where a variant of fixed size writes it."""

    variant: Variant
    kind: str
    matrix: str

    def __str__(self) -> str:
        chosen = ", ".join(f"{name} = {value}" for name, value in self.variant.chosen) if isinstance(self.variant, Product) else ""
        matrix, choice = f" of {self.matrix}" if self.matrix else "", f" with {chosen}" if chosen else ""
        return f"the {self.kind}{matrix} of {self.variant.canonical}{choice}"


def uses(spec: Spec) -> Iterator[TensorPlaces]:
    """The layouts of the operands of every legal product; of those that differ in a size that no formula reads, the largest alone."""
    return _largest(filter(None, (resolution.places(spec, *operand) for operand in _operands(spec))))


def _largest(every: Iterable[TensorPlaces]) -> Iterator[TensorPlaces]:
    largest: dict[tuple[object, ...], TensorPlaces] = {}
    for placed in every:
        place = (placed.layout.name, *_read(placed), *placed.selections.items())
        if place not in largest or math.prod(largest[place].sizes.values()) < math.prod(placed.sizes.values()):
            largest[place] = placed
    yield from largest.values()


def _operands(spec: Spec) -> Iterator[_Operand]:
    """The operands in tensor memory, those once that agree in all that conditions test and formulas of layouts read."""
    for instruction in spec.instructions:
        if any(entry.kind == _COPY for entry in instruction.operand_kinds.values()):
            yield from (_Operand(variant, _COPY, "") for variant in expand(instruction))
    if spec.tensor_products is None:
        return
    read = _read_by_kind(spec)
    products: set[tuple[object, ...]] = set()
    # The facts that decide on an operand: its kind reads some, and its numbers follow from others.
    numbering = {"k", *spec.patterns.tested, *spec.types.around.tested}
    stated = {kind: sorted((names | numbering).difference(product_rules.ARGUMENTS)) for kind, names in read.items()}
    deciding = {kind: [name for name in product_rules.ARGUMENTS if name in names | numbering] for kind, names in read.items()}
    told: dict[tuple[object, ...], set[tuple[object, ...]]] = defaultdict(set)
    for opcode, types, operands in _typed(spec, spec.tensor_products, read):
        known_of = []
        for kind, matrix in operands:
            place = (kind, matrix, *_width(spec, types.get(f"{matrix}type", "")), *map(opcode.facts.get, stated[kind]))
            known_of.append((kind, matrix, told[place]))
        for choice in product_rules.sized(spec.tensor_products, opcode.facts, types):
            fresh = []
            for kind, matrix, known in known_of:  # most choices differ in what this operand does not depend on
                key = (choice.block, *map(choice.values.get, deciding[kind]))
                if key not in known:
                    known.add(key)
                    fresh.append((kind, matrix))
            if not fresh:
                continue
            product = resolution.Product(opcode, choice)
            facts = {**product.facts, **resolution.sizes(spec, product)}
            for kind, matrix in fresh:
                numbers = {**facts, **resolution.element_bits(spec, product, matrix)} if read[kind] >= _OF_ELEMENTS else facts
                alike = (kind, matrix, *map(numbers.get, read[kind]))
                if alike not in products:
                    products.add(alike)
                    yield _Operand(product, kind, matrix)


def _read_by_kind(spec: Spec) -> dict[str, set[str]]:
    """The facts that decide on the memory and the layout of each kind of operand, and the numbers of its formulas, with the CTAs."""
    reaching = {name for memory in spec.tensor_memories for condition in memory.of for name in condition}
    names: dict[str, set[str]] = {kind: {"ctas", *reaching} for kind in get_args(TensorKind)}
    for unknown in itertools.chain.from_iterable(memory.unknown for memory in spec.tensor_memories):
        names[unknown.operand].update(name for condition in unknown.of for name in condition)
    for entry in spec.tensor_layouts:
        read = names[entry.operand]
        for text in (entry.unit, *entry.axes.values(), *entry.at.values()):
            read.update(formula.names(formula.parse(text)))
        for condition in (*entry.of, *(each for selection in entry.selections for each in selection.when)):
            read.update(condition)
    for read in names.values():
        if read & _OF_ELEMENTS:
            read |= _OF_ELEMENTS
    return names


def _typed(
    spec: Spec, rules: TensorProducts, read: Mapping[str, set[str]]
) -> Iterator[tuple[Variant, dict[str, str], list[tuple[str, str]]]]:
    """Opcodes with element types and operands, those once that have the same sizes and agree in what layouts of their kind read."""
    containers, patterns = (entry.when for entry in spec.types.containers), (entry.of for entry in spec.granularities)
    conditions = itertools.chain(*product_rules.conditions(rules), *containers, *patterns)
    sizing = frozenset(test for condition in conditions for test in condition.items())  # each fact with the values that one allows
    known: set[tuple[object, ...]] = set()
    for instruction in spec.instructions:
        for opcode in expand(instruction) if instruction.operation == resolution.OPERATION else ():
            described = [operand for operand in resolution.described(opcode) if operand[0] in read]
            for types in product_rules.typed(rules, opcode.facts):
                facts = {**opcode.facts, **types}
                sizes, operands = (*opcode.extents.items(), *tuple([facts.get(name, "") in allowed for name, allowed in sizing])), []
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


def _read(placed: TensorPlaces) -> list[tuple[str, int]]:
    """The numbers that the formulas read, besides the coordinates."""
    names = {name for text in placed.layout.at.values() for name in formula.names(formula.parse(text))}
    return [(name, value) for name, value in sorted(placed.numbers.items()) if name in names]


def problems(spec: Spec, positions: Positions) -> Iterator[Problem]:
    """Operands without a layout or with two, and the first fault of each layout.

    A layout is unused, has no room for a matrix, is not a sum of digits, leads outside, or puts two things at one place.
    """
    wrong, used, every = set[str](), set[str](), list[TensorPlaces]()
    reported: dict[object, Problem] = {}
    for operand in _operands(spec):
        memory = spec.tensor_memory_of(operand.variant.facts)
        if memory is None:
            here = positions.at("instructions", spec.instructions.index(operand.variant.instruction))
            reported.setdefault(here, Problem(here, f"no space is the memory of {operand}; add one"))
            continue
        known = resolution.layout_numbers(spec, operand.variant, operand.matrix)
        facts = {**operand.variant.facts, **known}
        layout = next(tensor_places.covering(memory.layouts, operand.kind, operand.matrix, facts), None)
        covered = dict(_covered(spec, positions, memory, operand, facts))
        reported |= {key: problem for key, problem in covered.items() if key not in reported}
        if layout is not None:
            used.add(layout.name)
        if layout is not None and not covered:
            place = ("spaces", spec.spaces.index(memory), "layouts", memory.layouts.index(layout))
            try:
                every.append(tensor_places.with_numbers(memory, layout, known))
                fault = _size_fault(operand, every[-1])
            except FormulaError as error:
                fault = ("axes",), str(error)
            if fault and layout.name not in wrong:
                wrong.add(layout.name)
                yield Problem(positions.at(*place, *fault[0]), f"{layout.name}: {fault[1]}, for {operand}")
    yield from reported.values()
    for placed in _largest(placed for placed in every if placed.layout.name not in wrong):
        name = placed.layout.name
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


def _covered(spec: Spec, positions: Positions, memory: Space, operand: _Operand, facts: Facts) -> Iterator[tuple[object, Problem]]:
    """One entry gives the place of an operand, or says that no source does; one of its selections applies.  Each with a key for once."""
    index = spec.spaces.index(memory)
    layouts_ = [*tensor_places.covering(memory.layouts, operand.kind, operand.matrix, facts)]
    unknown = [*tensor_places.covering(memory.unknown, operand.kind, operand.matrix, facts)]
    places = [positions.at("spaces", index, "layouts", memory.layouts.index(layout), "of") for layout in layouts_]
    places += [positions.at("spaces", index, "unknown", memory.unknown.index(entry), "of") for entry in unknown]
    if not places:
        here = positions.at("instructions", spec.instructions.index(operand.variant.instruction))
        advice = "add one, or say under unknown that no source gives its place"
        yield (here, operand.kind, operand.matrix), Problem(here, f"no layout in {memory.title} is for {operand}; {advice}")
    elif len(places) > 1:
        yield (*places[:2],), clash(f"two entries are for {operand}", places[1], places[0])
    for layout in layouts_[:1]:
        for name in dict.fromkeys(selection.name for selection in layout.selections):
            fitting = [number for number, one in enumerate(layout.selections) if one.name == name and matches(one.when, facts)]
            if len(fitting) != 1:
                here = positions.at("spaces", index, "layouts", memory.layouts.index(layout), "selections", *fitting[1:2])
                yield (
                    (here, name),
                    Problem(here, f"{'two entries give' if fitting else 'no entry gives'} the values of {name} for {operand}"),
                )


def _size_fault(operand: _Operand, placed: TensorPlaces) -> tuple[tuple[str, ...], str] | None:
    """The part of a layout that lacks room for the whole matrix, or for each of its elements, and its fault; None without one."""
    numbers, sizes = placed.numbers, placed.sizes
    if empty := next((axis for axis, size in sizes.items() if size < 1), None):
        return ("axes", empty), f"{empty} is {sizes[empty]}, which must be at least 1"
    of_matrix = operand.kind in _MATRICES and isinstance(operand.variant, Product)
    if placed.unit < (bits := numbers.get("bits", 1) if of_matrix else 1):
        return ("unit",), f"unit is {placed.unit}, which must be at least {bits}"
    if of_matrix:
        whole = {"a": (numbers["m"], numbers["k"] // numbers["ratio"]), "b": (numbers["k"], numbers["n"])}
        for axis, size in zip(("row", "col"), whole.get(operand.matrix, (numbers["m"], numbers["n"])), strict=True):
            if sizes[axis] != size:
                return ("axes", axis), f"{axis} is {sizes[axis]}, where the matrix has {size}"
    return None


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
    between = min((digit.weight for digit in digits.moving("bit")), default=placed.unit)
    if placed.unit > between:
        return ("unit",), f"{placed.unit} bits at each place overlap: the next place is {between} bits further{_with(placed, chosen)}"
    part, reach, last = memory.partition["lane"], digits.reach("lane"), layout.align[-1]
    step = layout.align[1] if len(layout.align) > 1 else part
    if step < 1 or part % step or layout.align != tuple(range(0, last + 1, step)) or reach + last >= limits["lane"]:
        allowed = f"0, and the multiples of one divisor of {part}, the lanes that a warp reaches, up to {limits['lane'] - 1 - reach}"
        return ("align",), f"it cannot start at the lanes {', '.join(map(str, layout.align))}; allowed: {allowed}"
    different = difference(digits, layout.at, layout.back, placed.numbers | chosen)
    if different:
        coordinate, text = different
        order = "the smallest weight first and each weight a multiple of the one before"
        return ("at", coordinate) if coordinate else ("at",), f"{text!r} is not a sum of digits, {order}{_with(placed, chosen)}"
    return None


def _with(placed: TensorPlaces, chosen: dict[str, int]) -> str:
    said = [f"{name} = {value}" for name, value in (*_read(placed), *chosen.items())]
    return f" with {', '.join(said)}" if said else ""
