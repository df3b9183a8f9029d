"""Compares our parametric formulas with those that the manual prints, shape by shape.

A printed formula that is known to be wrong names its erratum, and must then differ from ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.generator.build import Positions
from ptxmma.generator.evaluation import EntryError, evaluate_entry, thread, variables_of
from ptxmma.generator.problems import Problem
from ptxmma.model import WINDOW, Layout, RegisterLayout, Space, Spec, Stated, matches
from ptxmma.model.bitmap import domain
from ptxmma.model.formula import FormulaError


def check(spec: Spec, positions: Positions, derived: Sequence[tuple[Plan, Layout]]) -> Iterator[Problem]:
    """Check that every printed formula agrees with its layouts, or differs if an erratum says so."""
    for index, entry in enumerate(spec.register_layouts):
        for number, stated in enumerate(entry.stated):
            place = ("register_layouts", index, "stated", number)
            fitting = [(plan, layout) for plan, layout in derived if plan.entry == index and _fits(entry, stated, plan)]
            if not fitting:
                yield Problem(positions.at(*place), f"section {stated.section} is stated for layouts that no variant has")
            try:
                differences = [text for plan, layout in fitting if (text := difference(stated, plan, layout, spec.registers))]
            except EntryError as error:
                yield error.at(positions, f"section {stated.section}", *place)
                continue
            if stated.erratum and fitting and not differences:
                yield Problem(positions.at(*place, "erratum"), f"section {stated.section} agrees with ours: remove the erratum")
            elif differences and not stated.erratum:
                yield Problem(positions.at(*place), f"section {stated.section} differs: {differences[0]}")


def _fits(entry: RegisterLayout, stated: Stated, plan: Plan) -> bool:
    facts = {**plan.facts, **plan.variables}  # of an extent that ranges, the largest
    return any(matches(stated.of, facts | {"operand": operand}) for operand in entry.operands)


def difference(stated: Stated, plan: Plan, layout: Layout, registers: Space) -> str:
    """The first point where a printed formula differs, in words; ``""`` where there is none."""
    bit_map = layout.map
    elements, register = 1 << bit_map.inputs["i"], max(registers.cell, plan.bits)
    if stated.registers and stated.registers != elements * plan.bits // register:
        return f"{plan.name} has {elements * plan.bits // register} registers, not {stated.registers}"
    if not stated.at:
        return ""
    points = domain(bit_map.inputs)
    variables = variables_of(plan) | {"i": points["i"]} | thread(points["lane"], registers.most("lane"))
    theirs = evaluate_entry(stated.let, stated.at, variables, len(points["i"]))
    ours = bit_map.evaluate(points)
    if window := [name for name in WINDOW if name in stated.at]:
        if not plan.summed:
            message = f"{window[0]} counts along the axis whose size reads {layouts.SUMMED!r}; no axis of this layout does"
            raise EntryError(FormulaError(message), ("at", window[0]))
        ratio, width = plan.variables["ratio"], register // plan.bits
        ours["first"] = [ratio * width * (number // width) for number in ours[plan.summed]]
        ours["last"] = [first + ratio * width - 1 for first in ours["first"]]
    for name, values in theirs.items():
        for point, (theirs_here, ours_here) in enumerate(zip(values, ours[name], strict=True)):
            if theirs_here != ours_here:
                where = f"lane {points['lane'][point]}, i {points['i'][point]}"
                return f"{name} is {theirs_here} there and {ours_here} in {plan.name}, at {where}"
    return ""
