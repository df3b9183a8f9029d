"""Stage 4, derive: the model -> the database: every layout that a formula stands for, as a bit map proven equal to it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma import formula, layouts
from ptxmma.bitmap import BitMap, NotLinearError, Points, linear
from ptxmma.formula import FormulaError
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Problem, SpecError
from ptxmma.layouts import Plan
from ptxmma.model import Cases, Database, Layout, Spec
from ptxmma.variants import Variant, expand

_BYTES_PER_REGISTER = 4
_REGISTER_BITS = 32


def derive(spec: Spec, positions: Positions) -> Database:
    """The database of a spec.

    Raises:
        SpecError: a formula that does not parse, leaves its matrix, misses a part of it or owns one twice, or is no bit map.
    """
    found: dict[str, Layout] = {}
    problems: list[Problem] = []
    for plan in _plans(spec):
        if plan.name in found:
            continue
        try:
            found[plan.name] = layout(spec, plan)
        except _FormulaProblem as problem:
            position = positions.at(_SECTION[plan.kind], plan.entry, *problem.place)
            position = position._replace(column=position.column + problem.column)
            problems.append(Problem(position, f"{plan.name}: {problem}"))
        except NotLinearError as error:
            problems.append(Problem(positions.at(_SECTION[plan.kind], plan.entry), f"{plan.name}: {error}"))
    if problems:
        raise SpecError(problems)
    return Database(spec=spec, layouts=tuple(found.values()))


_SECTION = {"fragment": "fragments", "metadata": "metadata", "scale": "scales"}


class _FormulaProblem(ValueError):
    """A formula that cannot be evaluated: at ``place`` inside its entry, ``column`` characters into its text."""

    def __init__(self, error: FormulaError, place: tuple[str | int, ...]) -> None:
        super().__init__(str(error))
        self.place, self.column = place, error.column


def _plans(spec: Spec) -> Iterator[Plan]:
    """The layouts that the operands of all variants have; one per name matters, repeats are cheap."""
    seen: set[tuple[object, ...]] = set()
    for instruction in spec.instructions:
        kinds = instruction.operand_kinds
        for variant in expand(instruction):
            for name, entry in kinds.items():
                key = _key(variant, name)
                if key in seen:
                    continue
                seen.add(key)
                plan = _plan(spec, variant, name, entry.kind, entry.type, entry.of)
                if plan is not None:
                    yield plan


def _key(variant: Variant, operand: str) -> tuple[object, ...]:
    """Variants that differ only in what no layout depends on (n, saturation, rounding) share this."""
    facts = variant.facts
    types = (facts.get("dtype"), facts.get("atype"), facts.get("btype"), facts.get("ctype"), facts.get("kind"), facts.get("scale_vec"))
    return (variant.instruction.name, operand, facts.get("m"), facts.get("k"), not variant.ranges_over_n and facts.get("n"), types,
            facts.get("alayout"), facts.get("blayout"))


def _plan(spec: Spec, variant: Variant, name: str, kind: str, qualifier: str, of: str) -> Plan | None:
    if kind in ("fragment", "accumulator"):
        return layouts.fragment_plan(spec, variant, name, str(variant.facts[qualifier]))
    if kind == "metadata":
        return layouts.metadata_plan(spec, variant, name)
    if kind == "scale-data" and variant.facts.get("scale_vec"):
        return layouts.scale_plan(spec, variant, of)
    return None


def layout(spec: Spec, plan: Plan) -> Layout:
    """Evaluate one plan's formulas over the whole domain and prove the bit map that they make."""
    bit_map = _KINDS[plan.kind](spec, plan)
    return Layout(
        name=plan.name,
        kind=plan.kind,
        family=plan.family,
        operands=plan.operands,
        shape=plan.shape,
        bits=plan.bits,
        rows=plan.rows,
        cols=plan.cols,
        threads=plan.threads,
        entry=plan.entry,
        map=bit_map,
    )


def _fragment(spec: Spec, plan: Plan) -> BitMap:
    entry = spec.fragments[plan.entry]
    outputs = {"row": width(plan.rows), "col": width(plan.cols)}
    if entry.computations > 1:
        outputs["computation"] = width(entry.computations)
    threads = width(plan.threads)
    inputs = {"i": sum(outputs.values()) - threads, "lane": threads}

    def function(points: Points) -> dict[str, list[int]]:
        variables = _numbers(plan) | {"i": points["i"]} | _thread(points["lane"])
        return _evaluate(entry.let, {name: getattr(entry, name) for name in outputs}, variables, len(points["i"]))

    return linear(inputs, outputs, function)


def _metadata(spec: Spec, plan: Plan) -> BitMap:
    entry = spec.metadata[plan.entry]
    inputs = {"row": width(plan.rows), "chunk": width(plan.cols), "selector": width(entry.selectors)}
    outputs = {"lane": width(plan.threads), "field": sum(inputs.values()) - width(plan.threads)}
    field = _REGISTER_BITS >> outputs["field"]

    def function(points: Points) -> dict[str, list[int]]:
        values = _evaluate(entry.let, {"lane": entry.lane, "bit": entry.bit}, _numbers(plan) | dict(points), len(points["row"]))
        return {"lane": values["lane"], "field": [bit // field if bit % field == 0 else -1 for bit in values["bit"]]}

    return linear(inputs, outputs, function)


def _scale(spec: Spec, plan: Plan) -> BitMap:
    entry = spec.scales[plan.entry]
    inputs = {
        "row": width(plan.rows),
        "block": width(plan.cols),
        "byte_id": width(len(entry.byte_ids)),
        "thread_id": width(len(entry.thread_ids)),
    }
    outputs = {"lane": width(plan.threads), "byte": width(_BYTES_PER_REGISTER)}

    def function(points: Points) -> dict[str, list[int]]:
        ids = {
            "byte_id": [entry.byte_ids[index] for index in points["byte_id"]],
            "thread_id": [entry.thread_ids[index] for index in points["thread_id"]],
        }
        variables = _numbers(plan) | dict(points) | ids
        return _evaluate(entry.let, {"lane": entry.lane, "byte": entry.byte}, variables, len(points["row"]))

    return linear(inputs, outputs, function)


def width(count: int) -> int:
    """Bits that tell ``count`` things apart."""
    return (count - 1).bit_length()


_KINDS = {"fragment": _fragment, "metadata": _metadata, "scale": _scale}


def _numbers(plan: Plan) -> dict[str, formula.Value]:
    return {name: value for name, value in plan.facts.items() if isinstance(value, int)}


def _thread(threads: list[int]) -> dict[str, formula.Value]:
    """``lane`` within the warp and ``warp`` within the warpgroup."""
    return {"lane": [thread % 32 for thread in threads], "warp": [thread // 32 for thread in threads]}


def _evaluate(let: dict[str, str], cases: dict[str, Cases], variables: dict[str, formula.Value], points: int) -> dict[str, list[int]]:
    """The values of several formulas that share helper definitions."""
    place: tuple[str | int, ...] = ()
    try:
        for name, text in let.items():
            place = ("let", name)
            variables[name] = formula.evaluate(formula.parse(text), variables)
        results = {}
        for name, entries in cases.items():
            place = (name,)
            parsed = [(formula.parse(case.when) if case.when else None, formula.parse(case.value)) for case in entries]
            results[name] = formula.evaluate_cases(parsed, variables, points)
    except FormulaError as error:
        raise _FormulaProblem(error, place) from None
    return results
