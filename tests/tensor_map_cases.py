"""Arguments of tensor maps, drawn at random: most are legal by themselves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.box_rules import Broken, IllegalBoxError

_TYPES = ("UINT8", "BFLOAT16", "FLOAT32", "UINT64")
_SWIZZLES, _INTERLEAVES, _FILLS = ("none", "32B", "64B", "128B"), ("none", "16B", "32B"), ("zero", "nan")


def drawn(draw: random.Random) -> dict[str, Any]:
    """The arguments of one with boxes."""

    def one(likely: float, legal: Sequence[Any], others: Sequence[Any]) -> Any:
        return draw.choice(legal if draw.random() < likely else others)

    rank = draw.choice([2, 2, 3, 5])
    return {
        "element": draw.choice(_TYPES),
        "shape": tuple(one(0.9, [64, 96, 4096], [4096, 1 << 32, 0]) for _ in range(rank)),
        "strides": tuple(one(0.9, [8192, 16384, 1 << 39], [8200, 8208, 1 << 40]) for _ in range(rank - 1)),
        "box": (one(0.7, [64], [8, 24, 60, 100]), *(one(0.9, [1, 8, 16], [0, 256, 257]) for _ in range(rank - 1))),
        "element_strides": tuple(one(0.95, [1, 1, 2, 8], [0, 9]) for _ in range(rank)),
        "swizzle": draw.choice(_SWIZZLES),
        "interleave": one(0.8, ["none"], _INTERLEAVES),
        "fill": draw.choice(_FILLS),
        "address": one(0.95, [0, 32, 64, 16], [8]),
    }


def of_pixels(draw: random.Random) -> dict[str, Any]:
    """The arguments of one of im2col."""
    case = drawn(draw)
    del case["box"]
    mode = draw.choice(["im2col", "im2col", "im2col::w", "im2col::w::128"])
    corners = min(max(len(case["shape"]) - 2, 0), 3 if mode == "im2col" else 1)
    return case | {
        "mode": mode,
        "lower": tuple(draw.choice([-128, -9, -1, 0, 1, 20]) for _ in range(corners)),
        "upper": tuple(draw.choice([-70, -9, -1, 0, 1, 128]) for _ in range(corners)),
        "channels": draw.choice([64, 64, 8, 12, 257]),
        "pixels": draw.choice([8, 64, 512, 1024, 1025]),
    }


def of_rows(draw: random.Random) -> dict[str, Any]:
    """The arguments of one of gather4: most are matrices, with boxes of one row."""
    case = drawn(draw)
    while len(case["shape"]) != 2 and draw.random() < 0.9:
        case = drawn(draw)
    return case | {"mode": "gather4", "box": (*case["box"][:1], *(draw.choice([1, 1, size]) for size in case["box"][1:]))}


def broken(case: dict[str, Any]) -> tuple[Broken, ...]:
    """The rules that the library finds broken."""
    try:
        BoxGeometry(**case)
    except IllegalBoxError as error:
        return error.broken
    return ()
