"""Evaluating the formulas of one spec entry over a whole domain, with errors that say where in the entry they are."""

from __future__ import annotations

from ptxmma.catalog.layouts import Plan
from ptxmma.generator.build import Positions
from ptxmma.generator.problems import Problem
from ptxmma.model import Cases, formula
from ptxmma.model.formula import FormulaError, Value

_LANES = 32


class EntryError(ValueError):
    """A formula that cannot be evaluated: at ``place`` inside its entry, ``column`` characters into its text."""

    def __init__(self, error: FormulaError, place: tuple[str | int, ...]) -> None:
        super().__init__(str(error))
        self.place, self.column = place, error.column

    def at(self, positions: Positions, name: str, *entry: str | int) -> Problem:
        """The problem, for an entry that is being evaluated for the layout ``name``."""
        position = positions.at(*entry, *self.place)
        return Problem(position._replace(column=position.column + self.column), f"{name}: {self}")


def numbers(plan: Plan) -> dict[str, Value]:
    """The sizes of a layout that formulas may read."""
    return {name: value for name, value in plan.facts.items() if isinstance(value, int)}


def thread(threads: list[int]) -> dict[str, Value]:
    """``lane`` within the warp and ``warp`` within the warpgroup."""
    return {"lane": [number % _LANES for number in threads], "warp": [number // _LANES for number in threads]}


def evaluate_entry(let: dict[str, str], cases: dict[str, Cases], variables: dict[str, Value], points: int) -> dict[str, list[int]]:
    """The values of several formulas that share helper definitions, one list per formula.

    Raises:
        EntryError: a formula that does not parse, or reads what is not there.
    """
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
        raise EntryError(error, place) from None
    return results
