"""Bit maps: found from functions, proven, inverted, refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.layouts.expressions import gather
from ptxmma.model.bitmap import BitMap, NotLinearError, Points, at_bits, domain, linear


def _map(row: str, col: str, *, i: int = 2, lane: int = 3, rows: int = 3, cols: int = 2) -> BitMap:
    def function(points: Points) -> dict[str, list[int]]:
        pairs = list(zip(points["i"], points["lane"], strict=True))
        return {name: [eval(text, {"i": i, "lane": lane}) for i, lane in pairs] for name, text in (("row", row), ("col", col))}

    return linear({"i": i, "lane": lane}, {"row": rows, "col": cols}, function)


def test_a_permutation_of_bits() -> None:
    bitmap = _map("lane", "i")
    assert bitmap.bits == {"i": (("col", 0), ("col", 1)), "lane": (("row", 0), ("row", 1), ("row", 2))}
    assert bitmap.apply({"i": 2, "lane": 5}) == {"row": 5, "col": 2}
    assert bitmap.inverse().apply({"row": 5, "col": 2}) == {"i": 2, "lane": 5}


@pytest.mark.parametrize(
    ("row", "col", "message"),
    [
        ("lane + 1", "i", "row = 8 at i=0, lane=7 is outside 0..7"),
        ("lane", "i // 2", "row=0, col=0 is owned twice: by i=0, lane=0 and by i=1, lane=0"),
        ("(lane + 1) % 8", "i", "not a permutation of bits"),
        ("lane ^ 1", "i", "not a permutation of bits"),
        ("lane ^ (lane >> 1)", "i", "not a permutation of bits"),
        ("lane - 1", "i", "row = -1 at i=0, lane=0 is outside 0..7"),
    ],
)
def test_what_is_refused(row: str, col: str, message: str) -> None:
    with pytest.raises(NotLinearError) as caught:
        _map(row, col)
    assert message in str(caught.value)


def test_an_incomplete_cover_is_refused() -> None:
    with pytest.raises(NotLinearError, match="32 places of the matrix are owned by nobody"):
        _map("lane", "i", cols=3)


@given(st.permutations([("row", 0), ("row", 1), ("row", 2), ("col", 0), ("col", 1), ("col", 2)]), st.integers(1, 5))
def test_expressions_say_what_the_map_says(targets: list[tuple[str, int]], split: int) -> None:
    bitmap = BitMap({"i": split, "lane": 6 - split}, {"row": 3, "col": 3}, {"i": tuple(targets[:split]), "lane": tuple(targets[split:])})
    points = domain(bitmap.inputs)
    image = bitmap.evaluate(points)
    back = bitmap.inverse().evaluate(image)
    assert back == points
    for output in bitmap.outputs:
        text = gather(bitmap, output)
        assert [eval(text, {"i": i, "lane": lane}) for i, lane in zip(points["i"], points["lane"], strict=True)] == image[output]


@given(st.permutations([("row", 0), ("row", 1), ("row", 2), ("col", 0), ("col", 1), ("col", 2)]), st.integers(1, 5))
def test_a_map_is_read_off_its_single_bits(targets: list[tuple[str, int]], split: int) -> None:
    bitmap = BitMap({"i": split, "lane": 6 - split}, {"row": 3, "col": 3}, {"i": tuple(targets[:split]), "lane": tuple(targets[split:])})
    assert at_bits(bitmap.inputs, bitmap.outputs, bitmap.evaluate) == bitmap
    for step in (1, -1, 3):
        assert at_bits(bitmap.inputs, bitmap.outputs, lambda points: _moved(bitmap.evaluate(points), step)) is None  # noqa: B023  # called here


def _moved(image: dict[str, list[int]], step: int) -> dict[str, list[int]]:
    return image | {"row": [row + step for row in image["row"]]}


def test_every_layout_covers_its_matrix_exactly_once(catalog: Catalog) -> None:
    """Counted from the maps alone; the derivation proves the same for the formulas."""
    for layout in catalog.database.layouts:
        points = domain(layout.map.inputs)
        image = layout.map.evaluate(points)
        places = set(zip(*image.values(), strict=True))
        everything = set(itertools.product(*(range(1 << width) for width in layout.map.outputs.values())))
        assert places == everything, layout.name
