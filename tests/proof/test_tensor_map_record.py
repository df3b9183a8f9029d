"""Tensor maps: the verdicts of the driver, the images and the traps of an H200."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from ptxmma.matrices.shared.box import tensor_maps_of
from ptxmma.matrices.shared_memory import IllegalBoxError
from ptxmma_proof.silicon import tensor_map_chip, tensor_map_draws, tensor_maps
from ptxmma_proof.silicon.tensor_maps import Row, made

MAPS = tensor_maps_of(None)


@pytest.fixture(scope="module")
def seen() -> list[Row]:
    return tensor_maps.read()


def test_the_chip_agrees_with_the_rules_and_the_images(seen: list[Row]) -> None:
    assert list(tensor_map_chip.words(seen)) == []


def test_every_kind_of_copy_was_made(seen: list[Row]) -> None:
    copies = [row for row in seen if "runs" in row]
    kinds = {(row["copy"], "pixels" in row["map"], len(row["map"]["shape"]), row["map"]["interleave"]) for row in copies}
    modes = [(False, rank, 0) for rank in (1, 2)]
    modes += [(im2col, rank, unit) for im2col in (False, True) for rank in (3, 4, 5) for unit in range(3)]
    assert kinds == {(copy, *mode) for copy in ("load", "store") for mode in modes}
    followed = {each.value for each in MAPS.types if not each.targets and "TFLOAT32" not in each.name and "FTZ" not in each.name}
    assert {row["map"]["type"] for row in copies} == followed
    assert {row["map"]["swizzle"] for row in copies} == {each.value for each in MAPS.swizzles if not each.targets}
    assert len({row["destination"] for row in copies}) == 9
    assert len({row["map"]["address"] for row in copies}) > 3
    assert Counter("trap" in row for row in seen)[True] > 70


def test_every_rule_was_broken_by_itself(seen: list[Row]) -> None:
    """But for the rules about what Hopper lacks, the ones that the manual alone has, and a rank for which a call has no place."""
    alone: set[int] = set()
    for row in seen:
        try:
            box = made(row)
            if "trap" in row:
                list(box.lines(row["at"], row.get("offsets", ()), store=row["copy"] == "store"))
                box.locate(row["destination"])
        except IllegalBoxError as error:
            rules = {MAPS.rules.index(each.rule) for each in error.broken}
            alone |= rules if len(rules) == 1 else set()
        except (KeyError, ValueError):
            assert not row["accepted"], row
    measured = [
        rule for rule in MAPS.rules if "padded" not in (rule.argument, *rule.when.split()) and not rule.source.startswith("PTX ISA")
    ]
    unseen = [(rule.argument, rule.need) for rule in measured if MAPS.rules.index(rule) not in alone]
    assert unseen == [("shape", "1 <= rank <= 5"), ("interleave", "unit == 0"), ("swizzle", "2 <= swizzle <= 4")]


def test_a_faulty_answer_is_found(seen: list[Row]) -> None:
    memory = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    for copy in ("load", "store"):
        row = next(row for row in seen if row.get("copy") == copy and len(row.get("runs", ())) > 2)
        first, *others = row["runs"]
        for wrong in (
            row | {"accepted": False},
            row | {"runs": [[first[0], first[1] + 16, first[2]], *others]},
            row | {"runs": others},
            row | {"bytes": row["bytes"] + 16},
            row | {"miscounted": -2},
        ):
            assert tensor_maps.contradiction(wrong, memory), wrong
    trap = next(row for row in seen if "trap" in row and "box" in row["map"])
    assert tensor_maps.contradiction(trap | {"at": [0] * len(trap["at"]), "destination": 0}, memory)


def test_rows_are_drawn_anew_and_read_back() -> None:
    rows = tensor_map_draws.draw(msgspec.structs.replace(MAPS, types=MAPS.types[:2], swizzles=MAPS.swizzles[:2]), seed=1)
    assert {row.get("copy") for row in rows} == {None, "load", "store"}
    some = [row for row in rows if "copy" in row][:3]
    assert len(tensor_map_chip.cases(some)) == 3 * 45 * 8
    answered = list(tensor_map_chip.answers(some, "1\n0 715\n0 -1 128 64 16 144 -1 16"))
    assert [row["accepted"] for row in answered] == [False, True, True]
    assert answered[1]["trap"] == "illegal instruction"
    assert (answered[2]["miscounted"], answered[2]["runs"]) == (-1, [[128, 64, 16], [144, -1, 16]])
