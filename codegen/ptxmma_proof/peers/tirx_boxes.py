"""Compares tensor maps and the images of their copies with those that TIRx-harness simulates."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.matrices.shared.box import BoxGeometry, spans, tensor_maps_of
from ptxmma.matrices.shared.box_rules import IllegalBoxError
from ptxmma.model import TensorMaps, TensorMapSwizzle, TensorMapType
from ptxmma_proof.peers import sources, tirx_program
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.sources import Source

_READ = {
    "runtime/tensor_map.rs": (
        *(f"const MAX_{name}:" for name in ("GLOBAL_DIMENSION", "GLOBAL_STRIDE", "BOX_DIMENSION", "ELEMENT_STRIDE")),
        *("pub struct RuntimeTensorMap ", "struct TensorMapIm2col ", "pub(crate) enum Im2colMode", "enum SwizzleAtomicity"),
        *("pub enum Fp4SharedLayout", "pub enum TensorMapFillMode", "pub enum TensorMapElementType", "struct TensorMapGeometry"),
        *("impl SwizzleAtomicity", "impl TensorMapElementType", "impl fmt::Display for TensorMapElementType"),
        *("fn tensor_map_geometry_from_metadata", "fn tensor_map_geometry(", "fn tensor_map_outer_coordinates"),
        *("fn tensor_map_global_coordinates(", "fn tensor_map_global_coordinates_into", "fn tensor_map_shared_byte_offset("),
        "fn tensor_map_shared_byte_offset_from_layout",
    )
}
_METHODS = {
    "RuntimeTensorMap": (
        *("fn new_with_layout(", "fn im2col_origins(", "fn transfer_element_bits(", "fn validate_swizzle_direction("),
        *("fn validate_u6_origin(", "pub(crate) const fn rank("),
    )
}
_PROGRAM = Path(__file__).with_suffix(".rs")
_MODES = ("tiled", "im2col", "im2col::w", "im2col::w::128", "gather4")
#: The codes of types in the simulator's maps, by the driver's numbers.
_CODES = {0: 3, 1: 7, 2: 11, 3: 10, 4: 16, 5: 15, 6: 8, 7: 12, 8: 14, 9: 9, 10: 18, 11: 13, 12: 19, 13: 0, 14: 0, 15: 20}
_PADDING = {13: 1, 14: 2}
#: Atoms of the swizzles of sm_100, by the driver's numbers.
_ATOMS = {4: 1, 5: 2, 6: 3}
#: Maps of each mode, type and swizzle.
_DRAWS = 5
#: The beginning of the answer about a map or a load that is refused.
_REFUSED = "refuses: "
#: Arguments with values near the limits of their rules.
_CHANGES: tuple[tuple[str, int], ...] = (
    *(("shape", value) for value in (0, 1, 100, 1 << 32, (1 << 32) + 1)),
    *(("strides", value) for value in (8, 16, 48, (1 << 40) - 32, 1 << 40)),
    *(("box", value) for value in (0, 7, 8, 24, 128, 256, 257)),
    *(("element_strides", value) for value in (0, 8, 9)),
    *(("lower", value) for value in (-129, -128, -17, -16, 15, 16, 127)),
    *(("upper", value) for value in (-129, -9, 15, 16, 127, 128)),
    *(("channels", value) for value in (0, 12, 128, 256, 257)),
    *(("pixels", value) for value in (0, 1024, 1025)),
    *(("address", value) for value in (8, 16, 48)),
    *(("halo", value) for value in (31, 32, 511, 512)),
)


class _Case(NamedTuple):
    """A tensor map and a load with it: arguments of :class:`BoxGeometry`, and of its lines."""

    arguments: dict[str, Any]
    at: tuple[int, ...]
    offsets: tuple[int, ...]
    destination: int

    def question(self, kind: TensorMapType, swizzle: TensorMapSwizzle, span: int, unit: int) -> str:
        """The line of input of the simulator's program."""
        own = self.arguments
        numbers = (
            *(_MODES.index(own["mode"]), _CODES[kind.value], _PADDING.get(kind.value, 0), span, _ATOMS.get(swizzle.value, 0)),
            *(int(own["fill"] == "nan"), unit, own["address"], self.destination),
        )
        box = own.get("box") or (own["channels"], own.get("pixels", 128))
        offsets = (own["halo"], *self.offsets) if "::w" in own["mode"] else self.offsets
        lists = (own["shape"], own["strides"], box, own["element_strides"], own.get("lower", ()), own.get("upper", ()), self.at, offsets)
        return "|".join(" ".join(map(str, each)) for each in (numbers, *lists))

    def answer(self, catalog: Catalog) -> str:
        """The same of ours: the places of units of 16 padded elements, of elements, of bytes of 2 or of slices."""
        try:
            box = BoxGeometry(**self.arguments, database=catalog.database)
            rows = list(box.lines(self.at, self.offsets))
            axis = "slice" if box.interleave != "none" else box.axes[0]
            step = 1 if axis == "slice" else 16 if box.padded else 2 if "16U4" in box.data_type else 1
            places = []
            for number, row in enumerate(rows):
                point = dict(zip(box.axes[len(box.axes) - len(box.counts) :], _digits(number, box.counts), strict=True))
                inner = next(iter(point))
                for along in range(0, box.counts[0], step):
                    address, _ = box.locate(self.destination, **{**point, inner: along, **({axis: 0} if axis == "slice" else {})})
                    places.append(f"{address} {row[0] + along * (box.element_strides[0] if axis == 'slice' else 1)}")
                places.append(str(list(row[1:])))
        except IllegalBoxError as error:
            return f"{_REFUSED}{error.broken[0].rule.text}"
        return ";".join(places)


