"""Canonical layouts of matrices in shared memory, and the addresses of their elements (PTX ISA 9.7.15.5.1.2).

Addresses alone, without NumPy; :mod:`ptxmma.matrices.shared_memory` moves matrices.  A matrix operand has its rows (A) or columns (B) along
x and its depth along k.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxmma.arguments import integer
from ptxmma.catalog.descriptor_codec import Codec
from ptxmma.catalog.descriptor_lookup import codec
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.shared_formats import matrix_format
from ptxmma.matrices.shared.readable_types import element_of, memory_of, paddings
from ptxmma.model import CanonicalLayout, ElementType, SharedMemory, Swizzle, formula

#: The strides of a canonical layout, and the fields of a descriptor that hold them.
STRIDES = {"lbo": "leading_byte_offset", "sbo": "stride_byte_offset"}


class Canonical(NamedTuple):
    """A canonical layout with one of its swizzle modes."""

    memory: SharedMemory
    mode: Swizzle
    layout: CanonicalLayout

    def offset(self, x: Any, k: Any, bits: int, lbo: int, sbo: int) -> Any:
        """Bytes from the start to element (x, k), before the swizzle."""
        known = {"x": x, "k": k, "bits": bits, "lbo": lbo, "sbo": sbo, "span": self.mode.bytes}
        return formula.evaluate(formula.parse(self.layout.offset), known)

    def swizzled(self, address: Any, base_offset: int) -> Any:
        """The address where the byte at an address lies after the swizzle."""
        known = {"address": address, "base_offset": base_offset, "span": self.mode.bytes}
        return formula.evaluate(formula.parse(self.mode.formula or self.memory.swizzle_formula), known)

    @property
    def lines(self) -> int:
        """Lines of ``span`` bytes in an atom: rows for K-major, columns of depth for MN-major."""
        return self.mode.atom_k[0] if self.layout.majorness == "K" else self.mode.atom_mn[1]

    def used(self, x: int, k: int, bits: int) -> set[str]:
        """Which of ``"lbo"`` and ``"sbo"`` the address of any element of an operand of these extents depends on."""
        last = (x - 1, k - 1, bits)
        without = self.offset(*last, lbo=0, sbo=0)
        return {stride for stride in STRIDES if self.offset(*last, **{"lbo": 0, "sbo": 0, stride: 1}) != without}


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


def matrix_codec(family: str, database: DatabaseLike) -> Codec:
    """The codec of the matrix descriptors of a family; by default of the first that has some."""
    return codec("matrix", matrix_format(catalog(database).database.spec, family).family, database=database)


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


def stored_width(element: ElementType, family: str, database: DatabaseLike, *, padded: bool) -> int:
    """Bits between neighbouring elements, on the average of those that lie in one alignment."""
    group = next((entry.group for entry in paddings(family, database) if element.name in entry.elements), 0) if padded else 0
    return memory_of(database).alignment * 8 // group if group else element.bits


class Geometry:
    """Where a whole matrix lies in a canonical layout: strides and size.

    The dimension that the majorness names is contiguous; it is cut into panels of ``span`` bytes, the swizzle's width.  Inside a panel
    the lines of the other dimension follow each other, in groups (atoms) of 8.  One of ``lbo`` and ``sbo`` leads from panel to panel,
    the other from group to group: which one is which, the canonical layout says.  By default all is dense, which is what TMA boxes
    whose inner extent is the span write.  The attributes are those of :class:`ptxmma.matrices.shared_memory.SharedLayout`.
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
        """As of :class:`ptxmma.matrices.shared_memory.SharedLayout`, but only :meth:`units` checks whether elements overlap.

        Raises:
            TypeError: an extent, stride, start or base offset that is not an integer.
            ValueError: a type that is unknown or cannot be read with that majorness, extents that do not fill panels and groups or
                lead out of a descriptor's reach, a start or stride that is not aligned, a base offset that a descriptor cannot hold.
        """
        memory = memory_of(database)
        self._canonical = canonical(memory, majorness, swizzle)
        self._database = database
        self._codec = matrix_codec(family, database)
        self.family = self._codec.format.family
        self.element = element_of(element, majorness, database, family=self.family, swizzle=swizzle, padded=padded)
        self.padded = padded
        self.majorness, self.swizzle = majorness, swizzle
        self.x, self.k = extent("x", x), extent("k", k)
        span = self._canonical.mode.bytes
        #: Bits between neighbouring elements, on the average of those that lie in one alignment.
        self.width = stored_width(self.element, self.family, database, padded=padded)
        self.panel = span * 8 // self.width
        self.start = aligned("start", start, span)
        self._check_extents()
        self.lbo, self.sbo = self._strides(lbo, sbo)
        self.base_offset = integer("base_offset", base_offset)
        self._codec.stored("base_offset", self.base_offset)
        # The swizzle moves bytes only within aligned spans.
        self.size = (int(self._offset(self.x - 1, self.k - 1)) // span + 1) * span
        self._check_reach()

    @property
    def per_unit(self) -> int:
        """Elements in the 16 bytes that a swizzle moves together."""
        return self._canonical.memory.alignment * 8 // self.width

    def address(self, x: Any, k: Any) -> Any:
        """Absolute address of the byte in which element (x, k) starts, swizzled; nothing is checked."""
        contiguous, other = (k, x) if self.majorness == "K" else (x, k)
        first, inside = contiguous - contiguous % self.per_unit, contiguous % self.per_unit
        unit = self._canonical.swizzled(self.start + self._offset(*self._place(first, other)), self.base_offset)
        return unit + inside * self.element.bits // 8

    def bit(self, x: Any, k: Any) -> Any:
        """The lowest bit of element (x, k) in the byte in which it starts; nothing is checked."""
        return (k if self.majorness == "K" else x) % self.per_unit * self.element.bits % 8

    def units(self) -> list[list[int]]:
        """Addresses of each 16 bytes of each line, swizzled; a line is a row, of an MN-major matrix a column.

        Raises:
            ValueError: strides with which elements overlap.
        """
        inner, outer = self._ordered
        along = range(0, inner, self.per_unit)
        offsets = self._offset(*self._place(list(along) * outer, [line for line in range(outer) for _ in along]))
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
        return self._canonical.offset(x, k, self.width, self.lbo, self.sbo)

    def _check_extents(self) -> None:
        span, lines = self._canonical.mode.bytes, self._canonical.lines
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
        """LBO and SBO: as given, or those of a dense image."""
        lines = self._canonical.lines
        # The stride that counts at the first element of the second panel leads from panel to panel.
        second = self._place(self.panel, 0)
        leads = self._canonical.offset(*second, self.width, 1, 0) > self._canonical.offset(*second, self.width, 0, 0)
        panels, groups = ("lbo", "sbo") if leads else ("sbo", "lbo")
        strides = {name: integer(name, value) for name, value in (("lbo", lbo), ("sbo", sbo)) if value is not None}
        for name, value in strides.items():
            self._codec.stored(STRIDES[name], value)
        group = strides.setdefault(groups, lines * self._canonical.mode.bytes)
        strides.setdefault(panels, self._ordered[1] // lines * group)
        return strides["lbo"], strides["sbo"]
