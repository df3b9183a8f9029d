"""Tensor maps and copies to give to a chip, drawn from the spec: legal copies of every kind, traps, and maps near the rules' limits."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.model import Interleave, TensorMaps, TensorMapSwizzle, TensorMapType
from ptxmma_proof.silicon.tensor_maps import Row, made

#: Types that round or flush the elements that they load, so that nothing says where a byte came from.
_CONVERTING = ("TFLOAT32", "FTZ")
#: Bytes of dimension 0 of a box.
_INNER = (16, 32, 48, 64, 80, 96, 112, 128, 160, 256)
#: Copies of each type, swizzle, interleave, rank and mode.
_DRAWS = 2
#: Values of each argument near the limits of its rules.
_NEAR: dict[str, tuple[int, ...]] = {
    "type": tuple(range(17)),
    "swizzle": tuple(range(8)),
    "interleave": tuple(range(4)),
    "fill": (0, 1, 2),
    "address": (0, 1, 8, 16, 32, 48, 64),
    "shape": (0, 1, 2, 3, 64, 100, 128, 1 << 32, (1 << 32) + 1),
    "strides": (0, 8, 16, 24, 32, 48, 64, 1024, (1 << 40) - 32, (1 << 40) - 16, 1 << 40),
    "box": (0, 1, 2, 3, 7, 8, 16, 24, 32, 48, 64, 100, 128, 255, 256, 257),
    "element_strides": (0, 1, 2, 7, 8, 9),
    "lower": (-32769, -32768, -129, -128, -17, -16, -1, 0, 1, 15, 16, 127, 128, 32767, 32768),
    "upper": (-32769, -32768, -129, -128, -17, -16, -9, -8, -1, 0, 1, 15, 16, 127, 128, 32767, 32768),
    "channels": (0, 1, 3, 8, 16, 24, 32, 64, 128, 255, 256, 257),
    "pixels": (0, 1, 3, 16, 256, 1023, 1024, 1025),
}  # fmt: skip
#: Tensor maps of which one or two arguments are changed, over 16-bit elements.
_BASES: tuple[dict[str, Any], ...] = (
    {"shape": [64], "box": [64]},
    {"shape": [64, 16, 4], "box": [32, 8, 2], "swizzle": 3},
    {"shape": [256, 256, 16], "box": [64, 256, 1]},
    {"shape": [64, 8, 8, 4, 4], "box": [8, 2, 2, 2, 1], "swizzle": 1},
    {"shape": [8, 8, 4, 4], "box": [8, 2, 1, 1], "interleave": 1, "swizzle": 1},
    {"shape": [8, 8, 4, 4], "box": [8, 2, 1, 1], "interleave": 2, "swizzle": 1},
    {"shape": [128, 16, 4], "box": [128, 8, 2], "type": 14},
    {"shape": [64, 9], "lower": [], "upper": [], "channels": 32, "pixels": 16},
    {"shape": [64, 9, 4], "lower": [-1], "upper": [-1], "channels": 32, "pixels": 16, "swizzle": 2},
    {"shape": [256, 9, 9, 4], "lower": [-1, -1], "upper": [0, 0], "channels": 256, "pixels": 64},
    {"shape": [64, 9, 9, 5, 4], "lower": [0, 0, 0], "upper": [-2, -2, -2], "channels": 64, "pixels": 16, "swizzle": 3},
    {"shape": [9, 9, 8, 4], "lower": [-1, 0], "upper": [0, 0], "channels": 8, "pixels": 16, "interleave": 1},
    {"shape": [9, 9, 8, 4], "lower": [-1, 0], "upper": [0, 0], "channels": 16, "pixels": 16, "interleave": 2, "swizzle": 1},
)  # fmt: skip


def draw(maps: TensorMaps, seed: int = 0) -> list[Row]:
    """Return rows without the chip's answers, each once."""
    source = random.Random(seed)
    rows = [*_copies(source, maps), *_traps(source, maps), *_verdicts(source)]
    return list({str(row): row for row in rows}.values())


# --- copies -----------------------------------------------------------------------------------------------------------------------


def _copies(source: random.Random, maps: TensorMaps) -> Iterator[Row]:
    """Loads and stores of each type, swizzle and rank, and with each interleave."""
    types = [each for each in maps.types if not each.targets and not any(name in each.name for name in _CONVERTING)]
    swizzles = [each for each in maps.swizzles if not each.targets]
    for kind, swizzle, interleave, _ in itertools.product(types, swizzles, maps.interleaves, range(_DRAWS)):
        for rank, im2col in itertools.product(range(1, 6), (False, True)):
            if rank < 3 and (im2col or interleave.unit):
                continue
            for copy in ("load", "store"):
                if row := _legal(source, kind, swizzle, interleave, rank, im2col, copy):
                    yield row


def _legal(
    source: random.Random,
    kind: TensorMapType,
    swizzle: TensorMapSwizzle,
    interleave: Interleave,
    rank: int,
    im2col: bool,
    copy: str = "load",
    tries: int = 40,
) -> Row | None:
    """Return a copy that the rules allow; None where several draws have none."""
    for _ in range(tries):
        row = _drawn(source, kind, swizzle, interleave, rank, im2col) | {"copy": copy}
        if copy == "store":
            row |= {"at": [max(place, 0) for place in row["at"]]} | ({"offsets": [0] * (rank - 2)} if im2col else {})
        try:
            box = made(row)
            list(box.lines(row["at"], row.get("offsets", ()), store=copy == "store"))
        except ValueError:
            continue
        return row
    return None


