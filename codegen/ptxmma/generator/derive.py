"""Stage 4, derive: the model -> the database: every layout as a bit map, and the proof that it equals its formula."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.roles import ROLES, OperandKeys
from ptxmma.catalog.variants import Variant, representatives
from ptxmma.generator import register_proof
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Position, Problem, SpecError, clash, of_use
from ptxmma.generator.register_proof import EntryError, evaluate_entry, thread
from ptxmma.generator.spec_rules.register_layout_rules import LARGEST_DOMAIN
from ptxmma.model import Database, Layout, LayoutDigits, RegisterLayout, Spec, formula
from ptxmma.model.bitmap import BitMap, NotLinearError, Points, at_bits, linear
from ptxmma.model.formula import FormulaError

#: Bits of what the coordinates within a register count.
_UNITS = {"bit": 1, "byte": 8}


class Derived(NamedTuple):
    """A database, and the proofs of its formulas.

    Attributes:
        database: the database.
        prove: raises :class:`SpecError` if a formula says something else than the manual, or than the bits or digits that it is read as.
    """

    database: Database
    prove: Callable[[], None]


def derive(spec: Spec, positions: Positions) -> Derived:
    """The database of a spec; its last proofs may be made later, and in another process.

    Raises:
        SpecError: a formula that does not parse, or is not a bit map where it can be seen from single bits; a fragment of a smaller
            size that is not the beginning of the largest one; two different layouts of one name.
    """
    derived: dict[str, tuple[Layout, Plan]] = {}
    maps: dict[tuple[object, ...], BitMap] = {}
    read: list[_Read] = []
    problems: list[Problem] = []
    failed: set[tuple[object, ...]] = set()
    for kind, plan, variant, user in _plans(spec):
        key = _formula_key(spec, plan)
        if key in failed:
            continue
        try:
            if key not in maps:
                maps[key] = at_bits(*placing(spec, plan)) or linear(*placing(spec, plan))  # which says what is wrong
                read.append(_Read(plan, user))
            layout = _layout(spec, kind, plan, maps[key])
            _prefixes(spec, plan, layout, variant)
        except (EntryError, NotLinearError) as error:
            failed.add(key)
            problems.append(_Read(plan, user).problem(positions, error))
            continue
        other, _ = derived.setdefault(plan.name, (layout, plan))
        if other != layout:
            message = f"two different layouts are called {plan.name}; name: must tell them apart"
            here, first = (positions.at("register_layouts", entry) for entry in (plan.entry, other.entry))
            problems.append(clash(message, here, first))
    problems += _one_function(positions, [layout for layout, _ in derived.values()])
    _refuse(problems)
    digits = tuple(LayoutDigits(layout=layout.name, terms=layout.terms, back=layout.back) for layout in spec.tensor_layouts)
    database = Database(spec=spec, layouts=tuple(layout for layout, _ in derived.values()), digit_layouts=digits)
    planned = [(plan, layout) for layout, plan in derived.values()]
    return Derived(database, functools.partial(_prove, spec, positions, read, planned))


class _Read(NamedTuple):
    """A plan whose bit map was read off its formulas, and the index of an instruction that uses it."""

    plan: Plan
    user: int

    def problem(self, positions: Positions, error: EntryError | NotLinearError) -> Problem:
        """The problem that reports an error of the formulas."""
        plan, place = self.plan, ("register_layouts", self.plan.entry)
        if isinstance(error, NotLinearError):
            error = EntryError(FormulaError(str(error)), ("at", error.output) if error.output else ("at",))
        problem = error.at(positions, plan.name, *place)
        return of_use(problem.message, problem.position, positions.at("instructions", self.user))


def _prove(spec: Spec, positions: Positions, read: Sequence[_Read], planned: Sequence[tuple[Plan, Layout]]) -> None:
    """Prove formulas over their whole domains: first that they are bit maps, then what the manual prints, and the layouts of memories.

    Raises:
        SpecError: with every problem.
    """
    _refuse(_nonlinear(spec, positions, read))
    from ptxmma.generator import shared_proof, tensor_proof  # NumPy takes a tenth of a second, and the emitters need none

    proofs = (
        register_proof.check(spec, positions, planned),
        tensor_proof.problems(spec, positions),
        shared_proof.problems(spec, positions),
    )
    _refuse(itertools.chain(*proofs))


def _nonlinear(spec: Spec, positions: Positions, read: Sequence[_Read]) -> Iterator[Problem]:
    """Layouts whose formulas are not bit maps over their whole domains."""
    for each in read:
        try:
            linear(*placing(spec, each.plan))
        except (EntryError, NotLinearError) as error:
            yield each.problem(positions, error)


def _refuse(problems: Iterable[Problem]) -> None:
    """Raise the first problem of each place: a slip meets many plans."""
    first: dict[Position, Problem] = {}
    for problem in problems:
        first.setdefault(problem.position, problem)
    if first:
        raise SpecError(first.values())


def _one_function(positions: Positions, layouts_: Iterable[Layout]) -> Iterator[Problem]:
    """No function of a layout has the name of a function of another: C has one for each result, Python one for each direction."""
    owners: dict[tuple[str, str], Layout] = {}
    for layout in layouts_:
        functions = [("C", f"{layout.name}_{end}") for end in ("lane", "element", *layout.axes)]
        functions += [("Python", layout.name), ("Python", f"{layout.name}_inverse")]
        for language, function in functions:
            other = owners.setdefault((language, function), layout)
            if other is not layout:
                message = f"{layout.name} and {other.name} would both have a function {function} in {language}; name: must tell them apart"
                here, first = (positions.at("register_layouts", entry) for entry in (layout.entry, other.entry))
                yield clash(message, here, first)


def _plans(spec: Spec) -> Iterator[tuple[str, Plan, Variant, int]]:
    """The layouts of the operands of all variants, each with its kind, a variant that uses it and the index of its instruction.

    Variants with equal operands are visited once.
    """
    keys = OperandKeys.of(spec)
    seen: set[tuple[object, ...]] = set()
    for index, instruction in enumerate(spec.instructions):
        placed = {name: entry.type for name, entry in instruction.operand_kinds.items() if ROLES[entry.kind].layout_kind}
        for variant in itertools.chain.from_iterable(representatives(instruction, number) for number, _ in enumerate(instruction.forms)):
            for name, qualifier in placed.items():
                if qualifier and not variant.facts.get(qualifier):
                    continue
                key = keys.shared(variant, name)
                if key not in seen:
                    seen.add(key)
                    plan = keys.plan(variant, name)
                    if plan is not None:
                        yield ROLES[instruction.operand_kinds[name].kind].layout_kind, plan, variant, index


def _formula_key(spec: Spec, plan: Plan) -> tuple[object, ...]:
    """Plans with equal keys share a bit map: their formulas, sizes and the values that the formulas read are equal."""
    entry = spec.register_layouts[plan.entry]
    texts = [*entry.let.values(), *(text for cases in entry.at.values() for case in cases for text in (case.value, case.when) if text)]
    try:
        read = {name for text in texts for name in formula.names(formula.parse(text))}
    except FormulaError:
        read = set(plan.variables)  # evaluation will say where
    values = ((name, plan.variables.get(name)) for name in sorted(read))
    return (plan.entry, plan.threads, *plan.axes.items(), *plan.steps.items(), *values)


def _layout(spec: Spec, kind: str, plan: Plan, bit_map: BitMap) -> Layout:
    entry = spec.register_layouts[plan.entry]
    steps = dict(plan.steps)
    for name, unit in _UNITS.items():
        if name in bit_map.outputs and (step := spec.registers.cell // unit >> bit_map.outputs[name]) > 1:
            steps[name] = step
    return Layout(
        name=plan.name,
        kind=kind,
        family=plan.family,
        operands=entry.operands,
        shape=plan.shape,
        bits=plan.bits,
        axes=plan.axes,
        growing=plan.growing,
        grown=plan.grown,
        summed=plan.summed if kind == "fragment" else "",
        apart=entry.apart,
        steps=steps,
        threads=plan.threads,
        warps=max(plan.threads // spec.lanes, 1),
        entry=plan.entry,
        map=bit_map,
    )


def _prefixes(spec: Spec, plan: Plan, layout: Layout, variant: Variant) -> None:
    """Check that one layout serves every number of an extent that ranges: a smaller fragment must be the beginning of the largest.

    Raises:
        EntryError: a smaller fragment is not the beginning of the largest.
    """
    if not plan.growing or layout.kind != "fragment":
        return
    if len(plan.growing) > 1:
        said = f"{' and '.join(plan.growing)} both depend on sizes that range; one layout serves them all only where one does"
        raise EntryError(FormulaError(said), ())
    (axis,), step = plan.growing, layout.grows_by
    for numbers in itertools.product(*variant.ranging.values()):
        variables = plan.variables | dict(zip(variant.ranging, numbers, strict=True))
        size = layouts.size(spec.register_layouts[plan.entry].axes[axis], variables)
        if size % step:
            said = f"{axis} = {size} is not a multiple of {step}, which the highest bits of i count"
            raise EntryError(FormulaError(f"{said}; the elements of a smaller size must be the first of the largest one"), ())


class Placing(NamedTuple):
    """The function of a layout's formulas: the widths of its inputs and outputs, and the outputs at a list of points."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    at: Callable[[Points], dict[str, list[int]]]


