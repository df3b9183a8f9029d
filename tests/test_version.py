"""Versions are strings with an order of their own."""

from __future__ import annotations

import itertools
import json

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.model import Version

_ASCENDING = ["", "7.0", "8.0", "8.7", "8.9", "8.10", "9.1", "10.0"]


def test_numbers_order_versions() -> None:
    for one, other in itertools.product(range(len(_ASCENDING)), repeat=2):
        left, right = _ASCENDING[one], _ASCENDING[other]
        for a, b in ((Version(left), Version(right)), (Version(left), right), (left, Version(right))):
            assert (a < b, a <= b, a > b, a >= b, a == b) == (one < other, one <= other, one > other, one >= other, one == other), (a, b)
    assert sorted(sorted(_ASCENDING), key=Version) == _ASCENDING
    assert max(map(Version, _ASCENDING)) == "10.0"


def test_a_version_is_its_text() -> None:
    version = Version("8.10")
    assert version.numbers == (8, 10)
    assert "8.10" in {version}
    assert f"{version} {version!r} {json.dumps(version)}" == "8.10 '8.10' \"8.10\""


def test_texts_that_are_not_versions_have_no_order() -> None:
    with pytest.raises(ValueError, match="new"):
        assert Version("8.0") < "new"


def test_users_compare_first_versions(catalog: Catalog) -> None:
    accepted = catalog.find("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").accepted_by()
    assert accepted["sm_90a"] == "8.0"
    assert "7.8" < accepted["sm_90a"] < "10.0"
