"""Layouts as digits: the general map from the axes of what lies in a space to the coordinates of the space.

An axis is split into digits, as CuTe splits a mode: ``row = 64 * high + low``.  Each digit moves one coordinate by its weight, and so the
place of everything is a sum.  ``row:(64,2):(1@lane,1@cta)`` says that 64 rows follow each other by lanes, and that the next 64 are in the
other CTA.  Where all sizes are powers of two the map is a :class:`~ptxmma.model.bitmap.BitMap`.

The spec writes a layout as formulas, one for each coordinate: ``lane: "row % 64 + 64 * (col // (n // 2))"``.  :func:`terms` reads them as
digits whose numbers are formulas; :func:`inverse` turns them around; :class:`DigitMap` has the numbers of one use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from ptxmma.model import formula
from ptxmma.model.conditions import Entry
from ptxmma.model.fields import Formula, Identifier
from ptxmma.model.formula import FormulaError


class NotDigitsError(ValueError):
    """Digits that are no layout: some number has no digit, or two things may share a place.  ``coordinate`` is where."""

    def __init__(self, message: str, coordinate: str = "") -> None:
        super().__init__(message)
        self.coordinate = coordinate


# --- formulas ---------------------------------------------------------------------------------------------------------------


class Term(Entry, frozen=True):
    """One digit of an axis in the formula of a coordinate, ``32 * (row % 64 // 16)``.  Its numbers are formulas themselves."""

    coordinate: Identifier  # the coordinate that the digit moves: "lane"
    weight: Formula  # by how much: "32"
    axis: Annotated[str, Meta(description='the axis that is split; "" for a term without one, such as a selection alone')]  # "row"
    step: Formula = "1"  # the number of the axis is divided by it: "16"
    size: Annotated[str, Meta(description='the number of values; "" for the highest digit of an axis, which takes what is left')] = (
        ""  # "4"
    )
    added: tuple[Identifier, ...] = ()  # numbers that are added to that of the axis: ("scale_id",)


def terms(at: Mapping[str, str], axes: Mapping[str, Any]) -> Iterator[Term]:
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


def _term(coordinate: str, tree: ast.expr, axes: Mapping[str, Any]) -> Term:
    weight: ast.expr = ast.Constant(1)
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        if _axes(tree.left, axes) and _axes(tree.right, axes):
            raise FormulaError(f"{ast.unparse(tree)!r} multiplies axes; a layout is a sum of weight * digit")
        factor, tree = (tree.right, tree.left) if _axes(tree.left, axes) else (tree.left, tree.right)
        weight = _joined(weight, ast.Mult(), factor)
    if not _axes(tree, axes):
        return Term(coordinate, ast.unparse(_joined(weight, ast.Mult(), tree)), "")
    axis, step, size, added = _digit(tree, axes)
    return Term(coordinate, ast.unparse(weight), axis, ast.unparse(step), "" if size is None else ast.unparse(size), added)


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
    return found[0], ast.Constant(1), None, tuple(name for name in names if name not in axes)


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


def inverse(split: Sequence[Term], axes: Mapping[str, Any]) -> dict[str, str]:
    """The formulas back: each axis from the coordinates, by reading its digits.

    ``lane: "row % 64 + 64 * (col // (n // 2))"`` and ``column: "col % (n // 2)"`` give ``row: "lane % 64"`` and
    ``col: "column + n // 2 * (lane // 64)"``.  The terms of a coordinate must be in ascending order of their weights, each a multiple of
    the one before.  A place where nothing lies leads to some number.
    """
    back: dict[str, str] = {}
    above: dict[str, Term] = {}  # the term with the next higher weight
    read: dict[str, list[tuple[Term, ast.expr]]] = {axis: [] for axis in axes}
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


# --- numbers ----------------------------------------------------------------------------------------------------------------


class Digit(NamedTuple):
    """A digit of an axis: ``number // step % size`` moves a coordinate by ``weight`` each."""

    axis: str
    step: int
    size: int
    coordinate: str
    weight: int


class Reading(NamedTuple):
    """The inverse of a :class:`DigitMap` at a place.

    Attributes:
        point: the number on each axis.
        rest: by how much each coordinate lies beyond the place of that point: 0 at the place itself.
        fits: true where there is such a point.
    """

    point: dict[str, Any]
    rest: dict[str, Any]
    fits: Any


class DigitMap(msgspec.Struct, frozen=True, dict=True):
    """A layout with its numbers: everything on the axes has a place of its own.

    Attributes:
        axes: the size of each axis: ``{"row": 128, "col": 24}``.
        coordinates: the coordinates of the space: ``("cta", "lane", "column", "bit")``.
        digits: the digits of all axes that have more than one value; those of an axis from its lowest on.
        first: axes that begin at a number other than 0: ``{"block": 2}`` where the instruction descriptor selects the third factor.
        origin: coordinates that begin at a number other than 0.
    """

    axes: dict[str, int]
    coordinates: tuple[str, ...]
    digits: tuple[Digit, ...]
    first: dict[str, int] = {}
    origin: dict[str, int] = {}

    @classmethod
    def of(cls, split: Sequence[Term], axes: Mapping[str, int], coordinates: tuple[str, ...], numbers: Mapping[str, int]) -> DigitMap:
        """The map of the terms of formulas, with the numbers that they read.

        Raises:
            NotDigitsError: a number that is not there, a division by zero, digits that do not tell the numbers of an axis apart, or that
                overlap in a coordinate.
        """

        def value(text: str, coordinate: str) -> int:
            try:
                number = formula.evaluate(formula.parse(text), numbers)
            except FormulaError as error:
                raise NotDigitsError(str(error), coordinate) from None
            assert isinstance(number, int)
            return number

        digits: list[Digit] = []
        origin: dict[str, int] = {}
        first = {term.axis: sum(numbers[name] for name in term.added) for term in split if term.added}
        for term in split:
            if not term.axis:
                origin[term.coordinate] = origin.get(term.coordinate, 0) + value(term.weight, term.coordinate)
                continue
            step = value(term.step, term.coordinate)
            if step < 1:
                raise NotDigitsError(f"{term.axis} is divided by {term.step} = {step}", term.coordinate)
            left = -(-(axes[term.axis] + first.get(term.axis, 0)) // step)
            size = min(left, value(term.size, term.coordinate)) if term.size else left
            if size > 1:
                digits.append(Digit(term.axis, step, size, term.coordinate, value(term.weight, term.coordinate)))
        order = {axis: place for place, axis in enumerate(axes)}
        digits.sort(key=lambda digit: (order[digit.axis], digit.step))
        made = cls(dict(axes), coordinates, tuple(digits), first, origin)
        made._check()
        return made

    def _check(self) -> None:
        """Check that the digits of each axis continue each other, and that those of each coordinate do not overlap."""
        for axis, size in self.axes.items():
            counted = 1
            for digit in self.digits:
                if digit.axis == axis:
                    if digit.step != counted:
                        message = f"a digit of {axis} begins at {digit.step}, and those below it end at {counted}"
                        raise NotDigitsError(f"two places of the operand share one: {message}", digit.coordinate)
                    counted *= digit.size
            if counted < size + self.first.get(axis, 0):
                raise NotDigitsError(f"two places of the operand share one: its digits tell {counted} numbers of {axis} apart, not {size}")
        for coordinate in self.coordinates:
            reach = 1
            for digit in reversed(self._heaviest_first(coordinate)):
                if digit.weight < reach:
                    message = f"{digit.axis} moves {coordinate} by {digit.weight}, and the digits below it fill {reach}"
                    raise NotDigitsError(f"two places of the operand share one: {message}", coordinate)
                reach = digit.weight * (digit.size - 1) + reach

    def _heaviest_first(self, coordinate: str) -> list[Digit]:
        return sorted((digit for digit in self.digits if digit.coordinate == coordinate), key=lambda digit: -digit.weight)

    def apply(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The coordinates of a place on the axes: integers, or arrays that are wide enough."""
        place: dict[str, Any] = {name: self.origin.get(name, 0) for name in self.coordinates}
        for axis, step, size, coordinate, weight in self.digits:
            number = point[axis] + self.first.get(axis, 0)
            place[coordinate] = place[coordinate] + number // step % size * weight
        return place

    def read(self, place: Mapping[str, Any]) -> Reading:
        """The inverse: the digits read back from the coordinates of a place, integers or arrays."""
        point: dict[str, Any] = {axis: -self.first.get(axis, 0) for axis in self.axes}
        rest: dict[str, Any] = {}
        fits: Any = True
        for coordinate in self.coordinates:
            left = place[coordinate] - self.origin.get(coordinate, 0)
            for axis, step, size, _, weight in self._heaviest_first(coordinate):
                digit = left // weight
                fits = fits & (digit >= 0) & (digit < size)
                left = left - digit * weight
                point[axis] = point[axis] + digit * step
            rest[coordinate] = left
        for axis, size in self.axes.items():
            fits = fits & (point[axis] >= 0) & (point[axis] < size)
        return Reading(point, rest, fits)

    def reach(self, coordinate: str) -> int:
        """The largest number of a coordinate."""
        moved = sum((digit.size - 1) * digit.weight for digit in self.digits if digit.coordinate == coordinate)
        return self.origin.get(coordinate, 0) + moved

    def __str__(self) -> str:
        """The map as CuTe writes it, axis by axis: ``row:(64,2):(1@lane,1@cta)``."""
        return " ".join(f"{axis}:{_mode([digit for digit in self.digits if digit.axis == axis])}" for axis in self.axes)


def _mode(digits: Sequence[Digit]) -> str:
    if not digits:
        return "1:0"
    sizes, weights = [str(digit.size) for digit in digits], [f"{digit.weight}@{digit.coordinate}" for digit in digits]
    return f"{sizes[0]}:{weights[0]}" if len(digits) == 1 else f"({','.join(sizes)}):({','.join(weights)})"
