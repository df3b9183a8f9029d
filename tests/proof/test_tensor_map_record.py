"""Tensor maps: the verdicts of the driver, the images and the traps of an H200 and an H100."""

from __future__ import annotations

import numpy as np
import pytest

from ptxmma.matrices.shared.box import BoxGeometry, tensor_maps_of
from ptxmma.matrices.shared_memory import IllegalBoxError
from ptxmma_proof.silicon import tensor_maps
from ptxmma_proof.silicon.tensor_maps import Row, images, made

MAPS = tensor_maps_of(None)
#: The rules that the driver does not apply, though its header has them, by argument and need.
AGAINST_THE_HEADER = {(rule.argument, rule.need) for rule in MAPS.rules if rule.driver == "laxer"}


@pytest.fixture(scope="module")
def seen() -> list[Row]:
    return tensor_maps.read()


def later(row: Row) -> bool:
    """Tell whether a tensor map needs a chip after Hopper."""
    types = {entry.value for entry in MAPS.types if entry.targets}
    swizzles = {entry.value for entry in MAPS.swizzles if entry.targets}
    return row["map"]["type"] in types or row["map"]["swizzle"] in swizzles


def test_the_driver_and_the_rules_agree(seen: list[Row]) -> None:
    alone = set()
    for row in seen:
        broken = set()
        try:
            made(row)
        except IllegalBoxError as error:
            broken = {(each.rule.argument, each.rule.need) for each in error.broken}
        except (KeyError, ValueError):
            assert not row["accepted"], row
            continue
        if row["accepted"]:
            assert broken <= AGAINST_THE_HEADER, row
        elif not later(row):
            assert broken, row
            alone |= broken if len(broken) == 1 else set()
    # Each rule was broken by itself, but for the rules of types that Hopper lacks and what the driver tolerates.
    about_maps = {
        (rule.argument, rule.need) for rule in MAPS.rules if rule.argument not in ("at", "destination") and "padded" not in rule.when
    }
    unseen = about_maps - alone - AGAINST_THE_HEADER
    assert {argument for argument, _ in unseen} <= {"shape", "interleave"}
    assert {need for _, need in unseen} == {"shape % 2 == 0", "unit == 0"}


def test_images_are_those_of_the_chip(seen: list[Row]) -> None:
    memory = np.random.default_rng(0).integers(0, 256, 8 << 20, np.uint8)
    copies = [row for row in seen if "runs" in row]
    assert len(copies) > 1500
    for row in copies:
        ours, theirs = images(row, memory)
        assert (ours == theirs).all(), row
        assert row["bytes"] == made(row).transaction_bytes


def test_copies_that_trap_are_refused(seen: list[Row]) -> None:
    traps = [row for row in seen if "trap" in row]
    assert len(traps) > 90
    for row in traps:
        box = made(row)
        with pytest.raises(IllegalBoxError, match="traps"):
            copied(box, row)


def copied(box: BoxGeometry, row: Row) -> None:
    """Check the arguments of a copy."""
    list(box.lines(row["at"], row.get("offsets", ())))
    box.locate(row["destination"])
