"""The formula language: what it admits, what it computes, what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.model import formula
from ptxmma.model.formula import FormulaError

_SMALL = st.integers(0, 200)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lane // 4 + 8 * (i % 2)", 13),
        ("-i + 2", 1),
        ("lane ^ 3 | 64", 85),
        ("i << 2 & 6", 4),
        ("0 <= i < 2 or 4 <= i < 6", 1),
        ("i < 1 and lane == 22", 0),
        ("not i == 1", 0),
        ("lane >> 1 != 11", 0),
    ],
)
def test_values(text: str, value: int) -> None:
    assert formula.evaluate(formula.parse(text), {"lane": 22, "i": 1}) == value


@given(_SMALL, _SMALL, st.integers(1, 9))
def test_lists_are_pointwise(a: int, b: int, c: int) -> None:
    tree = formula.parse("(a + b) // c % 7 << 1 ^ b")
    columns = formula.evaluate(tree, {"a": [a, b], "b": [b, a], "c": c})
    assert columns == [formula.evaluate(tree, {"a": x, "b": y, "c": c}) for x, y in ((a, b), (b, a))]
    assert formula.evaluate(tree, {"a": a, "b": b, "c": c}) == ((a + b) // c % 7 << 1) ^ b


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "i.x", "[i]", "i if i else i", "lambda: i", "i ** 9", "i / 2", "1.5", "'a'", "f(i)", "(i := 3)", "True", "~i"],
)
def test_the_rest_of_python_is_refused(text: str) -> None:
    with pytest.raises(FormulaError, match="not part of the formula language"):
        formula.parse(text)


@pytest.mark.parametrize("text", ["", "i +", "(i", "i 2", "for"])
def test_syntax_errors(text: str) -> None:
    with pytest.raises(FormulaError, match="syntax error"):
        formula.parse(text)


def test_unknown_names_say_what_is_known() -> None:
    with pytest.raises(FormulaError, match=r"unknown name 'lone' \(known here: i, lane\)") as caught:
        formula.evaluate(formula.parse("i + lone"), {"i": 1, "lane": 2})
    assert caught.value.column == 4


@pytest.mark.parametrize("text", ["i // 0", "i % (i - 1)", "i << 65", "i >> (0 - 1)"])
def test_outside_the_domain(text: str) -> None:
    with pytest.raises(FormulaError, match=r"division by zero|shift outside"):
        formula.evaluate(formula.parse(text), {"i": 1})


def test_cases_take_the_first_true_guard() -> None:
    cases = [(formula.parse("i < 2"), formula.parse("10")), (formula.parse("i < 3"), formula.parse("i")), (None, formula.parse("0 - i"))]
    assert formula.evaluate_cases(cases, {"i": [0, 1, 2, 3]}, 4) == [10, 10, 2, -3]
    with pytest.raises(FormulaError, match="no case admits every point"):
        formula.evaluate_cases(cases[:2], {"i": [0, 1, 2, 3]}, 4)
