"""Proof of register layouts: their formulas over a whole domain, held against the formulas that the manual prints, shape by shape.

A printed formula that is known to be wrong names its erratum, and must then differ from ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Problem
from ptxmma.model import WINDOW, Cases, Layout, RegisterLayout, Space, Spec, Stated, formula, matches
from ptxmma.model.bitmap import domain
from ptxmma.model.formula import FormulaError, Value


class EntryError(ValueError):
    """A formula cannot be evaluated.  ``place`` is its path in the entry, ``column`` the offset in its text."""

    def __init__(self, error: FormulaError, place: tuple[str | int, ...]) -> None:
        super().__init__(str(error))
        self.place, self.column = place, error.column

    def at(self, positions: Positions, name: str, *entry: str | int) -> Problem:
        """The problem that reports this error of an entry, found while evaluating the layout ``name``."""
        position = positions.at(*entry, *self.place)
        return Problem(position._replace(column=position.column + self.column), f"{name}: {self}")


def thread(threads: list[int], lanes: int) -> dict[str, Value]:
    """The ``lane`` within the warp, which has ``lanes`` lanes, and the ``warp`` within the warpgroup."""
    return {"lane": [number % lanes for number in threads], "warp": [number // lanes for number in threads]}


def evaluate_entry(let: Mapping[str, str], at: Mapping[str, Cases], variables: Mapping[str, Value], points: int) -> dict[str, list[int]]:
    """The values of several formulas that share helper definitions, one list per formula.

    Raises:
        EntryError: a formula that does not parse, or reads an unknown name.
    """
    known = dict(variables)
    place: tuple[str | int, ...] = ()
    try:
        for name, text in let.items():
            place = ("let", name)
            known[name] = formula.evaluate(formula.parse(text), known)
        results = {}
        for name, entries in at.items():
            place = ("at", name)
            parsed = [(formula.parse(case.when) if case.when else None, formula.parse(case.value)) for case in entries]
            results[name] = formula.evaluate_cases(parsed, known, points)
    except FormulaError as error:
        raise EntryError(error, place) from None
    return results


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
    variables = {**plan.variables, "i": points["i"], **thread(points["lane"], registers.most("lane"))}
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
