"""Conditions of the spec as C expressions over a struct of the facts that they test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ptxmma.model import Condition

#: The function that writes a value of a fact in C.
Write = Callable[[str], str]
#: The C expression of a fact, and the function that writes its values.
Fact = tuple[str, Write]


def any_of(conditions: Sequence[Condition], facts: Mapping[str, Fact]) -> str:
    """An expression that is true where any of the conditions holds; ``1`` for an empty list.

    Args:
        conditions: conditions of the spec.
        facts: the C expression of each fact, and the function that writes its values.
    """
    return _joined((all_of(condition, facts) for condition in conditions), " || ") or "1"


def all_of(condition: Condition, facts: Mapping[str, Fact]) -> str:
    """An expression that is true where each fact of a condition has one of its values."""
    return _joined((among(*facts[key], values) for key, values in condition.items()), " && ")


def among(expression: str, write: Write, values: Iterable[str | int]) -> str:
    """An expression that is true where a fact has one of some values."""
    return _joined((f"{expression} == {value if isinstance(value, int) else write(value)}" for value in values), " || ")


def _joined(parts: Iterable[str], operator: str) -> str:
    """Parts under one operator, each in parentheses where it has another."""
    every = list(parts)
    if len(every) == 1:
        return every[0]
    return operator.join(f"({part})" if " || " in part or " && " in part else part for part in every)
