"""The formula language of the spec: integer expressions over named variables.

Grammar (EBNF; a subset of Python's expressions, with Python's precedence)::

    formula    = or ;
    or         = and , { "or" , and } ;
    and        = not , { "and" , not } ;
    not        = "not" , not | comparison ;
    comparison = bits , { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) , bits } ;
    bits       = operand , { ( "|" | "^" | "&" | "<<" | ">>" | "+" | "-" | "*" | "//" | "%" ) , operand } ;
    operand    = "-" , operand | integer | name | "(" , formula , ")" ;

A formula is parsed into Python's own syntax tree, checked against this grammar node by node, and interpreted; it is never
handed to ``eval``.  Values are integers or, for speed, many at once: equally long lists of integers, one entry per point of a domain,
or NumPy's integer arrays, which broadcast.
"""

from __future__ import annotations

import ast
import functools
import itertools
import operator
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: An integer, a list with one integer per point, or an array of integers.
Value = int | list[int] | Any

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
#: Longer shifts are certainly a slip, and would need unbounded memory.
_LONGEST_SHIFT = 64


class FormulaError(ValueError):
    """A formula does not parse or cannot be evaluated; ``column`` (0-based) points into its text."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """Parse ``text`` into a checked syntax tree.

    Raises:
        FormulaError: a syntax error, or Python that is outside the grammar above.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        column = max((getattr(error, "offset", None) or 1) - 1, 0)
        raise FormulaError(f"syntax error in formula {text!r}", column) from None
    _check(tree, text)
    return tree


@functools.lru_cache(maxsize=4096)
def names(tree: ast.expr) -> dict[str, int]:
    """The variables that a formula reads, each with the column of its first use."""
    columns: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            columns.setdefault(node.id, node.col_offset)
    return columns


def divisors(tree: ast.expr) -> list[ast.expr]:
    """The parts of a formula by which it divides."""
    return [node.right for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))]


def placeholders(template: str) -> list[str]:
    """The names in braces in a template such as ``"a_row_b{bits}"``."""
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def evaluate(tree: ast.expr, variables: Mapping[str, Value]) -> Value:
    """The value of a formula, where every variable is an integer, a list with one integer per point, or an array of integers.

    Lists and arrays do not mix.  Arrays keep their own arithmetic: they must be wide enough, and signed where a difference is negative.

    Raises:
        FormulaError: an unknown name, a division by zero, or a shift that is negative or longer than 64.
    """
    if isinstance(tree, ast.Constant):
        assert isinstance(tree.value, int)
        return tree.value
    if isinstance(tree, ast.Name):
        try:
            return variables[tree.id]
        except KeyError:
            known = ", ".join(sorted(variables))
            raise FormulaError(f"unknown name {tree.id!r} (known here: {known})", tree.col_offset) from None
    if isinstance(tree, ast.BinOp):
        left, right = evaluate(tree.left, variables), evaluate(tree.right, variables)
        _check_domain(tree, right)
        return _pointwise(_BINARY[type(tree.op)], left, right)
    if isinstance(tree, ast.UnaryOp):
        value = evaluate(tree.operand, variables)
        if isinstance(tree.op, ast.USub):
            return _pointwise(operator.sub, 0, value)
        return _pointwise(operator.eq, 0, value)
    if isinstance(tree, ast.BoolOp):
        values = [_truth(evaluate(part, variables)) for part in tree.values]
        join = operator.and_ if isinstance(tree.op, ast.And) else operator.or_
        result = values[0]
        for value in values[1:]:
            result = _pointwise(join, result, value)
        return result
    assert isinstance(tree, ast.Compare)
    terms = [evaluate(part, variables) for part in (tree.left, *tree.comparators)]
    result = 1
    for test, left, right in zip(tree.ops, terms, terms[1:], strict=False):
        result = _pointwise(operator.and_, result, _pointwise(_COMPARE[type(test)], left, right))
    return result


def evaluate_cases(cases: Sequence[tuple[ast.expr | None, ast.expr]], variables: Mapping[str, Value], points: int) -> list[int]:
    """Evaluate guarded cases, ``(guard, formula)`` in order, the first true guard wins; a guard of None is always true.

    Raises:
        FormulaError: for the reasons of :func:`evaluate`, or at a point that no guard admits.
    """
    result: list[int | None] = [None] * points
    for guard, tree in cases:
        admitted = [1] * points if guard is None else _spread(_truth(evaluate(guard, variables)), points)
        values = _spread(evaluate(tree, variables), points)
        result = [old if old is not None else (new if yes else None) for old, new, yes in zip(result, values, admitted, strict=True)]
    done = [value for value in result if value is not None]
    if len(done) != points:
        raise FormulaError("no case admits every point of the domain: end with a case without a condition")
    return done


def _spread(value: Value, points: int) -> list[int]:
    return [value] * points if isinstance(value, int) else value


def _truth(value: Value) -> Value:
    return _pointwise(operator.ne, value, 0)


def _pointwise(function: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    if isinstance(left, list) or isinstance(right, list):
        return list(map(function, _column(left), _column(right)))
    value = function(left, right)
    if isinstance(value, int):
        return int(value)
    return value | 0 if function in _COMPARE.values() else value  # an array's truth values as 0 and 1: their sums would saturate


def _column(value: Value) -> Any:
    return value if isinstance(value, list) else itertools.repeat(value)


def _check_domain(tree: ast.BinOp, right: Value) -> None:
    values = [right] if isinstance(right, int) else right if isinstance(right, list) else right.ravel()
    if isinstance(tree.op, (ast.FloorDiv, ast.Mod)) and 0 in values:
        raise FormulaError("division by zero", tree.right.col_offset)
    if isinstance(tree.op, (ast.LShift, ast.RShift)) and len(values) and not 0 <= min(values) <= max(values) <= _LONGEST_SHIFT:
        raise FormulaError(f"shift outside 0..{_LONGEST_SHIFT}", tree.right.col_offset)


def _check(tree: ast.expr, text: str) -> None:
    """Refuse syntax that Python's parser accepts and the grammar lacks."""
    for node in ast.walk(tree):
        admitted = (
            isinstance(node, (ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.boolop, ast.Load))
            or (isinstance(node, ast.Constant) and type(node.value) is int)
            or type(node) in _BINARY
            or type(node) in _COMPARE
            or isinstance(node, (ast.USub, ast.Not))
        )
        if not admitted:
            what = type(node).__name__
            raise FormulaError(
                f"{what} is not part of the formula language (allowed: integers, names, + - * // % & | ^ << >>, "
                f"comparisons, and/or/not) in {text!r}",
                getattr(node, "col_offset", 0),
            )
