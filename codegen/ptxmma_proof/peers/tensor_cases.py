"""Operands in tensor memory that peers lay out, and the comparison of a peer's places with ours, element by element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.lookup import codec
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import tensor_places
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.model import Facts, Space

Values = npt.NDArray[np.int64]
#: Bits of a lane in a place as one number: CuTe's TMEM::DP_b.
LANE_BITS = 21


class Axis(NamedTuple):
    """An axis of the peer's numbering.

    Attributes:
        name: the name of our axis; ``""`` for one that moves nothing.
        size: the size in our numbers; for rows of a pair the rows of one CTA.
        finer: the peer's numbers for each of ours, which lie in it one after another.
    """

    name: str
    size: int
    finer: int = 1


class Case(NamedTuple):
    """An operand as a peer lays it out.

    Attributes:
        peer: ``"CuTe"`` or ``"TVM"``.
        subject: the peer's definition: ``"UMMA::tmem_frg_1sm<float>, 128 x 256"``.
        kind: the kind of our operand.
        matrix: that it describes.
        facts: the facts that the conditions of layouts read.
        numbers: the numbers that formulas read.
        axes: the fastest of the peer's numbering first.
        selected: a selection of the instruction descriptor.
        places: the peer's places as numbers of bits: lane * 2**21 + column * 32 + bit; for each point of the axes in their order.
    """

    peer: str
    subject: str
    kind: str
    matrix: str
    facts: Facts
    numbers: Mapping[str, int]
    axes: tuple[Axis, ...]
    selected: Mapping[str, int]
    places: Values


class Verdict(NamedTuple):
    """The comparison of a case: our layout, and where the first place differs in both words; ``wrong`` of ``of`` places differ."""

    case: Case
    layout: str
    theirs: str
    ours: str
    wrong: int
    of: int


def instruction_codec(catalog: Catalog, opcode: str) -> Codec:
    """The codec of the instruction descriptor that a ``tcgen05.mma`` reads."""
    kind = next(part for part in opcode.split(".") if part.startswith("kind::"))
    return codec("instruction", kind=kind, database=catalog.database)


def compare(memory: Space, cases: Iterable[Case]) -> list[Verdict]:
    """Compare peers' cases with a spec."""
    return [_verdict(memory, case) for case in cases]


def _verdict(memory: Space, case: Case) -> Verdict:
    placed = tensor_places.of(memory, case.kind, case.matrix, {**case.facts, **case.numbers}, case.numbers)
    if placed is None:
        return Verdict(case, "", "a layout", "no layout", case.places.size, case.places.size)
    wrong, of = 0, 0
    first = ("", "")
    for cta in range(case.numbers["ctas"]):
        axes, here, elsewhere = ours(memory, placed, case, cta)
        differs = (here != case.places) | elsewhere
        of += case.places.size
        wrong += int(differs.sum())
        if differs.any() and not first[0]:
            at = int(np.argmax(differs))
            point = ", ".join(f"{axis} {int(values[at])}" for axis, values in axes.items())
            first = (f"{point}: {text(int(case.places[at]), memory.cell)}", f"{point}: {text(int(here[at]), memory.cell)}")
    return Verdict(case, placed.layout.name, *first, wrong, of)


def ours(memory: Space, placed: TensorPlaces, case: Case, cta: int) -> tuple[dict[str, Values], Values, Values]:
    """Our axes and places at each of the peer's points, for a CTA of a pair, and whether they are in the other CTA."""
    axes, part = _axes(placed, case, cta)
    place = placed.locate(**axes, **case.selected)  # type: ignore[arg-type]  # axes and selections, no check
    here = (np.asarray(place.lane) << LANE_BITS) + np.asarray(place.column) * memory.cell + place.bit
    return axes, np.broadcast_to(here, case.places.shape) + part, np.broadcast_to(np.asarray(place.cta) != cta, case.places.shape)


def _axes(placed: TensorPlaces, case: Case, cta: int) -> tuple[dict[str, Values], Values]:
    """Our axes at each of the peer's points, for a CTA of a pair, and the bits by which the peer's finer numbers go on."""
    index, part = np.arange(case.places.size), np.zeros(case.places.size, np.int64)
    axes = {}
    for axis in case.axes:
        number = index % (axis.size * axis.finer)
        index = index // (axis.size * axis.finer)
        if axis.name:
            axes[axis.name] = number // axis.finer
            part += placed.unit * (number % axis.finer) // axis.finer
            if axis.name in placed.axes and placed.sizes[axis.name] == case.numbers["ctas"] * axis.size:
                axes[axis.name] += cta * axis.size
    return axes | ({"peer": np.full(case.places.size, cta)} if "peer" in placed.sizes else {}), part


def text(place: int, cell: int) -> str:
    """A place in words."""
    lane, rest = place >> LANE_BITS, place & (1 << LANE_BITS) - 1
    return f"lane {lane}, column {rest // cell}, bit {rest % cell}"
