"""Digits: formulas are read as them and derived from them, and a map goes there and back."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.tensor_proof import uses
from ptxmma.model import COORDINATES, formula
from ptxmma.model.digits import DigitMap, NotDigitsError, Term, inverse, terms

_AXES = {"row": 128, "col": 24}


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("row", [("1", "row", "1", "", ())]),
        ("row % 16 + 32 * (row // 16)", [("1", "row", "1", "16", ()), ("32", "row", "16", "", ())]),
        ("row % 64 // 16 * 32", [("32", "row", "16", "4", ())]),
        ("2 * 4 * (col % n) * bits", [("bits * (2 * 4)", "col", "1", "n", ())]),
        ("(col + scale_id) % 4", [("1", "col", "1", "4", ("scale_id",))]),
        ("8 * part + row // (n // 2)", [("8 * part", "", "1", "", ()), ("1", "row", "n // 2", "", ())]),
    ],
)
def test_formulas_are_read_as_digits(text: str, digits: list[tuple[Any, ...]]) -> None:
    assert list(terms({"lane": text}, _AXES)) == [Term("lane", *each) for each in digits]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row * col", "'row * col' multiplies axes"),
        ("row ^ 1", "'row ^ 1' is not a digit of one axis; write weight * (axis // step % size), and a sum of such terms"),
        ("(row + col) // 8", "'row + col' is not a digit of one axis"),
        ("n // row", "'n // row' is not a digit of one axis"),
        ("row +", "syntax error in formula"),
    ],
)
def test_a_formula_that_is_no_sum_of_digits_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotDigitsError) as raised:
        list(terms({"lane": "row", "column": text}, _AXES))
    assert message in str(raised.value)
    assert raised.value.coordinate == "column"


def _random_map(seed: int) -> tuple[DigitMap, list[Term]]:
    """A map of random axes, cut into random digits, and the terms that say it."""
    source = random.Random(seed)
    sizes = {axis: [source.choice((2, 3, 4, 6, 8)) for _ in range(source.randint(1, 3))] for axis in ("x", "y")}
    digits = [(axis, math.prod(each[:index]), size) for axis, each in sizes.items() for index, size in enumerate(each)]
    source.shuffle(digits)
    weights = {"lane": 1, "column": 1}
    split = []
    for axis, step, size in digits:
        coordinate = source.choice(tuple(weights))
        split.append(Term(coordinate, str(weights[coordinate]), axis, str(step), str(size)))
        weights[coordinate] *= size * source.choice((1, 1, 2))
    axes = {axis: math.prod(each) for axis, each in sizes.items()}
    return DigitMap.of(split, axes, ("lane", "column"), {}), split


@pytest.mark.parametrize("seed", range(40))
def test_a_map_goes_there_and_back(seed: int) -> None:
    made, split = _random_map(seed)
    x, y = (each.reshape(-1) for each in np.indices((made.axes["x"], made.axes["y"])))
    place = made.apply({"x": x, "y": y})
    places = set(zip(*(np.broadcast_to(place[name], x.shape).tolist() for name in made.coordinates), strict=True))
    assert len(places) == x.size
    point, rest, fits = made.read(place)
    assert np.array_equal(point["x"], x)
    assert np.array_equal(point["y"], y)
    assert np.all(fits)
    assert not any(np.any(each) for each in rest.values())
    for name in made.coordinates:
        assert made.reach(name) == np.max(place[name])
    for axis, text in inverse(split, made.axes).items():
        assert np.array_equal(np.broadcast_to(formula.evaluate(formula.parse(text), place), x.shape), {"x": x, "y": y}[axis])
    # Every other place within reach has no point.
    for there in itertools.product(*(range(made.reach(name) + 2) for name in made.coordinates)):
        reading = made.read(dict(zip(made.coordinates, there, strict=True)))
        assert (bool(reading.fits) and not any(reading.rest.values())) == (there in places)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"lane": "row", "column": "col % 8"}, "its digits tell 8 numbers of col apart, not 24"),
        ({"lane": "row", "column": "col // 2"}, "a digit of col begins at 2, and those below it end at 1"),
        ({"lane": "row + 64 * col"}, "col moves lane by 64, and the digits below it fill 128"),
        ({"lane": "row", "column": "col // zero"}, "col is divided by zero = 0"),
        ({"lane": "row", "column": "missing * col"}, "unknown name 'missing'"),
    ],
)
def test_digits_that_are_no_layout_are_refused(at: dict[str, str], message: str) -> None:
    with pytest.raises(NotDigitsError, match=message):
        DigitMap.of(list(terms(at, _AXES)), _AXES, ("lane", "column"), {"zero": 0})


def test_a_map_is_written_as_in_cute(catalog: Catalog) -> None:
    written = {placed.layout.name: str(placed.digits({})) for placed in uses(catalog.database.spec) if not placed.selections}
    assert written["layout_d"] == "row:128:1@lane col:256:1@column"
    assert written["layout_c"] == "row:(16,4,2):(1@lane,32@lane,1@cta) col:256:1@column"
    assert set(COORDINATES) >= {part.split("@")[1].rstrip(",)").split(",")[0] for part in written["layout_c"].split() if "@" in part}
