"""Our parametric formulas against the ones that the manual prints, shape by shape: an error cannot hide in either.

A printed formula that is known to be wrong names its erratum, and then must differ somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.layouts import Plan
from ptxmma.generator.build import Positions
from ptxmma.generator.evaluation import EntryError, evaluate_entry, numbers, thread
from ptxmma.generator.problems import Problem
from ptxmma.model import Fragment, Spec, Stated, matches
from ptxmma.model.bitmap import BitMap, domain

_REGISTER_BITS = 32


def check(spec: Spec, positions: Positions, derived: list[tuple[Plan, BitMap]]) -> Iterator[Problem]:
    """Every way in which a printed formula differs from the layouts that it is printed for."""
    for index, fragment in enumerate(spec.fragments):
        instances = [(plan, bit_map) for plan, bit_map in derived if plan.kind == "fragment" and plan.entry == index]
        for number, stated in enumerate(fragment.stated):
            place = ("fragments", index, "stated", number)
            fitting = [(plan, bit_map) for plan, bit_map in instances if _fits(fragment, stated, plan)]
            if not fitting:
                yield Problem(positions.at(*place), f"section {stated.section} is stated for layouts that no variant has")
            try:
                found = [said for plan, bit_map in fitting if (said := difference(stated, plan, bit_map))]
            except EntryError as error:
                yield error.at(positions, f"section {stated.section}", *place)
                continue
            if stated.erratum and fitting and not found:
                yield Problem(positions.at(*place, "erratum"), f"section {stated.section} agrees with ours; there is no erratum")
            elif found and not stated.erratum:
                yield Problem(positions.at(*place), f"section {stated.section} differs: {found[0]}")


def _fits(fragment: Fragment, stated: Stated, plan: Plan) -> bool:
    return any(matches(stated.of, dict(plan.facts) | {"operand": operand}) for operand in fragment.operands)


def difference(stated: Stated, plan: Plan, bit_map: BitMap) -> str:
    """The first point where a printed formula differs, in words; ``""`` where there is none."""
    elements, register = 1 << bit_map.inputs["i"], max(_REGISTER_BITS, plan.bits)
    if stated.registers and stated.registers != elements * plan.bits // register:
        return f"{plan.name} has {elements * plan.bits // register} registers, not {stated.registers}"
    cases = {name: getattr(stated, name) for name in ("row", "col", "first", "last") if getattr(stated, name)}
    if not cases:
        return ""
    points = domain(bit_map.inputs)
    variables = numbers(plan) | {"i": points["i"]} | thread(points["lane"])
    theirs = evaluate_entry(stated.let, cases, variables, len(points["i"]))
    ours = bit_map.evaluate(points)
    ratio, width = int(plan.facts["ratio"]), register // plan.bits
    ours["first"] = [ratio * width * (col // width) for col in ours["col"]]
    ours["last"] = [first + ratio * width - 1 for first in ours["first"]]
    for name, values in theirs.items():
        for point, (theirs_here, ours_here) in enumerate(zip(values, ours[name], strict=True)):
            if theirs_here != ours_here:
                where = f"lane {points['lane'][point]}, i {points['i'][point]}"
                return f"{name} is {theirs_here} there and {ours_here} in {plan.name}, at {where}"
    return ""
