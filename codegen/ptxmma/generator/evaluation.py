"""Evaluates the formulas of one spec entry over a whole domain.  Errors have their place in the entry."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.catalog.layouts import Plan
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Problem
from ptxmma.model import Cases, formula
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


def variables_of(plan: Plan) -> dict[str, Value]:
    """The variables of the formulas of a layout besides its coordinates."""
    return dict(plan.variables)
