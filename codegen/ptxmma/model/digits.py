"""Formulas of layouts as digits.

The spec writes a layout as formulas, one for each coordinate: ``lane: "row % 64 + 64 * (col // (n // 2))"``.  :func:`terms` reads them as
digits whose numbers are formulas, and :func:`inverse` derives the formulas back.  A :class:`~ptxmma.model.digit_map.DigitMap` has the
numbers of one use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from ptxmma.model import formula
from ptxmma.model.fields import Entry, Formula, Identifier
from ptxmma.model.formula import FormulaError


class NotDigitsError(ValueError):
    """Digits that are not a layout: a number without a digit, or two things that may share a place.

    ``coordinate`` is the coordinate at fault; ``""`` where no single one is.
    """

    def __init__(self, message: str, coordinate: str = "") -> None:
        super().__init__(message)
        self.coordinate = coordinate


class Summand(Entry, frozen=True):
    """One digit of an axis in the formula of a coordinate, ``32 * (row % 64 // 16)``.  Its numbers are formulas themselves."""

    coordinate: Identifier  # the coordinate that the digit moves: "lane"
    weight: Formula  # the distance of two neighbours: "32"
    axis: Annotated[str, Meta(description='the axis that is split; "" for a term without one, such as a selection alone')]  # "row"
    step: Formula = "1"  # the number of the axis is divided by it: "16"
    size: Annotated[str, Meta(description='the number of values; "" for the highest digit of an axis, which takes what is left')] = (
        ""  # "4"
    )
    added: tuple[Identifier, ...] = ()  # numbers that are added to the number of the axis: ("scale_id",)


def terms(at: Mapping[str, str], axes: Mapping[str, Any]) -> Iterator[Summand]:
    """The digits that formulas add up, coordinate by coordinate, in the order in which they are written.

    Raises:
        NotDigitsError: a formula that does not parse, or a part of it that is not a digit of one axis.
    """
    for coordinate, text in at.items():
        try:
            for part in _summands(formula.parse(text)):
                yield _term(coordinate, part, axes)
        except FormulaError as error:
            raise NotDigitsError(str(error), coordinate) from None


def _summands(tree: ast.expr) -> Iterator[ast.expr]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        yield from _summands(tree.left)
        yield from _summands(tree.right)
    else:
        yield tree


def _term(coordinate: str, tree: ast.expr, axes: Mapping[str, Any]) -> Summand:
    weight: ast.expr = ast.Constant(1)
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        if _axes(tree.left, axes) and _axes(tree.right, axes):
            raise FormulaError(f"{ast.unparse(tree)!r} multiplies axes; a layout is a sum of weight * digit")
        factor, tree = (tree.right, tree.left) if _axes(tree.left, axes) else (tree.left, tree.right)
        weight = _joined(weight, ast.Mult(), factor)
    if not _axes(tree, axes):
        return Summand(coordinate, ast.unparse(_joined(weight, ast.Mult(), tree)), "")
    axis, step, size, added = _digit(tree, axes)
    return Summand(coordinate, ast.unparse(weight), axis, ast.unparse(step), "" if size is None else ast.unparse(size), added)


def _digit(tree: ast.expr, axes: Mapping[str, Any]) -> tuple[str, ast.expr, ast.expr | None, tuple[str, ...]]:
    """The axis, step, size and added numbers of ``(axis + added) // step % size``, or of ``axis % (step * size) // step``."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.FloorDiv, ast.Mod)) and not _axes(tree.right, axes):
        axis, step, size, added = _digit(tree.left, axes)
        if isinstance(tree.op, ast.Mod):
            return axis, step, tree.right, added
        return axis, _joined(step, ast.Mult(), tree.right), size and _joined(size, ast.FloorDiv(), tree.right), added
    names = [part.id for part in _summands(tree) if isinstance(part, ast.Name)]
    found = [name for name in names if name in axes]
    if len(found) != 1 or len(names) != sum(1 for _ in _summands(tree)):
        text = ast.unparse(tree)
        raise FormulaError(f"{text!r} is not a digit of one axis; write weight * (axis // step % size), and a sum of such terms")
    # In Python 3.10, an empty tuple of a generator is not (), the default that JSON leaves out.
    return found[0], ast.Constant(1), None, tuple(name for name in names if name not in axes) or ()


def _axes(tree: ast.expr, axes: Mapping[str, Any]) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in axes}


def _joined(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    """An operation, computed where both sides are integers and left out where it changes nothing."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        value = formula.evaluate(ast.BinOp(left, operator, right), {})
        assert isinstance(value, int)
        return ast.Constant(value)
    neutral = 0 if isinstance(operator, (ast.Add, ast.Sub)) else 1
    if isinstance(right, ast.Constant) and right.value == neutral:
        return left
    if isinstance(left, ast.Constant) and left.value == neutral and isinstance(operator, (ast.Add, ast.Mult)):
        return right
    return ast.BinOp(left, operator, right)


def inverse(split: Sequence[Summand], axes: Mapping[str, Any]) -> dict[str, str]:
    """The formulas back: each axis from the coordinates, by reading its digits.

    ``lane: "row % 64 + 64 * (col // (n // 2))"`` and ``column: "col % (n // 2)"`` give ``row: "lane % 64"`` and
    ``col: "column + n // 2 * (lane // 64)"``.  The terms of a coordinate must be in ascending order of their weights, each a multiple of
    the one before.  A place where nothing lies leads to some number.
    """
    back: dict[str, str] = {}
    above: dict[str, Summand] = {}  # the term with the next higher weight
    read: dict[str, list[tuple[Summand, ast.expr]]] = {axis: [] for axis in axes}
    offsets = {term.coordinate: term.weight for term in split if not term.axis}
    for term in reversed([term for term in split if term.axis]):
        value: ast.expr = ast.Name(term.coordinate)
        if term.coordinate in offsets:
            value = _joined(value, ast.Sub(), formula.parse(offsets[term.coordinate]))
        weight, higher = formula.parse(term.weight), above.get(term.coordinate)
        if higher is not None and not term.size:
            value = _joined(value, ast.Mod(), formula.parse(higher.weight))
        value = _joined(value, ast.FloorDiv(), weight)
        if higher is not None and term.size:
            value = _joined(value, ast.Mod(), formula.parse(term.size))
        above[term.coordinate] = term
        read[term.axis].insert(0, (term, value))
    for axis, digits in read.items():
        total: ast.expr = ast.Constant(0)
        for term, value in sorted(digits, key=lambda digit: digit[0].step != "1"):  # the lowest digit first
            total = _joined(total, ast.Add(), _joined(formula.parse(term.step), ast.Mult(), value))
        for name in dict.fromkeys(name for term, _ in digits for name in term.added):
            total = _joined(total, ast.Sub(), ast.Name(name))
        back[axis] = ast.unparse(total)
    return back
