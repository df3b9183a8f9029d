"""One operand of one instruction, as users see it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ptxmma.arguments import in_range
from ptxmma.model import ElementType, Granularity, Layout

if TYPE_CHECKING:
    from ptxmma.arrays.tiling import Tiling


class Operand(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One operand of one instruction.

    Attributes:
        name: the manual's name, e.g. ``"a"`` or ``"imm-scale-a"``.
        kind: its role, a key of ``ptxmma.catalog.operands.ROLES``, e.g. ``"fragment"``.
        title: what it is, in words.
        of: the operand that it describes, e.g. ``"a"`` for ``"a-desc"``; ``""`` for one that describes no other.
        access: ``"read"``, ``"write"`` or ``"read-write"``.
        element_type: type of its elements, e.g. ``"e4m3"``; None for operands without elements.
        element: the spec's entry of that type.
        bits: width of an element's container in bits; 0 without elements.
        shift: lowest bit of the element in its container.
        sizes: the size of each axis of its layout, e.g. ``{"row": 16, "col": 8}`` (a sparse A is packed: K/2 columns).
        elements: elements that each thread holds; 0 without elements.
        registers: registers of each thread; 0 for an operand that is always an immediate.
        register_types: PTX register types that assemblers take, the usual one first.
        c_type: C type of a register in the CUDA wrappers, e.g. ``"uint32_t"``; ``""`` for an operand that is always an immediate.
        constraint: inline-asm constraint: ``"r"``, ``"f"``, ``"l"``, ``"d"``, ``"h"`` or ``"n"`` (immediate only).
        immediates: the legal immediate values, a range where they are many; None where no immediate is admitted.
        meanings: what immediates mean, e.g. ``{"K": 0, "MN": 1}``.
        single: whether it is one register without braces, although it holds elements.
        takes_register: whether a register may stand there.
        default: the value that wrappers assume for an immediate; None where it must be given.
        uniform: ``"warp"`` or ``"warpgroup"`` where all its threads must pass one value.
        alignment: addresses: bytes to whose multiples they must be aligned; 0 for other operands.
        row_bytes: addresses: bytes of the row that begins at each; 0 for other operands.
        writes: addresses: whether the instruction writes the memory there.
        unit: strides: what they count, e.g. ``"elements"``; ``""`` for other operands.
        layout: the layout of its elements, where it has one.
        observed: the target on which that layout was measured, e.g. ``"sm_90"``; ``""`` where the manual states it.
        sparsity: for a sparse A, the pattern of its zeros.
        source: section of the PTX ISA.
    """

    name: str
    kind: str
    title: str
    of: str = ""
    access: str
    source: str
    element_type: str | None = None
    element: ElementType | None = None
    bits: int = 0
    shift: int = 0
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    elements: int = 0
    registers: int = 0
    register_types: tuple[str, ...] = ()
    c_type: str = ""
    constraint: str = ""
    immediates: Sequence[int] | None = None
    meanings: dict[str, int] = msgspec.field(default_factory=dict)
    single: bool = False
    takes_register: bool = True
    default: int | None = None
    uniform: str = ""
    alignment: int = 0
    row_bytes: int = 0
    writes: bool = False
    unit: str = ""
    layout: Layout | None = None
    observed: str = ""
    sparsity: Granularity | None = None

    def __repr__(self) -> str:
        contents = f"{self.elements} x {self.element_type}" if self.elements else self.kind
        carried = f" in {self.registers} x {self.register_types[0]}" if self.registers else ""
        return f"<Operand {self.name}: {contents}{carried}>"

    @property
    def axes(self) -> tuple[str, ...]:
        """What :meth:`coords` returns and :meth:`locate` takes, in order: ``("row", "col")``; empty without a layout."""
        return self.layout.coordinates if self.layout is not None else ()

    @property
    def listed(self) -> bool:
        """Whether PTX has it as a list of registers in braces."""
        return bool(self.elements) and not self.single

    @property
    def rows(self) -> int:
        """Rows of the matrix whose elements it holds; 0 without one."""
        return self._along(0)

    @property
    def cols(self) -> int:
        """Columns of the matrix whose elements it holds; 0 without one."""
        return self._along(1)

    def _along(self, side: int) -> int:
        """Rows (0) or columns (1) of its matrix."""
        if self.layout is None:
            return 0
        return self.sizes.get(self.layout.plane[side], int(self.layout.kind == "fragment"))

    @property
    def computations(self) -> int:
        """Independent products that the instruction computes: 4 for ``m8n8k4`` with f16, else 1."""
        return self.sizes.get("computation", 1)

    @property
    def elements_per_register(self) -> int:
        """Elements in one register, e.g. 2 for f16 in b32; 0 without elements."""
        return self.elements // max(self.registers, 1)

    def coords(self, lane: Any, i: Any = 0) -> Any:
        """The place of element ``i`` of thread ``lane``, a number for each of :attr:`axes`: ``(row, col)``.

        ``lane`` runs over 0..31, for warpgroup instructions over 0..127; ``i`` over 0..elements-1, from the lowest bits of register 0 on.
        For a sparse A, ``col`` is the column in the packed matrix.  Integers or arrays; arrays (whatever has a shape) are not checked, and
        their integers need 16 bits or more.  Of an address, which has no elements: the row of memory that begins at the address of thread
        ``lane``, or None where the instruction ignores that address.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: the operand has no layout, a scalar is out of range, or an array has threads whose addresses are ignored.
        """
        layout = self._placed()
        lane = in_range("lane", lane, layout.threads)
        if "i" not in layout.to_axes.inputs:
            in_range("i", i, 1)
            ignored = lane >> layout.to_axes.inputs["lane"]
            if isinstance(lane, int) and ignored:
                return None
            if not isinstance(lane, int) and ignored.any():
                last = (1 << layout.to_axes.inputs["lane"]) - 1
                raise ValueError(f"lane of operand {self.name!r} leaves 0..{last}, the threads whose addresses count")
        place = layout.to_axes.apply({"lane": lane, "i": in_range("i", i, max(self.elements, 1))})
        return tuple(place[axis] for axis in self.axes)

    def computation(self, lane: Any, i: Any) -> Any:
        """Which of the instruction's independent products the element belongs to; 0 except for ``m8n8k4`` with f16."""
        layout = self.fragment()
        place = layout.to_axes.apply({"lane": in_range("lane", lane, layout.threads), "i": in_range("i", i, self.elements)})
        return place.get("computation", 0)

    def locate(self, *coordinates: Any, **named: Any) -> Any:
        """``(lane, i)`` of the element at a place: the inverse of :meth:`coords`; of an address, ``lane``.

        The coordinates are those of :attr:`axes`, in order or by name: ``locate(9, 3)``, ``locate(row=9, col=3)``.  Where an element is
        held in copies, it is the first of them; with ``computation=``, that of one of several independent products.

        Raises:
            TypeError: a coordinate that is neither an integer nor an array, missing, unknown or given twice.
            ValueError: the operand has no layout, or a scalar lies outside the matrix.
        """
        layout = self._placed()
        place = self._place(layout, coordinates, named)
        found = layout.to_axes.inverse().apply(place)
        return (found["lane"], found["i"]) if "i" in found else found["lane"]

    def places(self, *coordinates: Any, **named: Any) -> list[Any]:
        """Every ``(lane, i)`` that holds the element at a place, ascending; of an address, every ``lane``.

        Raises:
            TypeError, ValueError: as :meth:`locate`.
        """
        layout = self._placed()
        place = self._place(layout, coordinates, named)
        for axis in layout.apart:
            place[axis] = 0
        found = [place]
        for axis in layout.apart:
            if axis not in named:
                found = [one | {axis: number} for one in found for number in range(self.sizes[axis])]
            else:
                found = [one | {axis: named[axis]} for one in found]
        back = (layout.to_axes.inverse().apply(one) for one in found)
        return sorted((one["lane"], one["i"]) if "i" in one else one["lane"] for one in back)

    def _place(self, layout: Layout, coordinates: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """The number of each axis, checked; 0 for those that tell copies and products apart and are not given."""
        names = (*self.axes, *layout.apart)
        if len(coordinates) > len(names):
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {len(coordinates)} were given")
        given = dict(zip(names, coordinates, strict=False))
        if unknown := (named.keys() - set(names)) | (named.keys() & given.keys()):
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {', '.join(sorted(unknown))} does not fit")
        given |= named
        if missing := [axis for axis in self.axes if axis not in given]:
            raise TypeError(f"operand {self.name!r} has the coordinates {', '.join(self.axes)}; {', '.join(missing)} is missing")
        return {axis: in_range(axis, given.get(axis, 0), self.sizes[axis]) for axis in layout.axes}

    def chunk(self, lane: Any, i: Any) -> Any:
        """Sparse A: the first column, in the full matrix, of the chunk that the element comes from."""
        return self._pattern().chunk_of(self._column(lane, i))

    def window(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """Sparse A: first and last column, in the full matrix, that the element's register covers (PTX ISA's firstcol, lastcol)."""
        return self._pattern().window_of(self._column(lane, i), self.elements_per_register)

    def _column(self, lane: Any, i: Any) -> Any:
        return self.coords(lane, i)[-1]

    def pack(self, matrix: Any) -> Any:
        """One tile of a matrix to the registers of all threads; batches of tiles stand in front.

        ``matrix`` has shape (..., rows, cols), of several matrices (``ldmatrix.x4``, ``m8n8k4`` with f16) (..., 4, rows, cols), and the
        dtype of the element type, or holds its bits as unsigned integers; narrow types have one element in each byte.  A torch tensor
        gives a tensor.  The result is (..., threads, registers) in the type that the CUDA wrappers have for a register; element ``i`` of
        thread ``lane`` is that of :meth:`coords`.  An element that several threads hold goes to all of them.  Padding bits of containers
        are 0.

        Raises:
            ValueError: another shape or dtype, a code that the type does not have, or an operand without elements.
        """
        from ptxmma.catalog.registers import fragments

        return fragments.pack(self, matrix)

    def unpack(self, registers: Any) -> Any:
        """What the registers of all threads hold, as a matrix: the inverse of :meth:`pack`.

        ``registers`` has shape (..., threads, registers) and any dtype of a register's size, whose bits are read; padding bits of
        containers are ignored.  Of copies of an element the first is read.  The result is (..., rows, cols), of several matrices
        (..., matrices, rows, cols), in the dtype of the element type.  A torch tensor gives a tensor; where torch has no usable dtype, as
        for 4-bit and 6-bit types, it is one of ``uint8`` codes, which :meth:`pack` takes back.

        Raises:
            ValueError: another shape, a dtype of another size, or an operand without elements.
        """
        from ptxmma.catalog.registers import fragments

        return fragments.unpack(self, registers)

    def pack_tiles(self, matrix: Any, *, pad: bool = False) -> Any:
        """A whole matrix to the registers of each of its tiles: (..., R, C) to (..., R/rows, C/cols, threads, registers).

        Args:
            matrix: as :meth:`pack` takes it, R and C multiples of ``rows`` and ``cols``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: as :meth:`pack`, or sizes that are no multiples without ``pad``.
        """
        from ptxmma.catalog.registers import fragments

        return fragments.pack_tiles(self, matrix, pad=pad)

    def unpack_tiles(self, registers: Any, shape: Sequence[int] | None = None) -> Any:
        """A whole matrix from the registers of its tiles: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, C/cols, threads, registers), as :meth:`unpack` reads them.
            shape: the matrix's own, where it was padded: all of it, or (R, C).

        Raises:
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        from ptxmma.catalog.registers import fragments

        return fragments.unpack_tiles(self, registers, shape)

    def to_cute(self) -> str:
        """CuTe's ``shape:stride`` text of its layout with its own columns, see :func:`ptxmma.catalog.interop.to_cute`.

        Raises:
            ValueError: the operand has no layout, or one of addresses.
        """
        layout = self._own_layout()
        from ptxmma.catalog import interop

        return interop.to_cute(layout, self.cols if layout.growing else None)

    def to_triton(self) -> dict[str, list[list[int]]]:
        """Triton's linear-layout bases of its layout with its own columns, see :func:`ptxmma.catalog.interop.to_triton`.

        Raises:
            ValueError: the operand has no layout, or one of addresses, or a number of columns that is no power of two.
        """
        layout = self._own_layout()
        from ptxmma.catalog import interop

        return interop.to_triton(layout, self.cols if layout.growing else None)

    def _own_layout(self) -> Layout:
        if self.layout is None:
            raise ValueError(f"operand {self.name!r} has no layout")
        return self.layout

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of its elements in the registers; worked out once."""
        from ptxmma.catalog.registers import fragments

        return fragments.tiling(self)

    def fragment(self) -> Layout:
        """The layout of its elements.

        Raises:
            ValueError: it has none.
        """
        layout = self._placed()
        if layout.kind == "address":
            raise ValueError(f"operand {self.name!r} is an address and holds no elements: coords() says which row each thread's begins")
        return layout

    def _placed(self) -> Layout:
        """The layout of its elements, or of the rows that its addresses name."""
        if self.layout is None or self.layout.kind not in ("fragment", "address"):
            raise ValueError(f"operand {self.name!r} holds no elements of a matrix")
        return self.layout

    def _pattern(self) -> Granularity:
        if self.sparsity is None:
            raise ValueError(f"operand {self.name!r} is not sparse")
        return self.sparsity
