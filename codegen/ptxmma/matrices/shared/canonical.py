"""Canonical layouts of matrices in shared memory, and the addresses of their elements (PTX ISA 9.7.15.5.1.2).

Addresses alone, without NumPy; :mod:`ptxmma.matrices.shared_memory` moves matrices.  A matrix operand has its rows (A) or columns (B) along
x and its depth along k.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ptxmma.arguments import in_range, integer
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.lookup import codec
from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.user_names import swizzle_named
from ptxmma.catalog.layouts import cute_layout
from ptxmma.catalog.layouts.cute_layout import CuteLayout, Modes
from ptxmma.matrices.shared.readable_types import element_of, memory_of, paddings
from ptxmma.model import CanonicalLayout, ElementType, SharedMemory, Swizzle, formula
from ptxmma.model.digit_map import DigitMap
from ptxmma.model.digits import NotDigitsError

#: The strides of a canonical layout, and the fields of a descriptor that hold them.
STRIDES = {"lbo": "leading_byte_offset", "sbo": "stride_byte_offset"}


class Canonical(NamedTuple):
    """A canonical layout with one of its swizzle modes."""

    memory: SharedMemory
    mode: Swizzle
    layout: CanonicalLayout

    def offset(self, x: Any, k: Any, lbo: int, sbo: int) -> Any:
        """Bytes from the start to a place, before the swizzle; the contiguous dimension counts bytes.

        Strides with which groups overlap are allowed, as instructions allow them.
        """
        return formula.evaluate(formula.parse(self.layout.offset), {"x": x, "k": k, "lbo": lbo, "sbo": sbo, "span": self.mode.bytes})

    def digits(self, x: int, k: int, lbo: int, sbo: int) -> DigitMap:
        """The same as a map: x and k are sizes, of which the contiguous one counts bytes.

        Raises:
            NotDigitsError: strides with which places overlap, or panels lie between groups without dividing them.
        """
        return DigitMap.of(self.layout.terms, {"x": x, "k": k}, ("byte",), {"lbo": lbo, "sbo": sbo, "span": self.mode.bytes})

    def swizzled(self, address: Any, base_offset: int) -> Any:
        """The address where the byte at an address lies after the swizzle; applied twice, it leads back."""
        known = {"address": address, "base_offset": base_offset, "span": self.mode.bytes}
        return formula.evaluate(formula.parse(self.mode.formula or self.memory.swizzle_formula), known)

    def used(self, x: int, k: int, bits: int) -> set[str]:
        """The strides, ``"lbo"`` and ``"sbo"``, on which the address of some element of an operand of these extents depends."""
        inner, outer = (k, x) if self.layout.contiguous == "k" else (x, k)
        several = {
            self.layout.panel_stride: inner * bits > self.mode.bytes * 8,
            self.layout.group_stride: outer > self.layout.lines,
        }
        return {stride for stride, used in several.items() if used}


class Packing(NamedTuple):
    """The elements of a line: so many in each ``unit`` bytes, one after the other from the low bits up."""

    bits: int  # the width of an element
    per_unit: int  # elements of a unit: as many as fill it, or fewer where they are padded
    unit: int  # bytes: the alignment

    def byte(self, element: Any) -> Any:
        """The byte of the line in which an element begins."""
        return element // self.per_unit * self.unit + element % self.per_unit * self.bits // 8

    def bit(self, element: Any) -> Any:
        """The lowest bit of an element in that byte."""
        return element % self.per_unit * self.bits % 8

    def element(self, byte: int, bit: int) -> int | None:
        """The element that has a bit of a byte of the line; None for padding."""
        inside = (byte % self.unit * 8 + bit) // self.bits
        return byte // self.unit * self.per_unit + inside if inside < self.per_unit else None

    def size(self, elements: int) -> int:
        """The bytes of so many elements, which fill whole units."""
        return elements // self.per_unit * self.unit

    def fitting(self, size: int) -> int:
        """The elements in so many bytes, which are whole units."""
        return size // self.unit * self.per_unit


def mode_of(memory: SharedMemory, name: str) -> Swizzle:
    """The swizzle mode of a name; ``ValueError`` with the known ones for an unknown name."""
    for mode in memory.swizzles:
        if mode.name == name:
            return mode
    raise ValueError(f"unknown swizzle {name!r}; known: {', '.join(mode.name for mode in memory.swizzles)}")


def canonical(memory: SharedMemory, majorness: str, swizzle: str) -> Canonical:
    """The canonical layout of a majorness and a swizzle.

    Raises:
        ValueError: an unknown majorness or swizzle.
    """
    mode = mode_of(memory, swizzle)
    for layout in memory.layouts:
        if layout.majorness == majorness and swizzle in layout.swizzles:
            return Canonical(memory, mode, layout)
    known = dict.fromkeys(layout.majorness for layout in memory.layouts if swizzle in layout.swizzles)
    raise ValueError(f"unknown majorness {majorness!r}; known for swizzle {swizzle!r}: {', '.join(known)}")


def matrix_codec(family: str, database: DatabaseLike, target: str | None = None) -> Codec:
    """The codec of the matrix descriptors of a family, by default of the first that has some; for any target by default."""
    return codec("matrix", matrix_format(catalog(database).database.spec, family).family, target=target, database=database)


def aligned(name: str, value: Any, multiple: int) -> int:
    """An address, checked."""
    address = integer(name, value)
    if address < 0 or address % multiple:
        raise ValueError(f"{name} = {address} must be a multiple of {multiple} bytes, 0 or more")
    return address


def extent(name: str, value: Any) -> int:
    """An extent of a matrix, checked."""
    size = integer(name, value)
    if size < 1:
        raise ValueError(f"{name} = {size}: an extent is at least 1")
    return size


def packing(element: ElementType, family: str, database: DatabaseLike, *, padded: bool) -> Packing:
    """The way in which elements follow each other in a line that the instructions of a family read."""
    unit = memory_of(database).alignment
    group = next((entry.group for entry in paddings(family, database) if element.name in entry.elements), 0) if padded else 0
    return Packing(element.bits, group or unit * 8 // element.bits, unit)


class Geometry:
    """The place of a whole matrix in a canonical layout: strides and size.

    The dimension that the majorness names is contiguous; it is cut into panels of ``span`` bytes, the swizzle's width.  Inside a panel
    the lines of the other dimension follow each other, in groups (atoms) of 8.  One of ``lbo`` and ``sbo`` leads from panel to panel,
    the other from group to group: which one is which, the canonical layout says.  By default all is dense, which is what TMA boxes
    whose inner extent is the span write.  :class:`ptxmma.matrices.shared_memory.SharedLayout` lists the attributes.
    """

    def __init__(
        self,
        element: ElementType | str,
        majorness: str,
        swizzle: str,
        x: int,
        k: int,
        *,
        lbo: int | None = None,
        sbo: int | None = None,
        start: int = 0,
        base_offset: int = 0,
        padded: bool = False,
        family: str = "",
        database: DatabaseLike = None,
    ) -> None:
        """Take the arguments of :class:`ptxmma.matrices.shared_memory.SharedLayout`; :meth:`units` checks whether elements overlap.

        Raises:
            TypeError: an extent, stride, start or base offset that is not an integer.
            ValueError: a type that is unknown or cannot be read with that majorness, extents that do not fill panels and groups or
                lead out of a descriptor's reach, a start or stride that is not aligned, a base offset that a descriptor cannot hold.
        """
        memory, swizzle = memory_of(database), swizzle_named(swizzle)
        self._canonical = canonical(memory, majorness, swizzle)
        self._database = database
        self._codec = matrix_codec(family, database)
        self.family = self._codec.format.family
        self.element = element_of(element, majorness, database, family=self.family, swizzle=swizzle, padded=padded)
        self.padded = padded
        self.majorness, self.swizzle = majorness, swizzle
        self.x, self.k = extent("x", x), extent("k", k)
        span = self._canonical.mode.bytes
        self._packing = packing(self.element, self.family, database, padded=padded)
        self.panel = self._packing.fitting(span)
        self.start = aligned("start", start, span)
        self._check_extents()
        self.lbo, self.sbo = self._strides(lbo, sbo)
        self.base_offset = integer("base_offset", base_offset)
        self._codec.stored("base_offset", self.base_offset)
        # The swizzle moves bytes only within aligned spans.
        self.size = (int(self._offset(self.x - 1, self.k - 1)) // span + 1) * span
        self._check_reach()
        self._finish()

    def _finish(self) -> None:
        """Add what a subclass has beside the strides and the size."""

    @property
    def memory(self) -> SharedMemory:
        """The shared memory in which it lies."""
        return self._canonical.memory

    @property
    def per_unit(self) -> int:
        """Elements in the 16 bytes that a swizzle moves together."""
        return self._packing.per_unit

    @property
    def width(self) -> int:
        """Bits between neighbouring elements, on the average in one alignment."""
        return self._packing.unit * 8 // self._packing.per_unit

    @property
    def digits(self) -> DigitMap:
        """The image before the swizzle, from its start on, as digits of x and k; the contiguous dimension counts bytes.

        Raises:
            ValueError: strides with which panels lie between groups.
        """
        inner, outer = self._ordered
        try:
            return self._canonical.digits(*self._place(self._packing.size(inner), outer), self.lbo, self.sbo)
        except NotDigitsError:
            raise ValueError(f"lbo = {self.lbo}, sbo = {self.sbo}: panels lie between groups, so it has no digits") from None

    def to_cute(self) -> CuteLayout:
        """The layout in CuTe's sense: the address of element (x, k), counted in elements; of padded ones, in bytes.

        Raises:
            ValueError: strides with which panels lie between groups, or a base offset, which no swizzle of CuTe subtracts.
        """
        if self.base_offset:
            raise ValueError(f"a swizzle of CuTe follows absolute addresses; this one subtracts base_offset = {self.base_offset}")
        inner, fitting = self._canonical.layout.contiguous, self._packing.fitting
        modes: dict[str, list[tuple[int, int]]] = {"x": [], "k": []}
        for digit in self.digits.digits:
            first = digit.axis == inner and digit.step == 1  # the bytes of a line in a panel
            modes[digit.axis].append((fitting(digit.size), 1) if first else (digit.size, fitting(digit.weight)))
        shape, stride = (tuple(_mode([digit[part] for digit in each]) for each in modes.values()) for part in (0, 1))
        return CuteLayout(shape, stride, _cute_swizzle(self._canonical.mode, self._packing), fitting(self.start))

    def address(self, x: Any, k: Any) -> Any:
        """Absolute address of the byte in which element (x, k) starts, swizzled; nothing is checked."""
        return self._canonical.swizzled(self.start + self._offset(x, k), self.base_offset)

    def bit(self, x: Any, k: Any) -> Any:
        """The lowest bit of element (x, k) in the byte in which it starts; nothing is checked."""
        return self._packing.bit(k if self._canonical.layout.contiguous == "k" else x)

    def coords(self, address: int, bit: int = 0) -> tuple[int, int] | None:
        """The element (x, k) that has a bit of the byte at an absolute address: the inverse of :meth:`address` and :meth:`bit`.

        None for a place outside of the image, and for padding.

        Raises:
            TypeError: something that is not an integer.
            ValueError: another bit than 0 to 7, or strides with which panels lie between groups.
        """
        before = self._canonical.swizzled(integer("address", address), self.base_offset)
        read = self.digits.read({"byte": before - self.start})
        if not read.fits or read.rest["byte"]:
            return None
        byte, other = self._place(read.point["x"], read.point["k"])  # as an exchange it is its own inverse
        along = self._packing.element(byte, in_range("bit", integer("bit", bit), 8))
        return None if along is None else self._place(along, other)

    def units(self) -> list[list[int]]:
        """Addresses of each 16 bytes of each line, swizzled; a line is a row, of an MN-major matrix a column.

        Raises:
            ValueError: strides with which elements overlap.
        """
        inner, outer = self._ordered
        along = range(0, self._packing.size(inner), self._packing.unit)
        places = self._place(list(along) * outer, [line for line in range(outer) for _ in along])
        offsets = self._canonical.offset(*places, self.lbo, self.sbo)
        addresses = self._canonical.swizzled([self.start + offset for offset in offsets], self.base_offset)
        first: dict[int, int] = {}
        for unit, address in enumerate(addresses):
            if first.setdefault(address, unit) != unit:
                raise self._overlap(first[address], unit)
        return [addresses[begin : begin + len(along)] for begin in range(0, len(addresses), len(along))]

    def _overlap(self, *units: int) -> ValueError:
        """The error for strides with which two units, counted line by line, have one address."""
        each = self._ordered[0] // self.per_unit
        one, other = (self._place(unit % each * self.per_unit, unit // each) for unit in units)
        return ValueError(
            f"lbo = {self.lbo}, sbo = {self.sbo}: elements {one} and {other} would lie at one address; "
            f"without lbo and sbo the layout is dense"
        )

    @property
    def _ordered(self) -> tuple[int, int]:
        """The extents of the contiguous dimension and of the other."""
        return (self.k, self.x) if self.majorness == "K" else (self.x, self.k)

    @property
    def _names(self) -> tuple[str, str]:
        """The names of the contiguous dimension and of the other."""
        return ("k", "x") if self.majorness == "K" else ("x", "k")

    def _place(self, contiguous: Any, other: Any) -> tuple[Any, Any]:
        """A position by dimensions in memory as (x, k)."""
        return (other, contiguous) if self.majorness == "K" else (contiguous, other)

    def _offset(self, x: Any, k: Any) -> Any:
        """Bytes from the start to the byte in which element (x, k) starts, before the swizzle."""
        contiguous, other = self._place(x, k)  # as an exchange it is its own inverse
        return self._canonical.offset(*self._place(self._packing.byte(contiguous), other), self.lbo, self.sbo)

    def _check_extents(self) -> None:
        span, lines = self._canonical.mode.bytes, self._canonical.layout.lines
        (inner, outer), (inner_name, outer_name) = self._ordered, self._names
        if inner % self.panel:
            fitting = [mode.name for mode in self._canonical.memory.swizzles if inner * self.width % (mode.bytes * 8) == 0]
            hint = f"; swizzles that take {inner}: {', '.join(fitting)}" if fitting else ""
            raise ValueError(
                f"{inner_name} = {inner} must be a multiple of {self.panel}: "
                f"swizzle {self.swizzle} has panels of {span} bytes{hint}; store_tiles_xk(pad=True) pads matrices of other sizes"
            )
        if outer % lines:
            raise ValueError(
                f"{outer_name} = {outer} must be a multiple of {lines}, the lines of an atom; "
                f"store_tiles_xk(pad=True) pads matrices of other sizes"
            )

    def _check_reach(self) -> None:
        end = self._codec.reach("start_address")
        if self.start + self.size > end:
            raise ValueError(
                f"the image of {self.x} x {self.k} would reach from {self.start} to {self.start + self.size}; descriptors reach the "
                f"addresses below {end}: take smaller tiles"
            )

    def _strides(self, lbo: int | None, sbo: int | None) -> tuple[int, int]:
        """LBO and SBO: as given, or the strides of a dense image."""
        layout = self._canonical.layout
        strides = {name: integer(name, value) for name, value in (("lbo", lbo), ("sbo", sbo)) if value is not None}
        for name, value in strides.items():
            self._codec.stored(STRIDES[name], value)
        group = strides.setdefault(layout.group_stride, layout.lines * self._canonical.mode.bytes)
        strides.setdefault(layout.panel_stride, self._ordered[1] // layout.lines * group)
        return strides["lbo"], strides["sbo"]


def _cute_swizzle(mode: Swizzle, packing: Packing) -> cute_layout.Swizzle | None:
    """The swizzle of a mode with elements in place of bytes; None where nothing is moved."""
    bits, base, shift = map(int, re.findall(r"\d+", mode.cute))
    return cute_layout.Swizzle(bits, base + packing.per_unit.bit_length() - packing.unit.bit_length(), shift) if bits else None


def _mode(numbers: list[int]) -> Modes:
    """Sizes or strides as CuTe nests them: one by itself."""
    return numbers[0] if len(numbers) == 1 else tuple(numbers)
