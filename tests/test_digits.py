"""Digits: formulas are read as them and derived from them, and a map goes there and back."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts.interop import from_cute
from ptxmma.generator.tensor_proof import uses
from ptxmma.model import formula
from ptxmma.model.bitmap import BitMap
from ptxmma.model.digit_map import DigitMap, LayoutMap
from ptxmma.model.digits import NotDigitsError, Summand, inverse, terms

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
    assert list(terms({"lane": text}, _AXES)) == [Summand("lane", *each) for each in digits]


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


#: Axes of any size.
_FREE = {"x": 1, "y": 1}


@st.composite
def _maps(draw: st.DrawFn, axes: Mapping[str, int] = _FREE, coordinates: Sequence[str] = ("lane", "column")) -> DigitMap:
    """Random axes of a size or more, cut into random digits, of which the highest may be ragged, with gaps between the digits."""
    return DigitMap.of(*draw(_terms(axes, coordinates)), coordinates, {})


@st.composite
def _terms(draw: st.DrawFn, axes: Mapping[str, int], coordinates: Sequence[str]) -> tuple[list[Summand], dict[str, int]]:
    """The terms of a random map, and its axes."""
    sizes = {axis: draw(st.lists(st.sampled_from((2, 3, 4, 6)), max_size=3)) for axis in axes}
    for axis, least in axes.items():
        while math.prod(sizes[axis]) < least:
            sizes[axis].append(draw(st.sampled_from((2, 3, 4, least))))
    digits = draw(st.permutations([(axis, math.prod(each[:at]), size) for axis, each in sizes.items() for at, size in enumerate(each)]))
    weights = {name: draw(st.sampled_from((1, 1, 2))) for name in coordinates}
    split = []
    for axis, step, size in digits:
        coordinate = draw(st.sampled_from(coordinates))
        split.append(Summand(coordinate, str(weights[coordinate]), axis, str(step), str(size)))
        weights[coordinate] *= size * draw(st.sampled_from((1, 1, 1, 2)))
    split += [Summand(name, str(draw(st.integers(1, 3))), "") for name in coordinates if draw(st.integers(0, 5)) == 5]
    below = {axis: math.prod(each[:-1]) for axis, each in sizes.items()}
    return split, {axis: draw(st.integers(max(math.prod(each) - below[axis] + 1, 1), math.prod(each))) for axis, each in sizes.items()}


def _points(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Every point of some axes, the first axis fastest."""
    grid = np.meshgrid(*map(np.arange, sizes.values()), indexing="ij")
    return {axis: values.reshape(-1, order="F") for axis, values in zip(sizes, grid, strict=True)}


def _applied(layout: LayoutMap, points: Mapping[str, Any]) -> dict[str, Any]:
    """The places of points, a list of each coordinate."""
    count = len(next(iter(points.values())))
    return {name: np.broadcast_to(numbers, count) for name, numbers in layout.apply(points).items()}


