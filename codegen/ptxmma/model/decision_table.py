"""Decision tables: the rules of a list that meet some facts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ptxmma.model.fields import Condition, Facts, matches

_Rule = TypeVar("_Rule")


class DecisionTable(Generic[_Rule]):
    """The rules of a list, looked up by facts.

    Facts that agree in all that the conditions test meet the same rules.  A thousand variants differ in a few such facts, so that most
    lookups read a dictionary, however many rules there are.

    Attributes:
        tested: the names of the facts that the conditions test.
    """

    def __init__(self, rules: Sequence[_Rule], conditions: str) -> None:
        """``conditions`` is the field of a rule that holds its conditions: ``"when"`` or ``"of"``."""
        self._rules = rules
        self._conditions: Callable[[_Rule], Sequence[Condition]] = operator.attrgetter(conditions)
        self.tested = tuple(dict.fromkeys(name for rule in rules for condition in self._conditions(rule) for name in condition))
        self._met: dict[tuple[Any, ...], tuple[_Rule, ...]] = {}

    def __call__(self, facts: Facts) -> tuple[_Rule, ...]:
        """Return the rules whose conditions hold, in their order."""
        key = tuple([facts.get(name, "") for name in self.tested])
        met = self._met.get(key)
        if met is None:
            met = self._met[key] = tuple([rule for rule in self._rules if matches(self._conditions(rule), facts)])
        return met
