"""The two sides of a conversion: the element at each place of an operand in registers, and the places of two operands matched.

A place is the bits of ``i``, the number of an element in its thread, and of ``lane``, ``warp`` and ``cta``.  Each bit moves along one
axis of the matrix by a stride, as a mode of CuTe does; the element at a place is the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog.conversion.exchanges import Bit
from ptxmma.catalog.operands.held import PLANE
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.tensor_fragment import TensorFragment
from ptxmma.model import COPY

#: The parts of a place that only an exchange through memory changes.
GROUPS = {"warp", "cta"}


class Stride(NamedTuple):
    """The axis along which a bit of a place moves, and by how much: ``Stride("col", 8)``."""

    axis: str
    by: int

    def __str__(self) -> str:
        return "a copy" if self.axis == COPY else f"{self.axis} {self.by}"


class Side(NamedTuple):
    """One side of a conversion: as many tiles as the other side needs, one after another.

    Attributes:
        name: the operand's name.
        layout: the name of its layout.
        type: the element type; ``""`` where the instruction does not state it.
        bits: distance of neighbouring elements in a register.
        inside: elements within a register, as a number of bits.
        elements: bits of ``i`` within one tile: a fragment, or of one with many N the fewest columns that repeat.
        axes: the axes of the layout.
        places: the stride of each bit of a place; None for a bit that may have any.
        ordered: the axis whose order may change, so long as what reads the operand follows; ``""`` for none.
        summed: true where a product adds up along that axis: it is K.
    """

    name: str
    layout: str
    type: str
    bits: int
    inside: int
    elements: int
    axes: frozenset[str]
    places: dict[Bit, Stride | None]
    ordered: str = ""
    summed: bool = False

    @property
    def tiles(self) -> int:
        """The number of tiles that take part."""
        return 1 << self.numbers - self.elements

    @property
    def numbers(self) -> int:
        """The bits of ``i`` of all tiles."""
        return sum(place.name == "i" for place in self.places)

    @property
    def origins(self) -> list[dict[str, int]]:
        """The first element of each tile."""
        return [self.coords(i=number << self.elements) for number in range(self.tiles)]

    def coords(self, **place: int) -> dict[str, int]:
        """The element at a place: its number on each axis."""
        axes: dict[str, int] = {}
        for (name, bit), stride in self.places.items():
            if stride is not None and stride.axis != COPY:
                axes[stride.axis] = axes.get(stride.axis, 0) + (place.get(name, 0) >> bit & 1) * stride.by
        return axes

    def transposed(self) -> Side:
        """The same places of the transposed matrix."""
        swapped = dict(zip(PLANE, reversed(PLANE), strict=True))
        places = {place: stride and stride._replace(axis=swapped.get(stride.axis, stride.axis)) for place, stride in self.places.items()}
        return self._replace(places=places)


def side(operand: Operand | TensorFragment) -> Side:
    """Return the strides of one tile of an operand.

    Raises:
        TypeError: something else than an operand.
        ValueError: an operand without elements in registers, or loads and stores that move more than it.
    """
    if not hasattr(operand, "held"):
        raise TypeError(f"convert takes operands, and those in tensor memory through a load or store, not {type(operand).__name__}")
    held = operand.held()
    places: dict[Bit, Stride | None] = {}
    for digit in held.elements.digits:
        first, axis = digit.step.bit_length() - 1, held.called[digit.coordinate]
        for bit in range(digit.size.bit_length() - 1):
            places[Bit(digit.axis, first + bit)] = Stride(axis, digit.weight << bit)
    return Side(
        name=held.name,
        layout=held.layout,
        type=held.type,
        bits=held.bits,
        inside=held.per_register.bit_length() - 1,
        elements=held.elements.axes["i"].bit_length() - 1,
        axes=frozenset(held.called.values()),
        places=places,
        ordered=held.called.get(held.ordered, ""),
        summed=held.summed,
    )


def match(source: Side, target: Side) -> dict[Bit, Bit]:
    """Return, for each bit of a target place, the bit of the source place with the same elements: the composition of both sides.

    :meth:`~ptxmma.model.digit_map.LayoutMap.compose` does not serve: a side may have copies, or tiles and axes that the other lacks.

    Both sides get the bits that they lack, with the stride of the other side: bits of further tiles, and of the warps and CTAs that each
    have tiles of their own.

    Raises:
        ValueError: a stride of one side is not a multiple of the other's tiles: 48, where tiles have 32.
    """
    for one, other in ((source, target), (target, source)):
        for place in other.places:
            if place.name in GROUPS:
                one.places.setdefault(place, None)
    origin: dict[Bit, Bit] = {}
    for place in [place for place in target.places if place in source.places]:
        held = {source.places[place], target.places[place]}
        copies = {stride for stride in held if stride is not None and stride.axis == COPY}
        if copies and held <= {None, *copies}:  # copies in the same place, or every warp and CTA of the other side holds the same
            source.places[place] = target.places[place] = min(copies)
            origin[place] = place

    def left(one: Side, *, loose: bool) -> list[Bit]:
        """The bits without partner: the bits that may lead anywhere, or the others."""
        other = target.axes if one is source else source.axes
        used = set(origin.values()) if one is source else set(origin)
        return [
            place
            for place, stride in one.places.items()
            if place not in used and (stride is None or stride.axis != COPY) and loose == (stride is None or stride.axis not in other)
        ]

    named = {stride: place for place, stride in source.places.items() if stride is not None and stride.axis != COPY}
    origin |= {place: named[stride] for place, stride in target.places.items() if stride is not None and stride in named}
    for fixed in (False, True):
        origin |= dict(pairs(left(target, loose=True), left(source, loose=fixed)))
    origin |= dict(pairs(left(target, loose=False), left(source, loose=True)))
    for new, old in origin.items():
        stride = target.places[new]
        if stride is None or stride.axis not in source.axes:
            stride = source.places[old]
        source.places[old] = target.places[new] = stride
    for one, other in ((source, target), (target, source)):
        lacking = {
            place: other.places[place] or Stride(place.name, 1 << place.bit)
            for loose in (False, True)
            for place in left(other, loose=loose)
        }
        for place, stride in _tiled(lacking):
            new = Bit("i", one.numbers)
            other.places[place] = one.places[new] = stride
            origin |= {new: place} if one is target else {place: new}
    _check(target)
    return origin


def _check(target: Side) -> None:
    """Check that a stride that is not a power of two begins at a whole number of tiles."""
    strides = sorted({stride for stride in target.places.values() if stride is not None and stride.axis != COPY})
    for axis in {stride.axis for stride in strides}:
        reach = 1
        for _, by in (stride for stride in strides if stride.axis == axis):
            if by % reach:
                text = f"{target.name} takes tiles of {reach} along {axis}; {by} of the other operand is not a multiple of {reach}"
                raise ValueError(text)
            reach = 2 * by


def _tiled(places: dict[Bit, Stride]) -> Iterator[tuple[Bit, Stride]]:
    """Places with their strides in the order in which they number further tiles: as they are in ``i``, but along each axis upwards."""
    upwards = sorted((stride, place) for place, stride in places.items())
    for first in sorted(places):
        axis = places[first].axis
        stride, place = next(pair for pair in upwards if pair[0].axis == axis)
        upwards.remove((stride, place))
        yield place, stride


def pairs(targets: Iterable[Bit], sources: Iterable[Bit]) -> list[tuple[Bit, Bit]]:
    """Bits of both sides in pairs: the same place where both have it, then elements of a thread, then the others as they come."""
    new, old = list(targets), list(sources)
    found = [(place, place) for place in new if place in old]
    for names in (["i"], ["i", "lane"]):
        new, old = ([place for place in one if place not in [pair[at] for pair in found]] for at, one in enumerate((new, old)))
        found += zip((place for place in new if place.name in names), (place for place in old if place.name in names), strict=False)
    return found


def reordered(target: Side, origin: dict[Bit, Bit]) -> dict[Bit, Bit]:
    """Return the same matching with the order along an axis of the target changed so that more elements stay where they are.

    The elements of a thread keep their order.
    """
    new = _along(target, origin)
    old = [origin[place] for place in new]
    elements, given = (sorted(place for place in places if place.name == "i") for places in (new, old))
    kept = dict(zip(elements, given, strict=False))
    rest = pairs([place for place in new if place not in kept], [place for place in old if place not in kept.values()])
    return origin | kept | dict(rest)


def order(target: Side, origin: Mapping[Bit, Bit], changed: Mapping[Bit, Bit]) -> tuple[int, ...]:
    """Return, for each number along that axis of the target, the number of the source."""
    strides = {old: stride.by for new, old in origin.items() if (stride := target.places[new]) is not None}
    along = sorted((stride.by, strides[changed[new]]) for new in _along(target, origin) if (stride := target.places[new]) is not None)
    numbers = [0]
    for _, by in along:
        numbers += [below + by for below in numbers]
    return tuple(numbers)


def _along(target: Side, origin: Mapping[Bit, Bit]) -> list[Bit]:
    """The bits of a target place that count along its axis; none where they leave numbers out."""
    along = [new for new in origin if (stride := target.places[new]) is not None and stride.axis == target.ordered]
    strides = sorted(stride.by for new in along if (stride := target.places[new]) is not None)
    return along if strides == [1 << bit for bit in range(len(strides))] else []
