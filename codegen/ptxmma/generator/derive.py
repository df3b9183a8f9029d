"""Stage 4, derive: the model -> the database: every layout that a formula stands for, as a bit map proven equal to it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator import stated
from ptxmma.generator.build import Positions
from ptxmma.generator.evaluation import EntryError, evaluate_entry, numbers, thread
from ptxmma.generator.problems import Problem, SpecError
from ptxmma.model import Database, Layout, Spec, formula
from ptxmma.model.bitmap import BitMap, NotLinearError, Points, linear
from ptxmma.model.formula import FormulaError

_BYTES_PER_REGISTER = 4
_REGISTER_BITS = 32


def derive(spec: Spec, positions: Positions) -> Database:
    """The database of a spec.

    Raises:
        SpecError: a formula that does not parse, leaves its matrix, misses a part of it or owns one twice, or is no bit map.
    """
    found: dict[str, Layout] = {}
    maps: dict[tuple[object, ...], BitMap] = {}
    plans: dict[str, Plan] = {}
    problems: list[Problem] = []
    for plan in _plans(spec):
        if plan.name in found:
            continue
        try:
            key = _formula_key(spec, plan)
            if key not in maps:
                maps[key] = _KINDS[plan.kind](spec, plan)
            found[plan.name] = _layout(plan, maps[key])
            plans[plan.name] = plan
        except EntryError as error:
            problems.append(error.at(positions, plan.name, _SECTION[plan.kind], plan.entry))
        except NotLinearError as error:
            problems.append(Problem(positions.at(_SECTION[plan.kind], plan.entry), f"{plan.name}: {error}"))
    if not problems:
        problems = list(stated.check(spec, positions, [(plan, found[name].map) for name, plan in plans.items()]))
    if problems:
        raise SpecError(problems)
    return Database(spec=spec, layouts=tuple(found.values()))


_SECTION = {"fragment": "fragments", "metadata": "metadata", "scale": "scales"}
_FORMULAS = {"fragment": ("row", "col", "computation"), "metadata": ("lane", "bit"), "scale": ("lane", "byte")}


def _plans(spec: Spec) -> Iterator[Plan]:
    """The layouts that the operands of all variants have; one per name matters, repeats are cheap."""
    seen: set[tuple[object, ...]] = set()
    for instruction in spec.instructions:
        kinds = instruction.operand_kinds
        for variant in expand(instruction):
            key = layouts.key(variant)
            if key in seen:
                continue
            seen.add(key)
            for name, entry in kinds.items():
                plan = _plan(spec, variant, name, entry.kind, entry.type, entry.of)
                if plan is not None:
                    yield plan


def _plan(spec: Spec, variant: Variant, name: str, kind: str, qualifier: str, of: str) -> Plan | None:
    if kind in ("fragment", "accumulator"):
        return layouts.fragment_plan(spec, variant, name, str(variant.facts[qualifier]))
    if kind == "metadata":
        return layouts.metadata_plan(spec, variant, name)
    if kind == "scale-data" and variant.facts.get("scale_vec"):
        return layouts.scale_plan(spec, variant, of)
    return None


def _formula_key(spec: Spec, plan: Plan) -> tuple[object, ...]:
    """Plans with equal keys have one bit map: the same formulas over the same sizes and the same values of what they read."""
    entry = getattr(spec, _SECTION[plan.kind])[plan.entry]
    texts = [*entry.let.values(), *(case.value for name in _FORMULAS[plan.kind] for case in getattr(entry, name))]
    texts += [case.when for name in _FORMULAS[plan.kind] for case in getattr(entry, name) if case.when]
    try:
        read = {name for text in texts for name in formula.names(formula.parse(text))}
    except FormulaError:
        read = set(plan.facts)  # evaluation will say where
    return (plan.kind, plan.entry, plan.rows, plan.cols, plan.threads, *((name, plan.facts.get(name)) for name in sorted(read)))


def _layout(plan: Plan, bit_map: BitMap) -> Layout:
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
        variables = numbers(plan) | {"i": points["i"]} | thread(points["lane"])
        return evaluate_entry(entry.let, {name: getattr(entry, name) for name in outputs}, variables, len(points["i"]))

    return linear(inputs, outputs, function)


def _metadata(spec: Spec, plan: Plan) -> BitMap:
    entry = spec.metadata[plan.entry]
    inputs = {"row": width(plan.rows), "chunk": width(plan.cols), "selector": width(entry.selectors)}
    outputs = {"lane": width(plan.threads), "field": sum(inputs.values()) - width(plan.threads)}
    field = _REGISTER_BITS >> outputs["field"]

    def function(points: Points) -> dict[str, list[int]]:
        values = evaluate_entry(entry.let, {"lane": entry.lane, "bit": entry.bit}, numbers(plan) | dict(points), len(points["row"]))
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
        variables = numbers(plan) | dict(points) | ids
        return evaluate_entry(entry.let, {"lane": entry.lane, "byte": entry.byte}, variables, len(points["row"]))

    return linear(inputs, outputs, function)


def width(count: int) -> int:
    """Bits that tell ``count`` things apart."""
    return (count - 1).bit_length()


_KINDS = {"fragment": _fragment, "metadata": _metadata, "scale": _scale}
