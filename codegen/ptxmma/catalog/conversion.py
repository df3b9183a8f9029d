"""A fragment as another operand takes it: where each element of the target is in the source, and how it gets there.

Both layouts lead from places, the bits of ``i``, ``lane``, ``warp`` and ``cta``, to the elements of matrices.  Composed, they lead from
the places of the target to those of the source; which parts of a place differ says what the conversion costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ptxmma.arguments import in_range
from ptxmma.catalog.exchanges import LANE_BITS, TEXTS, Arrange, Bit, Kind, Registers, Shuffle, Step, plan
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.tensor_fragment import TensorFragment
from ptxmma.model import COPY, Layout

__all__ = ["Arrange", "Bit", "Conversion", "Shuffle", "Side", "convert"]

#: What the axes of a matrix are called on both sides.
_PLANE = ("row", "col")

#: The parts of a place that only an exchange through memory changes.
_GROUPS = {"warp", "cta"}


class Side(NamedTuple):
    """One side of a conversion: as many tiles as the other side needs, one after another.

    Attributes:
        name: the operand's name.
        layout: the name of its layout.
        type: the element type.
        bits: distance of neighbouring elements in a register.
        inside: elements within a register, as a number of bits.
        elements: bits of ``i`` within one tile: a fragment, or of one with many N the fewest columns that repeat.
        axes: the axes of the layout.
        places: the axis and the bit to which each bit of a place leads; None for one that may lead to any.
    """

    name: str
    layout: str
    type: str
    bits: int
    inside: int
    elements: int
    axes: frozenset[str]
    places: dict[Bit, Bit | None]

    @property
    def tiles(self) -> int:
        """The tiles that take part."""
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
        for (name, bit), label in self.places.items():
            if label is not None and label.name != COPY:
                axes[label.name] = axes.get(label.name, 0) | (place.get(name, 0) >> bit & 1) << label.bit
        return axes


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of :func:`ptxmma.convert`.

    Elements are named by ``i``, their number in the thread, which counts on through the tiles of a side.

    Attributes:
        source, target: the two sides, each with its tiles and the element of each place.
        kind: the cost. ``"same"``: the same registers of the same threads; ``"registers"``: other registers; ``"prmt"``: other places
            within registers; ``"quad"``, ``"warp"``: a shuffle; ``"memory"``: an exchange through shared memory.
        why: what makes an exchange between threads necessary, in words; ``""`` for the first three kinds.
        origin: for each bit of a target place, the bit of the source place that it is.
        steps: what the threads do, in order: :class:`~ptxmma.catalog.conversion.Arrange` and
            :class:`~ptxmma.catalog.conversion.Shuffle`; empty for an exchange through memory.
        k: where columns along K are permuted, for each column of the target the column of the source that it holds; else empty.
        permuted: the same conversion with a permutation of K that makes it cheaper; None where there is none, or no K.
    """

    source: Side
    target: Side
    kind: Kind
    why: str
    origin: dict[Bit, Bit]
    steps: tuple[Step, ...]
    k: tuple[int, ...] = ()
    permuted: Conversion | None = None

    @property
    def shuffles(self) -> int:
        """The shuffles of 32-bit registers that a thread executes."""
        exchanged = sum(isinstance(step, Shuffle) and step.mask != 0 for step in self.steps)
        return exchanged * max(self.target.bits // 32, 1)

    @property
    def word(self) -> int:
        """The elements of a register in a shuffle."""
        first = self.steps[0] if self.steps else None
        return len(first.registers[0]) if isinstance(first, Arrange) else 1 << self.source.inside

    def find(self, lane: Any, i: Any = 0, *, warp: Any = 0, cta: Any = 0) -> dict[str, Any]:
        """The source place of the element at a target place: ``{"lane": 5, "i": 2, "warp": 0, "cta": 0}``; integers or arrays.

        Raises:
            TypeError: a number is neither an integer nor an array.
            ValueError: a number is out of range.
        """
        given = {"lane": lane, "i": i, "warp": warp, "cta": cta}
        widths = {name: sum(place.name == name for place in self.target.places) for name in given}
        place = {name: in_range(name, value, 1 << widths[name]) for name, value in given.items()}
        found: dict[str, Any] = dict.fromkeys(place, 0 * (place["lane"] + place["i"] + place["warp"] + place["cta"]))
        for new, old in self.origin.items():
            found[old.name] = found[old.name] | (place[new.name] >> new.bit & 1) << old.bit
        return found

    def to_cuda(self) -> str:
        """A CUDA function for the registers of a thread, ``convert(target, source)``; with shuffles it also takes the lane.

        Where the widths of the elements differ, the source is an array of elements, and ``pack`` makes a register of some of them.  The
        registers of several tiles are one array.

        Raises:
            ValueError: the exchange needs memory.
        """
        from ptxmma.catalog import conversion_cuda

        return conversion_cuda.function(self)

    def __str__(self) -> str:
        from ptxmma.catalog import conversion_text

        return conversion_text.text(self)


def convert(source: Operand | TensorFragment, target: Operand | TensorFragment, *, transpose: bool = False) -> Conversion:
    """What brings the elements of one operand's registers to the registers of another.

    >>> import ptxmma
    >>> mma = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> reuse = ptxmma.convert(mma.operand("d"), mma.operand("a"))
    >>> reuse.kind, reuse.source.tiles
    ('same', 2)

    Each side has as many tiles as the other needs: two accumulators of 8 columns are an A of 16.  Where the widths of the elements differ,
    the threads convert them first, and the conversion packs them as the target does.  Each of the matrices of ``stmatrix`` is whichever
    part of the source makes it cheapest, and each warp of a warpgroup has tiles of its own where the other side is a warp's.

    Args:
        source: an operand in registers, or one in tensor memory through its load: :meth:`ptxmma.TensorOperand.through`.
        target: an operand in registers, or one in tensor memory through its store.
        transpose: the target holds the transposed matrix: its rows are the source's columns.

    Raises:
        TypeError: something else than these.
        ValueError: an operand without elements in registers, or sizes that are not powers of two.
    """
    old, new = _side(source), _side(target)
    k = _summed(target) if isinstance(target, Operand) else ""
    if transpose:
        swapped = dict(zip(_PLANE, reversed(_PLANE), strict=True))
        places = {place: label and label._replace(name=swapped.get(label.name, label.name)) for place, label in old.places.items()}
        old = old._replace(places=places)
    origin = _matched(old, new)
    plain = _conversion(old, new, origin)
    permuted = _permuted(new, origin, k)
    cheaper = plain if permuted == origin else _conversion(old, new, permuted)
    if _cost(cheaper) >= _cost(plain):
        return plain
    columns = _columns(new, origin, permuted, k)
    return msgspec.structs.replace(plain, permuted=msgspec.structs.replace(cheaper, k=columns))


def _summed(operand: Operand) -> str:
    """The axis along which a product adds up; none of a sparse A, whose columns have an order that metadata states."""
    layout = operand.fragment()
    return "" if operand.sparsity else _called(layout).get(layout.summed, "")


def _columns(target: Side, origin: Mapping[Bit, Bit], permuted: Mapping[Bit, Bit], axis: str) -> tuple[int, ...]:
    """For each number along a permuted axis of the target, that of the source."""
    labels = {old: label for new, old in origin.items() if (label := target.places[new]) is not None}
    along = [(label, labels[permuted[new]]) for new in origin if (label := target.places[new]) is not None and label.name == axis]
    return tuple(sum((number >> label.bit & 1) << moved.bit for label, moved in along) for number in range(1 << len(along)))


def _cost(conversion: Conversion) -> tuple[int, int]:
    return list(TEXTS).index(conversion.kind), conversion.shuffles


def _side(operand: Operand | TensorFragment) -> Side:
    """The bits of the places of one tile."""
    if isinstance(operand, TensorFragment):
        return _through_memory(operand)
    if not isinstance(operand, Operand):
        raise TypeError(f"convert takes operands, and those in tensor memory through a load or store, not {type(operand).__name__}")
    layout, inside = operand.fragment(), operand.elements_per_register.bit_length() - 1
    places: dict[Bit, Bit | None] = {}
    called = _called(layout)
    for bit, (axis, number) in enumerate(layout.to_axes.bits["i"]):
        if bit < inside or axis not in layout.growing or 1 << number < layout.grows_by:
            places[Bit("i", bit)] = Bit(called[axis], number)
    elements = len(places)
    places |= {_thread(bit): Bit(called[axis], number) for bit, (axis, number) in enumerate(layout.to_axes.bits["lane"])}
    return Side(operand.name, layout.name, str(operand.element_type), operand.bits, inside, elements, frozenset(called.values()), places)


def _called(layout: Layout) -> dict[str, str]:
    """The axes of a layout, of which those of a matrix's rows and columns are called so whatever their names."""
    return {axis: axis for axis in layout.axes} | dict(zip(layout.plane, _PLANE, strict=True))


def _through_memory(fragment: TensorFragment) -> Side:
    """The elements of an operand in tensor memory in the registers of its loads or stores, in the order of their addresses.

    Loads whose number is not a power of two are several tiles.
    """
    registers, where = fragment.registers, fragment.places
    if where.columns % registers.cols:
        raise ValueError(f"loads of {registers.cols} columns take more than the operand, which has {where.columns}")
    unit = min(where.unit, registers.bits)
    parts, loads = registers.bits // unit, where.columns // registers.cols
    addresses = fragment.addresses(0)
    beside = loads & -loads  # the loads of adjacent columns in one tile
    count = len(addresses) if beside == loads else beside
    within = parts * registers.elements

    def element(i: int = 0, lane: int = 0, warp: int = 0, cta: int = 0) -> tuple[int, ...]:
        load, number = divmod(i, within)
        register, bit = divmod(number * unit, registers.bits * registers.elements_per_register)
        start = fragment.addresses(warp)[load]
        return fragment.coords(start, lane, register, bit, cta=cta)

    counts = {
        "i": within * count,
        "lane": 1 << LANE_BITS,
        "warp": where.memory.lanes // where.memory.partition,
        "cta": where.numbers["ctas"],
    }
    places: dict[Bit, Bit | None] = {}
    for name, numbers in counts.items():
        for bit in range(numbers.bit_length() - 1):
            moved = [(axis, number) for axis, number in zip(where.sizes, element(**{name: 1 << bit}), strict=True) if number]
            if len(moved) != 1 or moved[0][1] & moved[0][1] - 1:
                raise ValueError(f"{where.layout.title}: {name} {1 << bit} moves by {dict(moved)}, which is not one power of two")
            places[Bit(name, bit)] = Bit(moved[0][0], moved[0][1].bit_length() - 1)
    inside = (parts * registers.elements_per_register).bit_length() - 1
    return Side(registers.name, where.layout.title, "", unit, inside, (within * count).bit_length() - 1, frozenset(where.sizes), places)


def _thread(bit: int) -> Bit:
    """A bit of the number of a thread, which may count through several warps."""
    return Bit("lane", bit) if bit < LANE_BITS else Bit("warp", bit - LANE_BITS)


def _matched(source: Side, target: Side) -> dict[Bit, Bit]:
    """For each bit of a target place, the bit of the source place with the same elements.

    Both sides get the bits that they lack, with the axis that they lead to: those of further tiles, and of the warps and CTAs that each
    have tiles of their own.
    """
    for one, other in ((source, target), (target, source)):
        for place in other.places:
            if place.name in _GROUPS:
                one.places.setdefault(place, None)
    origin: dict[Bit, Bit] = {}

    def left(side: Side, *, loose: bool) -> list[Bit]:
        """The bits without partner: those that may lead anywhere, or the others."""
        other = target.axes if side is source else source.axes
        used = set(origin.values()) if side is source else set(origin)
        return [
            place
            for place, label in side.places.items()
            if place not in used and (label is None or label.name != COPY) and loose == (label is None or label.name not in other)
        ]

    named = {label: place for place, label in source.places.items() if label is not None}
    origin |= {place: named[label] for place, label in target.places.items() if label is not None and label in named}
    for fixed in (False, True):
        origin |= dict(_pairs(left(target, loose=True), left(source, loose=fixed)))
    origin |= dict(_pairs(left(target, loose=False), left(source, loose=True)))
    for new, old in origin.items():
        label = target.places[new]
        if label is None or label.name not in source.axes:
            label = source.places[old]
        source.places[old] = target.places[new] = label
    for side, other in ((source, target), (target, source)):
        for place, label in _tiled({place: other.places[place] or place for loose in (False, True) for place in left(other, loose=loose)}):
            new = Bit("i", side.numbers)
            other.places[place] = side.places[new] = label
            origin |= {new: place} if side is target else {place: new}
    return origin


def _tiled(places: dict[Bit, Bit]) -> Iterator[tuple[Bit, Bit]]:
    """Places with their labels in the order in which they number further tiles: as they are in ``i``, but along each axis upwards."""
    upwards = sorted((label, place) for place, label in places.items())
    for first in sorted(places):
        axis = places[first].name
        label, place = next(pair for pair in upwards if pair[0].name == axis)
        upwards.remove((label, place))
        yield place, label


def _pairs(targets: Iterable[Bit], sources: Iterable[Bit]) -> list[tuple[Bit, Bit]]:
    """Bits of both sides in pairs: the same place where both have it, then elements of a thread, then the others as they come."""
    new, old = list(targets), list(sources)
    pairs = [(place, place) for place in new if place in old]
    for names in (["i"], ["i", "lane"]):
        new, old = ([place for place in side if place not in [pair[at] for pair in pairs]] for at, side in enumerate((new, old)))
        pairs += zip((place for place in new if place.name in names), (place for place in old if place.name in names), strict=False)
    return pairs


def _permuted(target: Side, origin: dict[Bit, Bit], axis: str) -> dict[Bit, Bit]:
    """The same elements with the numbers along an axis permuted so that more of them stay where they are."""
    along = [new for new in origin if (label := target.places[new]) is not None and label.name == axis]
    return origin | dict(_pairs(along, [origin[new] for new in along]))


def _conversion(source: Side, target: Side, origin: dict[Bit, Bit]) -> Conversion:
    moved = {name for new, old in origin.items() if new != old for name in (new.name, old.name)}
    answer = Conversion(source=source, target=target, kind="memory", why=_why(source, target, origin), origin=origin, steps=())
    if moved & _GROUPS:
        return answer
    inner = {new: old for new, old in origin.items() if new.name not in _GROUPS}
    free = source.bits != target.bits
    used = sorted(place.bit for place in origin.values() if place.name == "i")
    before, after = Registers(tuple(used), 0 if free else source.inside), Registers(tuple(range(target.numbers)), target.inside)
    kind, steps = plan(inner, before, after, free=free)
    return msgspec.structs.replace(answer, kind=kind, steps=steps)


def _why(source: Side, target: Side, origin: dict[Bit, Bit]) -> str:
    """What the bits of threads lead to, where the two sides differ: those of warps and CTAs, where some of them do."""
    threads = sorted(new for new, old in origin.items() if new != old and new.name != "i")
    differ = [place for place in threads if place.name in _GROUPS] or threads
    each = ((place, _weight(target.places[place]), _weight(source.places[place])) for place in differ)
    return "; ".join(f"bit {place.bit} of the {place.name} is {new} in the target, {old} in the source" for place, new, old in each)


def _weight(label: Bit | None) -> str:
    return f"{label.name} {1 << label.bit}" if label else "nothing"
