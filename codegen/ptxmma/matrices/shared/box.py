"""Boxes that TMA copies between global and shared memory: what is legal, and where each element lies; without NumPy.

Dimensions are innermost first, as the driver takes them.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.arguments import in_range, integer, one_of
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.user_names import swizzle_named, type_named
from ptxmma.matrices.shared.box_rules import Broken, IllegalBoxError, broken
from ptxmma.matrices.shared.canonical import Geometry, mode_of
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.model import ElementType, SharedMemory, Spec, TensorMaps, TensorMapSwizzle, TensorMapType, formula
from ptxmma.model.digit_map import Digit, DigitMap

#: Bits that padded elements share.
_UNIT = 128
#: The arguments of a copy, and arguments of its tensor map for which loads and stores have rules of their own.
_OF_COPY = ("at", "offsets", "mode", "padded", "swizzle", "lower", "upper", "halo")
#: The meaning of the numbers of each list.
_COUNTED = {
    "strides": "one for each dimension but the innermost",
    "element_strides": "one for each dimension",
    "box": "one for each dimension, or none with im2col, which has channels and pixels instead",
    "lower": "one along each of W, H, D with im2col, along W with im2col::w",
    "upper": "one along each of W, H, D with im2col, along W with im2col::w",
    "at": "one for each dimension; with gather4 one along dimension 0, then one for each row",
    "offsets": "one along each of W, H, D with im2col, along W with im2col::w",
}
#: Bits of the numbers that give a corner of the bounding box: all of its dimensions share them.
CORNER_BITS = 16


def tensor_maps_of(database: DatabaseLike) -> TensorMaps:
    """The part of a database about tensor maps.

    Raises:
        ValueError: the database has none.
    """
    maps = catalog(database).database.spec.tensor_maps
    if maps is None:
        raise ValueError("the database says nothing about tensor maps")
    return maps


class Difference(NamedTuple):
    """An element of a matrix that lies elsewhere than a layout has it."""

    x: int
    k: int
    copied: int  # the shared address to which the copy writes it
    expected: int  # the address where the layout has it


class Rows(NamedTuple):
    """The rows of an image: pieces of the tensor that are contiguous in both memories."""

    number: int
    pitch: int  # bytes from one to the next
    length: int  # elements of each


class BoxGeometry:
    """A tensor map: a tensor in global memory, and the box of it that one copy moves; addresses without NumPy.

    Attributes:
        element: the type of the elements; None where the tensor map's data type was given instead.
        data_type: the driver's name of the data type.
        mode: ``"tiled"``, ``"im2col"``, ``"im2col::w"``, ``"im2col::w::128"``, or ``"gather4"`` for four rows of a matrix, also of
            ``scatter4``.
        shape: elements of the tensor along each dimension; with interleave slices along dimension 0.
        strides: bytes between neighbours along each dimension but the innermost.
        box: elements of the box along each dimension; empty for im2col.
        element_strides: steps of the box through the tensor.
        swizzle, interleave, fill: their names.
        lower, upper: the corners of the bounding box of im2col along W, H, D, of im2col::w along W alone.
        channels, pixels: the extents of a column of im2col; im2col::w::128 has 128 pixels.
        halo: ``wHalo`` of the instruction: pixels that a copy of im2col::w adds, of im2col::w::128 after every 32.
        address: the tensor's address in global memory, or an address that is aligned as it is.
        transaction_bytes: bytes that a copy counts on its mbarrier.
        size: bytes of shared memory in which the box lies.
        notes: statements about copies of this mode.
        targets: the names among its type and its swizzle that not every target with TMA has, each with the targets that have it.
    """

    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    box: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    def __init__(
        self,
        element: ElementType | str,
        shape: Sequence[int],
        box: Sequence[int] = (),
        *,
        swizzle: str = "none",
        interleave: str = "none",
        fill: str = "zero",
        strides: Sequence[int] | None = None,
        element_strides: Sequence[int] | None = None,
        address: int = 0,
        padded: bool = False,
        lower: Sequence[int] = (),
        upper: Sequence[int] = (),
        channels: int = 0,
        pixels: int = 0,
        halo: int = 0,
        mode: str = "",
        database: DatabaseLike = None,
    ) -> None:
        """The arguments are the attributes above; a tensor map of im2col has channels, pixels and corners in place of a box.

        The mode is by default im2col where these are given, else tiled.

        ``element`` is an element type (``"bf16"``) or a data type of the driver (``"UINT8"``), ``strides`` are by default
        the ones of a dense tensor, and with ``padded`` 16 elements of 4 or 6 bits lie in each 16 bytes of shared memory.

        Raises:
            TypeError: a number that is not an integer.
            ValueError: an unknown name, or arguments of other lengths than the shape.
            IllegalBoxError: a tensor map that the driver refuses.
        """
        self._database = database
        spec, maps = catalog(database).database.spec, tensor_maps_of(database)
        self._maps = maps
        mode = mode or ("im2col" if channels or pixels or lower or upper else "tiled")
        self.mode = next((each.name for each in maps.modes if mode in each.names), mode)
        one_of("mode", self.mode, [each.name for each in maps.modes])
        self._mode = next(each for each in maps.modes if each.name == self.mode)
        self.element, self._type = _typed(spec, maps, element, padded=padded)
        self.data_type, self.padded = self._type.name, bool(self._type.group)
        swizzle, interleave = swizzle_named(swizzle), swizzle_named(interleave)
        fill = next((each.name for each in maps.fills if each.cuda == fill), fill)
        for what, name, known in (
            ("swizzle", swizzle, maps.swizzles),
            ("interleave", interleave, maps.interleaves),
            ("fill", fill, maps.fills),
        ):
            if note := next((each.text for each in maps.notes if each.absent == name), None):
                raise ValueError(f"unknown {what} {name!r}; known: {', '.join(each.name for each in known)}. {note}")
            one_of(what, name, [each.name for each in known])
        self.swizzle, self.interleave, self.fill = swizzle, interleave, fill
        self._swizzle = next(each for each in maps.swizzles if each.name == swizzle)
        self._unit = next(each for each in maps.interleaves if each.name == interleave).unit
        self._fill = next(each for each in maps.fills if each.name == fill)
        self._span, self._moved, self._cuda_swizzle = _pattern(memory_of(database), self._swizzle)
        self.shape = _numbers("shape", shape)
        rank = len(self.shape)
        self.channels, self.pixels = integer("channels", channels), self._mode.pixels or integer("pixels", pixels)
        self.halo, self.address = integer("halo", halo), integer("address", address)
        if wrong := [each for each in self.broken("shape") if each.entry is None]:  # first: all lists are as long as the shape
            raise IllegalBoxError(wrong)
        self.strides = self._dense() if strides is None else _numbers("strides", strides, rank - 1)
        self.element_strides = (1,) * rank if element_strides is None else _numbers("element_strides", element_strides, rank)
        self.box = _numbers("box", box, 0 if self.of_pixels else rank)
        corners = min(max(rank - 2, 0), self._mode.corners)
        self.lower, self.upper = _numbers("lower", lower, corners), _numbers("upper", upper, corners)
        if not self.of_pixels and (channels or pixels):
            raise ValueError(f"{self.mode} has a box, and no channels and pixels, which im2col has")
        self._obey(
            "shape", "interleave", "address", "strides", "box", "element_strides", "swizzle", "fill",
            "channels", "pixels", "lower", "upper", "halo",
        )  # fmt: skip
        lines = math.prod(self.counts[1:])
        whole = lines * self._pitch // 8
        self.size = whole if not self._span else -(-whole // self._span) * self._span
        self.transaction_bytes = lines * self.counts[0] * (self._unit * 8 or self._type.bits) // 8
        self.notes = tuple(note for note in maps.notes if self.mode in note.modes)
        self.targets = {entry.name: entry.targets for entry in (self._type, self._swizzle) if entry.targets}

    def __repr__(self) -> str:
        extents = f"{self.channels} channels of {self.pixels} pixels" if self.of_pixels else " x ".join(map(str, self.box))
        return f"<{type(self).__name__} {self.data_type}: {extents} of {' x '.join(map(str, self.shape))}, swizzle {self.swizzle}>"

    @property
    def of_pixels(self) -> bool:
        """True where a copy has channels and pixels, as im2col has them, in place of a box."""
        return self._mode.corners > 0

    def _dense(self) -> tuple[int, ...]:
        """The strides of a tensor without gaps."""
        line = self.shape[0] * (self._unit * 8 or self._type.bits) // 8
        return tuple(line * math.prod(self.shape[1:i]) for i in range(1, len(self.shape)))

    # --- rules --------------------------------------------------------------------------------------------------------------

    def broken(self, *arguments: str, at: Sequence[int] = (), offsets: Sequence[int] = (), **instead: int) -> list[Broken]:
        """The rules that these arguments break, ``"at"``, ``"offsets"`` and ``"destination"`` of a copy among them.

        ``instead`` has numbers that rules read in place of the tensor map's own.
        """
        rank, dims, limits = len(self.shape), self.pixel_dimensions, self._maps.limits
        facts = {
            "rank": rank, "bits": self._type.bits, "padded": int(self.padded), "float": int(self._type.float), "unit": self._unit,
            "swizzle": self._swizzle.value, "span": self._span, "fill": self._fill.value, "address": self.address,
            "channels": self.channels, "pixels": self.pixels, "limit": 1 << (CORNER_BITS // max(len(dims), 1) - 1),
            "size": self._counted(), "destination": 0, "store": 0, "load": 0, "wide": int(bool(self._mode.wide)), "halo": self.halo,
            "largest_box": limits.largest_box, "padded_box": limits.padded_box, "alignment": limits.alignment,
        }  # fmt: skip
        pixels = {"shape": [self.shape[dim] for dim in dims], "lower": self.lower, "upper": self.upper}
        lists: dict[str, dict[str, Sequence[int]]] = {
            "dimension": {"shape": self.shape, "box": self.box, "step": self.element_strides, "at": at},
            "stride": {"stride": [instead["stride"]] if "stride" in instead else self.strides},
            "pixel": {**pixels, "at": [at[dim] for dim in dims] if at else (), "offset": offsets},
        }
        shown = {"mode": self.mode, "swizzle": self.swizzle, "interleave": self.interleave, "fill": self.fill}
        shown |= {"padded": str(self.padded)} | {name: " x ".join(map(str, getattr(self, name))) for name in ("shape", "box")}
        rules = [rule for rule in self._maps.rules if not rule.modes or {self.mode, self._mode.like} & {*rule.modes}]
        return broken(rules, arguments, facts | instead, lists, shown)

    def _obey(self, *arguments: str, at: Sequence[int] = (), offsets: Sequence[int] = (), **instead: int) -> None:
        if found := self.broken(*arguments, at=at, offsets=offsets, **instead):
            judged = not {each.rule.argument for each in found}.isdisjoint(self._extents)
            raise IllegalBoxError(found, self._nearest() if judged else ())

    @property
    def _extents(self) -> tuple[str, ...]:
        """The arguments that have the extents of a copy."""
        return ("channels", "pixels") if self.of_pixels else ("box",)

    def _resized(self, extents: Sequence[int]) -> BoxGeometry:
        """This tensor map with other extents, which may break rules."""
        other = copy.copy(self)
        if self.of_pixels:
            other.channels, other.pixels = extents
        else:
            other.box = tuple(extents)
        return other

    def _nearest(self) -> tuple[int, ...]:
        """The legal extents nearest to these: each by itself, then as much of one dimension as the whole allows; empty if none are near."""
        extents = [self.channels, self.pixels] if self.of_pixels else [*self.box]
        for fault in self.broken(*self._extents):
            if (near := fault.nearest) is not None:
                extents[self._extents.index(fault.place) if fault.entry is None else fault.entry] = near
        for outer in reversed(range(len(extents))):
            if not self._resized(extents).broken(*self._extents):
                break
            extents[outer] = self._most(extents, outer) or 1
        return () if self._resized(extents).broken(*self._extents) else tuple(extents)

    def _most(self, extents: Sequence[int], dimension: int) -> int:
        """The largest legal extent of a dimension up to the present one; 0 if none is legal."""
        tried = ([*extents[:dimension], size, *extents[dimension + 1 :]] for size in range(extents[dimension], 0, -1))
        return next((each[dimension] for each in tried if not self._resized(each).broken(*self._extents)), 0)

    @property
    def alignments(self) -> dict[str, int]:
        """The numbers of which some arguments are multiples, as the rules have them.

        Of the tensor ``"address"`` and ``"strides"`` and of a copy ``"destination"``, in bytes; and ``"at"``, the first coordinate.
        """
        rest = (*self.lower, *(0,) * (len(self.shape) - 1 - len(self.lower)))

        def first(at: int) -> list[Broken]:
            return [] if self._unit else self.broken("at", at=(at, *rest))

        tried: dict[str, Callable[[int], list[Broken]]] = {
            "address": lambda value: self.broken("address", address=value),
            "strides": lambda value: self.broken("strides", stride=value),
            "destination": lambda value: self.broken("destination", destination=value),
            "at": first,
        }
        return {name: next(value for value in itertools.count(1) if not wrong(value)) for name, wrong in tried.items()}

    @property
    def pixel_dimensions(self) -> range:
        """The dimensions of pixels of im2col: W, H, D.  Dimension 0 is C, or with interleave W."""
        first = 0 if self._unit else 1
        return range(first, first + len(self.lower))

    def _counted(self) -> int:
        """Bytes of the box as the driver counts them."""
        if self.of_pixels:
            return self.channels * self.pixels * self._type.bits // 8
        steps = [size // step if step > 0 else 0 for size, step in zip(self.box, self.element_strides, strict=True)]
        return math.prod(steps) * self._type.bits // 8

    # --- places -------------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements that a copy moves along each axis of the image: of a box along each dimension, of im2col channels and pixels.

        With interleave slices along dimension 0, and 1 along the slices of channels.  The pixels of a halo are among the pixels.
        """
        if self.of_pixels:
            halos = self.pixels // self._mode.halo_every if self._mode.halo_every else 1
            return (1 if self._unit else self.channels, self.pixels + halos * self.halo)
        steps = (self.element_strides[0] if self._unit else 1, *self.element_strides[1:])
        counts = [-(-size // step) for size, step in zip(self.box, steps, strict=True)]
        if self._unit:
            counts[-2] = 1
        return (counts[0], self._mode.rows) if self._mode.rows else tuple(counts)

    @property
    def _line(self) -> int:
        """Bits of a line of shared memory: the elements along dimension 0."""
        if self._unit:
            return self.counts[0] * self._unit * 8
        return self.counts[0] // self._type.group * _UNIT if self.padded else self.counts[0] * self._type.bits

    @property
    def _pitch(self) -> int:
        """Bits from a line to the next: a swizzle has lines of its own width."""
        return self._span * 8 if self._span and not self._unit else self._line

    @property
    def rows(self) -> Rows:
        """The image as rows, one after the other; with interleave a row is one slice of channels."""
        if self._unit:
            return Rows(math.prod(self.counts), self._unit, self._unit * 8 // self._type.bits)
        return Rows(math.prod(self.counts[1:]), self._pitch // 8, self.counts[0])

    @functools.cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes of the image, the innermost first: ``d0``, ``d1`` … of a box, ``channel`` and ``pixel`` of im2col.

        With interleave the first one is ``slice``: the elements of a slice.
        """
        names = ("channel", "pixel") if self.of_pixels else tuple(f"d{i}" for i in range(len(self.counts)))
        return ("slice", *names) if self._unit else names

    @functools.cached_property
    def digits(self) -> DigitMap:
        """The image as a map: from the axes to the bit from the start of the box, before the swizzle."""
        bits, digits = self._type.bits, []
        sizes = dict(zip(self.axes, ((self._unit * 8 // bits, *self.counts) if self._unit else self.counts), strict=True))
        inner, *outer = self.axes[1:] if self._unit else self.axes
        if self._unit:
            digits += [Digit("slice", 1, sizes["slice"], "bit", bits), Digit(inner, 1, sizes[inner], "bit", self._unit * 8)]
        elif self.padded:
            group = self._type.group
            digits += [Digit(inner, 1, group, "bit", bits), Digit(inner, group, sizes[inner] // group, "bit", _UNIT)]
        else:
            digits.append(Digit(inner, 1, sizes[inner], "bit", bits))
        weight = self._pitch
        for axis in outer:
            digits.append(Digit(axis, 1, sizes[axis], "bit", weight))
            weight *= sizes[axis]
        return DigitMap.made(sizes, ("bit",), digits)

    def locate(self, destination: int = 0, **point: Any) -> tuple[Any, Any]:
        """The shared address of an element of the box, and its lowest bit in that byte; integers or arrays.

        Args:
            destination: the shared address of the box.
            point: the number on each of :attr:`axes`: ``d0=3, d1=5``; 0 where an axis is not given.

        Raises:
            ValueError: an unknown axis, a number beyond its size, or a destination that is not aligned.
        """
        self._obey("destination", destination=integer("destination", destination))
        bit = self.digits.apply(dict(zip(self.axes, self._point(point), strict=True)))["bit"]
        return self.swizzled(destination + bit // 8), bit % 8

    def _point(self, given: Mapping[str, Any]) -> list[Any]:
        """The number on each axis, checked."""
        for axis in given:
            one_of("axis", axis, self.axes)
        return [in_range(axis, given.get(axis, 0), size) for axis, size in self.digits.axes.items()]

    def coords(self, address: int, bit: int = 0, destination: int = 0) -> dict[str, int] | None:
        """The element of the box that has a bit of the byte at a shared address, as a number on each axis; None where none has."""
        place = (self.swizzled(integer("address", address)) - destination) * 8 + in_range("bit", integer("bit", bit), 8)
        if self.padded and place % _UNIT >= self._type.group * self._type.bits:
            return None
        read = self.digits.read({"bit": place})
        return dict(read.point) if read.fits and read.rest["bit"] < self._type.bits else None

    def swizzled(self, address: Any) -> Any:
        """The address where the byte at an address lies after the swizzle; applied twice, it leads back."""
        return formula.evaluate(formula.parse(self._moved), {"address": address, "base_offset": 0, "span": self._span or 1})

    def difference(self, layout: Geometry) -> Difference | None:
        """The first element that the copies of boxes put elsewhere than a matrix layout has it; None where they write that layout.

        A row of the image runs along the layout's contiguous dimension.  Boxes follow each other without gaps, as many as the matrix
        has, first along the other dimension.  Where rows are shorter than the bytes that the swizzle permutes, the elements that they
        have are compared.

        Raises:
            ValueError: another type, or a matrix that the boxes do not fill.
        """
        if self.element != layout.element or self.padded != layout.padded:
            raise ValueError(f"{self} copies {self.element.name if self.element else self.data_type}, the layout has {layout.element.name}")
        inner, outer = (layout.k, layout.x) if layout.majorness == "K" else (layout.x, layout.k)
        rows, pitch, length = self.rows
        across, unit = pitch * 8 // layout.width, layout.per_unit
        if inner % across or outer % rows:
            raise ValueError(f"boxes of {across} x {rows} do not fill {inner} x {outer}")
        units = [(line, along) for line in range(outer) for along in range(0, inner, unit)]
        places = [
            layout.start
            + (along // across * (outer // rows) + line // rows) * self.size
            + line % rows * pitch
            + along % across * layout.width // 8
            for line, along in units
        ]
        expected = itertools.chain.from_iterable(layout.units())
        for (line, along), ours, theirs in zip(units, self.swizzled(places), expected, strict=True):
            if ours != theirs and along % across < length:
                return Difference(*((line, along) if layout.majorness == "K" else (along, line)), ours, theirs)
        return None

    # --- the tensor ---------------------------------------------------------------------------------------------------------

    def lines(self, at: Sequence[int], offsets: Sequence[int] = (), *, store: bool = False) -> Iterator[tuple[int, ...]]:
        """The coordinates in the tensor of the first element of each line of a copy, in the order of the image.

        Args:
            at: the coordinates that the instruction gives; of ``gather4`` the one along dimension 0, then one for each row.
            offsets: distances along W, H, D of im2col; ``wOffset`` of im2col::w.
            store: whether the copy goes to global memory, which allows less.

        Raises:
            ValueError: other lengths than the tensor's.
            IllegalBoxError: coordinates at which the copy traps.
        """
        start = _numbers("at", at, len(self.shape) + max(self._mode.rows - 1, 0))
        if self._mode.rows:
            yield from self._gathered(start, store=store)
            return
        dims = self.pixel_dimensions
        moved = _numbers("offsets", offsets or (0,) * len(dims), len(dims))
        self._obey(*_OF_COPY, at=start, offsets=moved, store=int(store), load=int(not store))
        if not self.of_pixels:
            yield from self._box_lines(start)
            return
        for place in self._of_copy(start):
            read = list(place)
            for dim, offset in zip(dims, moved, strict=True):
                read[dim] += offset
            yield tuple(read)

    def _gathered(self, start: tuple[int, ...], *, store: bool) -> Iterator[tuple[int, ...]]:
        """The first element of each of several rows that have a coordinate each."""
        for row in start[1:]:
            self._obey(*_OF_COPY, at=(start[0], row), store=int(store), load=int(not store))
            yield start[0], row

    def _of_copy(self, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The coordinates of the pixels of a copy of im2col: its own, then the ones after each part of them, as the halo."""
        places = list(itertools.islice(self._pixels(start), self.pixels + self.halo))
        yield from places[: self.pixels]
        part = self._mode.halo_every or self.pixels
        for step, after in itertools.product(range(self.halo), range(part, self.pixels + 1, part)):
            yield places[after + step]

    def _pixels(self, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The coordinates of pixels of im2col from one on, without end."""
        place = list(start)
        while True:
            yield tuple(place)
            for dim, low, high in zip(self.pixel_dimensions, self.lower, self.upper, strict=True):
                place[dim] += self.element_strides[dim]
                if place[dim] < self.shape[dim] + high:
                    break
                place[dim] = low
            else:
                place[-1] += self.element_strides[-1]

    def neighbour(self, at: Sequence[int], across: int, down: int) -> tuple[int, ...]:
        """The coordinates of another box of a matrix: some boxes farther along its rows in memory, and some farther from row to row.

        The rows of a matrix run along dimension 0, with interleave along the slices of channels.  From row to row boxes follow each other
        along the one other dimension in which a box has several elements; the pixels of im2col go on.

        Raises:
            ValueError: other lengths than the tensor's, or boxes that follow each other along several dimensions.
        """
        if self._mode.rows:
            raise ValueError(f"the rows of {self.mode} have coordinates of their own: they follow no other box")
        place = list(_numbers("at", at, len(self.shape)))
        if self.of_pixels:
            place = list(next(itertools.islice(self._pixels(tuple(place)), down * self.pixels, None)))
        elif down:
            along = [dim for dim, count in enumerate(self.counts) if dim >= (not self._unit) and count > 1] or [int(not self._unit)]
            if len(along) > 1:
                extents = " x ".join(map(str, self.box))
                raise ValueError(f"boxes of {extents} do not follow each other along one dimension: take one as high as the matrix")
            place[along[0]] += down * self.counts[along[0]] * self.element_strides[along[0]]
        place[-2 if self._unit else 0] += across * (1 if self._unit else self.rows.length)
        return tuple(place)

    def offset(self, place: Sequence[int], element: int = 0) -> int | None:
        """Bits from the tensor's address to the element at some coordinates, with interleave to one of the slice there.

        None outside of the tensor.
        """
        if not all(0 <= number < size for number, size in zip(place, self.shape, strict=True)):
            return None
        first, *others = place
        bits = first * (self._unit * 8 or self._type.bits) + element * self._type.bits
        return bits + 8 * sum(number * stride for number, stride in zip(others, self.strides, strict=True))

    @property
    def _step(self) -> int:
        """The step through the tensor along dimension 0: only boxes of interleaved tensors have one."""
        return self.element_strides[0] if self._unit and self.mode == "tiled" else 1

    def source(self, at: Sequence[int], offsets: Sequence[int] = (), *, point: Mapping[str, int]) -> tuple[int, ...]:
        """The coordinates in the tensor, which may lie outside of it, of an element of the box.

        ``point`` has its number on each of :attr:`axes`; 0 where an axis is not given.

        Raises:
            ValueError: an unknown axis, a number beyond its size, or other lengths than the tensor's.
            IllegalBoxError: coordinates at which the copy traps.
        """
        first, *outer = self._point(point)[bool(self._unit) :]
        row = 0
        for number, size in zip(reversed(outer), reversed(self.counts[1:]), strict=True):
            row = row * size + number
        start = next(itertools.islice(self.lines(at, offsets), row, None))
        return (start[0] + first * self._step, *start[1:])

    def _box_lines(self, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for number in range(math.prod(self.counts[1:])):
            place = list(start)
            for dim, (size, step) in enumerate(zip(self.counts[1:], self.element_strides[1:], strict=True), 1):
                number, digit = divmod(number, size)
                place[dim] += digit * step
            yield tuple(place)

    def call(self, tensor: str = "tensor", name: str = "map") -> str:
        """The call of the driver that makes the tensor map, in C."""
        interleave = next(each for each in self._maps.interleaves if each.name == self.interleave)

        def array(kind: str, values: Sequence[int]) -> str:
            return f"({kind}[]){{{', '.join(map(str, values))}}}"

        extents = [array("cuuint32_t", self.box)]
        if self.of_pixels:
            corners = [str(*each) if self._mode.wide else array("int", each) for each in (self.lower, self.upper)]
            extents = [*corners, str(self.channels), str(self.pixels)]
        strides = array("cuuint64_t", self.strides) if self.strides else "NULL"
        lines = [
            [f"&{name}", self.data_type, str(len(self.shape)), tensor],
            [array("cuuint64_t", self.shape), strides, *extents, array("cuuint32_t", self.element_strides)],
            [interleave.cuda, *filter(None, [self._mode.wide]), self._cuda_swizzle, "CU_TENSOR_MAP_L2_PROMOTION_NONE", self._fill.cuda],
        ]
        arguments = ",\n    ".join(", ".join(line) for line in lines)
        return f"{self._mode.function}({arguments})"


def _numbers(name: str, values: Sequence[int], length: int | None = None) -> tuple[int, ...]:
    """Integers, checked; as many as ``length`` says."""
    numbers = tuple(integer(f"{name}[{index}]", value) for index, value in enumerate(values))
    if length is not None and len(numbers) != length:
        entries = "1 entry" if len(numbers) == 1 else f"{len(numbers)} entries"
        raise ValueError(f"{name} has {entries}; it takes {length}: {_COUNTED[name]}")
    return numbers


def _typed(spec: Spec, maps: TensorMaps, given: ElementType | str, *, padded: bool) -> tuple[ElementType | None, TensorMapType]:
    """An element type and the data type that carries it, or a data type by itself.

    Raises:
        ValueError: an unknown type, or one that cannot be padded or must be.
    """
    name = given.name if isinstance(given, ElementType) else type_named(spec, given)
    element = next((each for each in spec.types.elements if each.name == name), None)
    if element is None:
        short = [each.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_") for each in maps.types]
        one_of("type", name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_"), [*short, *(each.name for each in spec.types.elements)])
        return None, next(each for each in maps.types if each.name.endswith(f"_TYPE_{name.removeprefix('CU_TENSOR_MAP_DATA_TYPE_')}"))
    fitting = [each for each in maps.types if element.name in each.elements] or [each for each in maps.types if each.name == element.tma]
    for each in fitting:
        if bool(each.group) == padded:
            return element, each
    state = "without padding only: leave out padded=True" if padded else "padded only: padded=True"
    raise ValueError(f"TMA copies {element.name} {state}")


def spans(database: DatabaseLike = None) -> dict[int, int]:
    """The bytes that each swizzle of tensor maps permutes, by its number; 0 for none."""
    return {each.value: _pattern(memory_of(database), each)[0] for each in tensor_maps_of(database).swizzles}


def _pattern(memory: SharedMemory, swizzle: TensorMapSwizzle) -> tuple[int, str, str]:
    """The bytes that a swizzle permutes (0: none), its formula, and the driver's name."""
    if swizzle.formula:
        return swizzle.bytes, swizzle.formula, swizzle.cuda
    mode = mode_of(memory, swizzle.name)
    span = 0 if mode.bytes == memory.alignment else mode.bytes
    return span, (mode.formula or memory.swizzle_formula) if span else "address", mode.tma
