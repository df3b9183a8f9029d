"""A simulator's tensor maps: its answers are compared with ours, a map or place that differs is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.shared.box import tensor_maps_of
from ptxmma_proof.peers import tirx_boxes, tirx_program
from ptxmma_proof.peers.sources import MissingPeerError, Source

_PACKAGE = Source("TIRx-harness", Path("unpacked"), "1")


def test_maps_and_places_that_differ_are_found(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tirx_boxes, "_DRAWS", 1)
    ours = [case.answer(catalog) for case, _ in tirx_boxes._drawn(tensor_maps_of(catalog.database))]
    taken = [number for number, each in enumerate(ours) if not each.startswith("refuses")]
    assert len(ours) / 2 < len(taken) < len(ours)
    theirs = list(ours)
    theirs[taken[0]] = "refuses: 7 dimensions"
    theirs[taken[1]] = f"9999 0;{theirs[taken[1]].partition(';')[2]}"
    theirs[taken[2]] = "unknown"

    def answers(*_: object) -> Sequence[str]:
        return theirs

    monkeypatch.setattr(tirx_program, "answers", answers)
    found = tirx_boxes.run(catalog, {"TIRx-harness": _PACKAGE}, "2026-01-01")
    assert found.rows == {"TIRx-harness": len(ours) - 1}
    sides = {(each.theirs, each.ours) for each in found.differences}
    assert sides == {("refuses: # dimensions", "takes it"), ("9999 0", ours[taken[1]].partition(";")[0])}


def test_a_package_without_the_engine_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(MissingPeerError):
        tirx_boxes.run(catalog, {"TIRx-harness": _PACKAGE}, "2026-01-01")