def _digits(row: int, counts: Sequence[int]) -> Iterator[int]:
    yield 0
    for count in counts[1:]:
        row, digit = divmod(row, count)
        yield digit


def _drawn(maps: TensorMaps) -> Iterator[tuple[_Case, str]]:
    """Maps and loads of every mode, type and swizzle, more than half of them legal, each with the simulator's question."""
    draw = random.Random(5)
    width = spans()
    for mode, kind, swizzle, _ in itertools.product(_MODES, maps.types, maps.swizzles, range(_DRAWS)):
        rank = 2 if mode == "gather4" else draw.randint(3 if "im2col" in mode else 1, 5)
        interleave = draw.choice(maps.interleaves) if rank > 2 and draw.random() < 0.3 else maps.interleaves[0]
        span, unit, padded = width[swizzle.value], interleave.unit, bool(kind.group)
        grain = 128 if padded else 128 // kind.bits
        wide = 128 if padded else min(draw.randint(1, 8), max(span * 8 // 128, 1) if span else 8) * grain
        shape = [draw.choice((1, 2, 3)) * 128 if padded else draw.randint(1, 12) * grain, *(draw.randint(1, 9) for _ in range(rank - 1))]
        pitch, strides = -(-shape[0] * (unit * 8 or kind.bits) // 256) * 32, []
        for size in shape[1:]:
            strides.append(pitch + draw.choice((0, 0, 32)))
            pitch = strides[-1] * size
        own: dict[str, Any] = {"element": kind.name, "mode": mode, "shape": shape, "strides": strides, "swizzle": swizzle.name}
        own |= {
            "interleave": interleave.name,
            "fill": "nan" if kind.float and draw.random() < 0.5 else "zero",
            "address": 32 * draw.randint(0, 4),
        }
        own["element_strides"] = [draw.choice((1, 1, 1, 2, 3)) for _ in shape]
        offsets: tuple[int, ...] = ()
        at = [grain * draw.randint(-2, 5), *(draw.randint(-3, size) for size in shape[1:])]
        if "im2col" in mode:
            corners, first = min(rank - 2, 1 if "::w" in mode else 3), 0 if unit else 1
            own |= {"channels": wide} | ({} if mode.endswith("128") else {"pixels": draw.randint(1, 40)})
            own |= {name: [draw.randint(-2, 1) for _ in range(corners)] for name in ("lower", "upper")}
            own |= {"halo": draw.randint(0, 3)} if "::w" in mode else {}
            offsets = tuple(draw.randint(0, 3) for _ in range(corners))
            for axis in range(corners):
                at[first + axis] = draw.randint(own["lower"][axis], max(own["lower"][axis], shape[first + axis] + own["upper"][axis] - 1))
        else:
            own["box"] = [wide, *(1 if mode == "gather4" else draw.randint(1, 5) for _ in shape[1:])]
            at += [draw.randint(-1, shape[1]) for _ in range(3)] if mode == "gather4" else []
        name, value = draw.choice(_CHANGES)
        if own.get(name, ()) not in ((), []) and draw.random() < 0.2:  # a value at the limit of a rule
            whole = own[name] if isinstance(own[name], list) else None
            own[name] = value if whole is None else [value, *whole[1:]] if draw.random() < 0.5 else [*whole[:-1], value]
        case = _Case(own, tuple(at), offsets, 128 * draw.randint(0, 9))
        yield case, case.question(kind, swizzle, span, unit)


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare a catalog with an unpacked package of TIRx-harness.

    Raises:
        MissingPeerError: the package or a compiler of Rust is not there.
    """
    package = sources.checkout(given, tirx_program.NAME)
    cases, questions = zip(*_drawn(tensor_maps_of(catalog.database)), strict=True)
    said = [tirx_program.answers(package, _PROGRAM, _READ, _METHODS, questions), [case.answer(catalog) for case in cases]]
    known = [(case.arguments["mode"], *both) for case, *both in zip(cases, *said, strict=True) if both[0] != "unknown"]
    found = Counter((mode, sides) for mode, *both in known if (sides := _apart(*both)))
    differences = [Difference(package.name, mode, "loads", *sides, count, len(known)) for (mode, sides), count in sorted(found.items())]
    return Findings((package.tool(date),), {package.name: len(known)}, differences)


def _apart(theirs: str, ours: str) -> tuple[str, str] | None:
    """Both sides of a difference: refusals without their numbers, or the first place; None where they agree."""
    refused = [side.startswith(_REFUSED) for side in (theirs, ours)]
    if all(refused) or theirs == ours:
        return None
    if not any(refused):
        return next(pair for pair in itertools.zip_longest(theirs.split(";"), ours.split(";"), fillvalue="nothing") if pair[0] != pair[1])
    their_side, our_side = (re.sub(r"\d+", "#", side) if no else "takes it" for side, no in zip((theirs, ours), refused, strict=True))
    return their_side, our_side
