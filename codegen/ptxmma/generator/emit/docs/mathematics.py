"""Formulas as one writes them for one case: sizes are numbers, trivial arithmetic is done, useless helpers are gone.

With 16-bit elements ``e = 32 // bits`` disappears and ``e * thread + slot + 4 * e * (register // 2)`` reads
``2 * thread + slot + 8 * (register // 2)``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from ptxmma.model import Case, Cases, formula


class Written(NamedTuple):
    """The helpers that are still needed, and the formulas that use them."""

    let: dict[str, str]
    cases: dict[str, Cases]


def specialise(let: Mapping[str, str], cases: Mapping[str, Cases], sizes: Mapping[str, int]) -> Written:
    """Formulas with ``sizes`` put in."""
    known: dict[str, ast.expr] = {name: ast.Constant(value) for name, value in sizes.items()}
    helpers: dict[str, str] = {}
    for name, text in let.items():
        tree = _fold(formula.parse(text), known)
        if isinstance(tree, (ast.Constant, ast.Name)):
            known[name] = tree
        else:
            helpers[name] = ast.unparse(tree)
    written = {
        name: tuple(Case(value=_text(case.value, known), when=_text(case.when, known) if case.when else "") for case in entries)
        for name, entries in cases.items()
    }
    used = {name for entries in written.values() for case in entries for text in (case.value, case.when) if text for name in _names(text)}
    for name in reversed(helpers):
        if name in used:
            used |= _names(helpers[name])
    return Written({name: text for name, text in helpers.items() if name in used}, written)


def _names(text: str) -> set[str]:
    return set(formula.names(formula.parse(text)))


def _text(text: str, known: Mapping[str, ast.expr]) -> str:
    return ast.unparse(_fold(formula.parse(text), known))


def _fold(tree: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """A formula with known names replaced and constant operations evaluated."""
    if isinstance(tree, ast.Name):
        return known.get(tree.id, tree)
    if isinstance(tree, ast.BinOp):
        return _operation(ast.BinOp(_fold(tree.left, known), tree.op, _fold(tree.right, known)))
    if isinstance(tree, ast.UnaryOp):
        return ast.UnaryOp(tree.op, _fold(tree.operand, known))
    if isinstance(tree, ast.BoolOp):
        return ast.BoolOp(tree.op, [_fold(part, known) for part in tree.values])
    if isinstance(tree, ast.Compare):
        return ast.Compare(_fold(tree.left, known), tree.ops, [_fold(part, known) for part in tree.comparators])
    return tree


def _operation(tree: ast.BinOp) -> ast.expr:
    left, right = tree.left, tree.right
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        value = formula.evaluate(tree, {})
        assert isinstance(value, int)
        return ast.Constant(value)
    adds = isinstance(tree.op, (ast.Add, ast.BitOr, ast.BitXor))
    times = isinstance(tree.op, ast.Mult)
    if (adds and _is(right, 0)) or (isinstance(tree.op, (ast.Sub, ast.LShift, ast.RShift)) and _is(right, 0)):
        return left
    if adds and _is(left, 0):
        return right
    if isinstance(tree.op, (ast.Mult, ast.FloorDiv)) and _is(right, 1):
        return left
    if times and _is(left, 1):
        return right
    if (times and (_is(left, 0) or _is(right, 0))) or (isinstance(tree.op, ast.Mod) and _is(right, 1)):
        return ast.Constant(0)
    return tree


def _is(tree: ast.expr, value: int) -> bool:
    return isinstance(tree, ast.Constant) and tree.value == value