def placing(spec: Spec, plan: Plan) -> Placing:
    """The function of a layout's formulas, from register and lane to the axes or back.

    Raises:
        EntryError: the matrix is too large, or has a size that is not a power of two.
    """
    entry = spec.register_layouts[plan.entry]
    if (elements := math.prod(plan.axes.values())) > LARGEST_DOMAIN:
        raise EntryError(FormulaError(f"{elements} elements are more than {LARGEST_DOMAIN}"), ("axes",))
    axes, threads = {axis: width(size) for axis, size in plan.axes.items()}, width(plan.threads)
    if unequal := [f"{axis} = {size}" for axis, size in plan.axes.items() if size != 1 << width(size)]:
        axis = next(axis for axis, size in plan.axes.items() if size != 1 << width(size))
        raise EntryError(FormulaError(f"sizes must be powers of two: {', '.join(unequal)}"), ("axes", axis))
    if entry.at.keys() == entry.axes.keys():
        inputs = {"i": max(sum(axes.values()) - threads, 0), "lane": threads}
        return Placing(inputs, axes, lambda points: _to_axes(spec, entry, plan, points))
    unit = next((name for name in _UNITS if name in entry.at), "")
    lanes = min(threads, sum(axes.values()))
    outputs = {"lane": lanes} | ({unit: sum(axes.values()) - lanes} if unit else {})
    steps = {unit: spec.registers.cell // _UNITS[unit] >> outputs[unit]} if unit else {}
    return Placing(axes, outputs, lambda points: _to_places(entry, plan, points, steps))


def _to_axes(spec: Spec, entry: RegisterLayout, plan: Plan, points: Points) -> dict[str, list[int]]:
    """The place of each element, an axis a list."""
    variables = {**plan.variables, "i": points["i"], **thread(points["lane"], spec.lanes)}
    return _counted(evaluate_entry(entry.let, entry.at, variables, len(points["lane"])), plan.steps)


def _to_places(entry: RegisterLayout, plan: Plan, points: Points, steps: dict[str, int]) -> dict[str, list[int]]:
    """The thread and the part of its register that hold the data of each place; parts are counted from 0."""
    coordinates = {axis: [number * plan.steps.get(axis, 1) for number in numbers] for axis, numbers in points.items()}
    values = evaluate_entry(entry.let, entry.at, {**plan.variables, **coordinates}, len(next(iter(points.values()))))
    return _counted(values, steps)


def _counted(values: dict[str, list[int]], steps: dict[str, int]) -> dict[str, list[int]]:
    """Numbers divided by a step; -1 for a number that is not a multiple of it."""
    return {
        name: [number // step if number % step == 0 else -1 for number in numbers] if (step := steps.get(name, 1)) > 1 else numbers
        for name, numbers in values.items()
    }


def width(count: int) -> int:
    """Bits that tell ``count`` things apart."""
    return (count - 1).bit_length()