def _drawn(source: random.Random, kind: TensorMapType, swizzle: TensorMapSwizzle, interleave: Interleave, rank: int, im2col: bool) -> Row:
    """Return a copy that is legal more often than not."""
    size, unit = kind.bits // 8, interleave.unit
    inner, extents = source.choice(_INNER), range(rank - 1)
    width = inner // size
    shape = [source.randrange(2, 8) if unit else source.randrange(1, 2 * width + 4), *(source.randrange(1, 7 - rank // 2) for _ in extents)]
    grain = max(unit, 16)
    stride, strides = -(-shape[0] * (unit or size) // grain) * grain + grain * source.randrange(3), []
    for extent in shape[1:]:
        strides.append(stride)
        stride *= extent
    numbers: dict[str, Any] = {"type": kind.value, "shape": shape, "strides": strides}
    numbers["element_strides"] = [source.choice((1, 1, 2, 3)) for _ in shape]
    numbers |= {"swizzle": swizzle.value, "interleave": interleave.value, "address": 2 * grain * source.randrange(4)}
    numbers["fill"] = source.randrange(2) if kind.float else 0
    place = source.randrange(-2, 4) if unit else 16 // size * source.randrange(-2, 2 * width * size // 16 + 1)
    row: Row = {"map": numbers, "at": [place, *(source.randrange(-3, extent + 2) for extent in shape[1:])]}
    row["destination"] = 128 * source.randrange(9)
    if not im2col:
        numbers["box"] = [width, *(source.randrange(1, 5) for _ in extents)]
        return row
    corners, first = range(rank - 2), 0 if unit else 1
    numbers["lower"] = [source.choice((-2, -1, 0, 0, 1)) for _ in corners]
    numbers["upper"] = [source.choice((-2, -1, 0, 0, 1)) for _ in corners]
    numbers |= {"channels": width, "pixels": source.randrange(1, 20)}
    for dim in corners:
        end = max(numbers["lower"][dim] + 1, shape[first + dim] + numbers["upper"][dim])
        row["at"][first + dim] = source.randrange(numbers["lower"][dim], end)
    if unit:
        row["at"][-2] = source.randrange(shape[-2])
    return row | {"offsets": [source.randrange(3) for _ in corners]}


def _traps(source: random.Random, maps: TensorMaps) -> Iterator[Row]:
    """Copies that break one rule."""
    types = [each for each in maps.types if not each.targets and each.bits <= 64]
    plain, *swizzled = (each for each in maps.swizzles if not each.targets)
    dense, *_ = maps.interleaves
    for kind in types[::3]:
        for step in (1, 2, 8 * 8 // kind.bits):
            row = _legal(source, kind, plain, dense, 2, im2col=False)
            if row and step * kind.bits % 128:
                yield row | {"at": [row["at"][0] + step, *row["at"][1:]]}
    for bytes_ in (16, 32, 64, 192):
        for swizzle in (plain, swizzled[-1]):
            if row := _legal(source, types[1], swizzle, dense, 2, im2col=False):
                yield row | {"destination": bytes_}
    for rank, side in itertools.product((3, 4, 5), (-1, 1)):
        if row := _legal(source, types[1], plain, dense, rank, im2col=True):
            numbers, at = row["map"], list(row["at"])
            at[1] = numbers["lower"][0] - 1 if side < 0 else numbers["shape"][1] + numbers["upper"][0]
            yield row | {"at": at}
    for rank, im2col in itertools.product((1, 2, 3, 5), (False, True)):
        for dim in range(rank if rank > 2 or not im2col else 0):
            if row := _legal(source, types[1], plain, dense, rank, im2col, "store"):
                yield row | {"at": [place - (place + 8) * (dim == place_of) for place_of, place in enumerate(row["at"])]}
    for name, value in (("lower", -1), ("upper", 1)):
        for rank in (3, 4, 5):
            if row := _legal(source, types[1], plain, dense, rank, True, "store"):
                yield row | {"map": row["map"] | {name: [value, *row["map"][name][1:]]}}


# --- verdicts ---------------------------------------------------------------------------------------------------------------------


def _verdicts(source: random.Random, pairs: int = 150) -> Iterator[Row]:
    """Tensor maps of which one argument is at a limit of its rules, or two."""
    for base in _BASES:
        whole = _whole(base)
        changes = [(name, index, value) for name, index in _places(whole) for value in _NEAR[name]]
        for change in changes:
            yield {"map": _changed(whole, change)}
        for _ in range(pairs):
            yield {"map": _changed(_changed(whole, source.choice(changes)), source.choice(changes))}


def _whole(base: dict[str, Any]) -> dict[str, Any]:
    """A base with all arguments of its mode."""
    numbers = {"type": 6, "swizzle": 0, "interleave": 0, "fill": 0, "address": 0, **base}
    strides = list(BoxGeometry("UINT8", [max(2 * numbers["shape"][0], 32), *numbers["shape"][1:]], [16, *numbers["shape"][1:]]).strides)
    scale = 16 if numbers["interleave"] else 1
    return {**numbers, "strides": [scale * stride for stride in strides], "element_strides": [1] * len(numbers["shape"])}


def _places(numbers: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """The arguments, and each entry of the ones that are lists."""
    for name, value in numbers.items():
        if isinstance(value, list):
            yield from ((name, index) for index in range(len(value)))
        else:
            yield name, None


def _changed(numbers: dict[str, Any], change: tuple[str, int | None, int]) -> dict[str, Any]:
    name, index, value = change
    if index is None:
        return {**numbers, name: value}
    return {**numbers, name: [value if place == index else old for place, old in enumerate(numbers[name])]}