def _image(layout: LayoutMap, points: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """The place of each point."""
    return list(zip(*(numbers.tolist() for numbers in _applied(layout, points).values()), strict=True))


@given(_terms(_FREE, ("lane", "column")))
def test_a_map_goes_there_and_back(drawn: tuple[list[Summand], dict[str, int]]) -> None:
    made = DigitMap.of(*drawn, ("lane", "column"), {})
    points = _points(made.axes)
    places, count = set(_image(made, points)), math.prod(made.axes.values())
    assert len(places) == count
    reading = made.read(made.apply(points))
    assert np.all(reading.fits)
    assert not any(np.any(each) for each in reading.rest.values())
    for axis, values in points.items():
        assert np.array_equal(np.broadcast_to(reading.point[axis], count), values)
        back = formula.parse(inverse(drawn[0], made.axes)[axis])
        assert np.array_equal(np.broadcast_to(formula.evaluate(back, made.apply(points)), count), values)
    for at, (name, size) in enumerate(made.coordinates.items()):
        assert made.reach(name) == max(place[at] for place in places)
        step = max((digit.weight for digit in made.moving(name)), default=1)
        assert 0 <= size - made.reach(name) - 1 < step
        assert (size - made.origin.get(name, 0)) % step == 0
    # Every other place within reach has no point.
    for there in itertools.product(*(range(size + 1) for size in made.coordinates.values())):
        reading = made.read(dict(zip(made.coordinates, there, strict=True)))
        assert (bool(reading.fits) and not any(reading.rest.values())) == (there in places)


@given(_maps())
def test_the_inverse_is_a_map(made: DigitMap) -> None:
    try:
        back = made.inverse()
    except NotDigitsError:  # a ragged digit, whose size the next weight does not continue
        ends = {name: [digit.weight for digit in made.moving(name)] for name in made.coordinates}
        assert any(
            after % digit.weight or after // digit.weight % digit.size
            for name in ends
            for digit, after in zip(made.moving(name), ends[name][1:], strict=False)
        )
        return
    points = _points(made.axes)
    found = back.apply(made.apply(points))
    assert all(np.array_equal(np.broadcast_to(found[axis], len(values)), values) for axis, values in points.items())
    assert back.axes == made.coordinates
    assert back.inverse().difference(made) is None


def _is_digits(sizes: Mapping[str, int], points: Mapping[str, Any], image: Sequence[tuple[int, ...]]) -> bool:
    """Whether a function, of which all points are given, is a sum of digits of single axes, each of which moves one coordinate."""
    known = dict(zip(zip(*(values.tolist() for values in points.values()), strict=True), map(np.array, image), strict=True))
    origin = known[(0,) * len(sizes)]
    moved = {}
    for at, (axis, size) in enumerate(sizes.items()):
        moved[axis] = [known[tuple(number if other == at else 0 for other in range(len(sizes)))] - origin for number in range(size)]
        step, digits = 1, []
        while step < size:
            weight, count = moved[axis][step], 1
            if np.count_nonzero(weight) != 1:
                return False
            while step * count < size and np.array_equal(moved[axis][step * count], weight * count):
                count += 1
            digits.append((step, count, weight))
            step *= count
        for number in range(size):
            if not np.array_equal(
                moved[axis][number], sum((number // step % count * weight for step, count, weight in digits), 0 * origin)
            ):
                return False
    return all(
        np.array_equal(place, origin + sum(moved[axis][n] for axis, n in zip(sizes, point, strict=True))) for point, place in known.items()
    )


def _apart(layout: DigitMap) -> DigitMap:
    """The map with a coordinate for each digit."""
    digits = tuple(digit._replace(coordinate=str(at), weight=1) for at, digit in enumerate(layout.digits))
    return DigitMap(layout.axes, {digit.coordinate: digit.size for digit in digits} | {"none": 1}, digits)


@given(st.data(), _maps())
def test_maps_compose_as_functions_do(data: st.DataObject, inner: DigitMap) -> None:
    outer = data.draw(_maps(data.draw(st.sampled_from((inner.coordinates, dict.fromkeys(inner.coordinates, 1)))), ("row", "col")))
    points = _points(inner.axes)
    inside = all(inner.reach(name) < size for name, size in outer.axes.items())
    try:
        composed = inner.compose(outer)
    except NotDigitsError:
        assert not inside or not _is_digits(inner.axes, points, _image(_apart(outer.coalesce()), _applied(inner, points)))
        return
    assert inside
    assert composed.axes == inner.axes
    assert _image(composed, points) == _image(outer, _applied(inner, points))
    assert composed == composed.coalesce()


@given(_maps())
def test_a_map_and_its_inverse_compose_to_nothing(made: DigitMap) -> None:
    try:
        back = made.inverse()
    except NotDigitsError:
        return
    identity = made.compose(back)
    assert str(identity) == " ".join(f"{axis}:{size}:{int(size > 1)}@{axis}" for axis, size in made.axes.items()).replace(
        "0@x", "0"
    ).replace("0@y", "0")


@pytest.mark.parametrize(
    ("inner", "outer", "composed"),
    [
        ({"lane": "row"}, {"a": "lane % 4", "b": "lane // 4"}, "row:(4,3):(1@a,1@b)"),
        ({"lane": "row % 4 + 4 * (row // 4)"}, {"a": "lane % 6", "b": "lane // 6"}, "row:(6,2):(1@a,1@b)"),
        ({"lane": "2 * row"}, {"a": "lane % 4", "b": "lane // 4"}, "row:(2,6):(2@a,1@b)"),
        ({"lane": "row"}, {"a": "lane % 5", "b": "lane // 5"}, "row:(5,3):(1@a,1@b)"),
    ],
)
def test_digits_are_split_where_those_of_the_outer_map_end(inner: dict[str, str], outer: dict[str, str], composed: str) -> None:
    assert str(_written(inner, row=12).compose(_written(outer, lane=24))) == composed


@pytest.mark.parametrize(
    ("inner", "outer", "message"),
    [
        ({"lane": "2 * row"}, {"a": "lane % 3", "b": "lane // 3"}, "row moves lane 12 times by 2, and a digit of the outer map ends at 3"),
        ({"lane": "row + 1"}, {"a": "lane % 4", "b": "lane // 4"}, "its digits add up to 4 in a digit of 4 values from lane = 1 on"),
        ({"lane": "row + 24"}, {"a": "lane"}, "lane reaches from 24 to 35; the outer map takes 0..23"),
        ({"column": "row"}, {"a": "lane"}, "a map to column does not compose with one from lane"),
    ],
)
def test_why_maps_do_not_compose(inner: dict[str, str], outer: dict[str, str], message: str) -> None:
    with pytest.raises(NotDigitsError, match=re.escape(message)):
        _written(inner, row=12).compose(_written(outer, lane=24))


def _written(at: dict[str, str], **axes: int) -> DigitMap:
    """The map of formulas."""
    return DigitMap.of(list(terms(at, axes)), axes, tuple(at), {})


def test_nothing_composes_with_a_gap() -> None:
    gap = _written({"lane": "row % 4 + 8 * (row // 4)"}, row=16).inverse()
    assert str(gap) == "lane:(4,2,4):(1,0,4)"
    with pytest.raises(NotDigitsError, match="nothing lies at lane = 4"):
        _written({"lane": "i"}, i=16).compose(gap)


@given(st.data(), _maps())
def test_the_first_difference(data: st.DataObject, made: DigitMap) -> None:
    at = data.draw(st.integers(0, max(len(made.digits) - 1, 0)))
    weight = data.draw(st.integers(1, 3))
    other = msgspec.structs.replace(
        made, digits=(*made.digits[:at], *(each._replace(weight=each.weight * weight) for each in made.digits[at:]))
    )
    points = _points(made.axes)
    differ = [place for place, (ours, theirs) in enumerate(zip(_image(made, points), _image(other, points), strict=True)) if ours != theirs]
    first = {axis: int(values[differ[0]]) for axis, values in points.items()} if differ else None
    assert made.difference(other) == first


@given(_maps())
def test_maps_that_are_written_differently_are_the_same(made: DigitMap) -> None:
    whole = made.coalesce()
    for digit in whole.digits:  # each digit cut in two where its size allows
        if cut := next((size for size in range(2, digit.size) if digit.size % size == 0), None):
            pieces = (digit._replace(size=cut), digit._replace(step=digit.step * cut, size=digit.size // cut, weight=digit.weight * cut))
            at = whole.digits.index(digit)
            other = msgspec.structs.replace(whole, digits=(*whole.digits[:at], *pieces, *whole.digits[at + 1 :]))
            assert other != whole
            assert other.difference(made) is None
            assert other.coalesce() == whole


@given(_maps())
def test_the_bits_of_a_map(made: DigitMap) -> None:
    powers = not any(made.origin.values()) and all(size & size - 1 == 0 for size in made.axes.values())
    powers = powers and all(number & number - 1 == 0 for digit in made.digits for number in (digit.size, digit.weight))
    try:
        bits = BitMap.of(made)
    except NotDigitsError:
        assert not powers
        return
    assert powers
    points = _points(made.axes)
    assert _image(bits, points) == _image(made, points)
    assert bits.to_digits().difference(made) is None
    assert bits.difference(made) is None
    assert str(bits.coalesce()) == str(made.coalesce())
    found = bits.inverse().apply(bits.apply(points))
    assert all(np.array_equal(found[axis], values) for axis, values in points.items())


@given(_maps(coordinates=("byte",)))
def test_cute_reads_a_linear_map(made: DigitMap) -> None:
    cute = msgspec.structs.replace(from_cute(made.to_cute()), offset=made.origin.get("byte", 0))
    points = _points(made.axes)
    assert np.array_equal(cute(*points.values()), np.broadcast_to(made.apply(points)["byte"], math.prod(made.axes.values())))


@given(st.data(), _maps())
def test_a_map_without_a_coordinate_or_the_end_of_an_axis(data: st.DataObject, made: DigitMap) -> None:
    less = made.drop("lane")
    points = _points(made.axes)
    assert list(less.coordinates) == ["column"]
    assert np.array_equal(less.apply(points)["column"], made.apply(points)["column"])
    shorter = made.restrict(x=data.draw(st.integers(1, made.axes["x"])))
    points = _points(shorter.axes)
    assert _image(shorter, points) == _image(made, points)
    assert {name: shorter.reach(name) for name in shorter.coordinates} == {name: np.max(each) for name, each in made.apply(points).items()}


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
