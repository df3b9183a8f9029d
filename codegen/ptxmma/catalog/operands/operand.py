"""One operand of one instruction, and the elements of a matrix that it holds in registers."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ptxmma.arguments import in_range
from ptxmma.catalog.operands.placement import Placement
from ptxmma.model import COPY, ElementType, Granularity, Kind, Layout
from ptxmma.model.bitmap import BitMap

if TYPE_CHECKING:
    import numpy as np

    from ptxmma.arrays.elements import Array
    from ptxmma.arrays.tiling import Tiling
    from ptxmma.catalog.operands.tensor_places import TensorPlaces

#: The name that a tiling has for the number of a matrix.
_MATRIX = "matrix"


class Operand(Placement, msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One operand of one instruction.

    Attributes:
        name: the manual's name, e.g. ``"a"`` or ``"imm-scale-a"``.
        kind: its role, a key of ``ptxmma.catalog.roles.ROLES``, e.g. ``"fragment"``.
        title: its role, in words.
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
        meanings: the immediates by their meanings, e.g. ``{"K": 0, "MN": 1}``.
        bracketed: true if PTX has it in brackets: it is an address.
        braced: true if it is a list even of one register, although it holds no elements.
        single: true if it is one register without braces, although it holds elements.
        takes_register: true if a register is admitted.
        default: the value that wrappers assume for an immediate; None where it must be given.
        uniform: the scope whose threads must all pass one value; ``""`` for none.
        alignment: addresses: bytes to whose multiples they must be aligned; 0 for other operands.
        spaces: addresses: the state spaces whose variables are admitted instead of a register.
        memory_bits: addresses: bits of an element in memory, which may be fewer than in registers; 0 for other operands.
        row_bytes: addresses: bytes of the row that begins at each; 0 for other operands.
        writes: addresses: true if the instruction writes the memory there.
        unit: strides: the things that they count, e.g. ``"elements"``; ``""`` for other operands.
        order: strides: the axes of the matrix, the one that the stride steps along first: ``("row", "col")``; empty for other operands.
        layout: the layout of its elements, where it has one.
        observed: the target on which that layout was measured, e.g. ``"sm_90"``; ``""`` where the manual states it.
        sparsity: for a sparse A, the pattern of its zeros.
        source: section of the PTX ISA.
    """

    name: str
    kind: Kind
    title: str
    of: str = ""
    access: str
    source: str
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    element_type: str | None = None
    element: ElementType | None = None
    bits: int = 0
    shift: int = 0
    elements: int = 0
    registers: int = 0
    register_types: tuple[str, ...] = ()
    c_type: str = ""
    constraint: str = ""
    immediates: Sequence[int] | None = None
    meanings: dict[str, int] = msgspec.field(default_factory=dict)
    bracketed: bool = False
    braced: bool = False
    single: bool = False
    takes_register: bool = True
    default: int | None = None
    uniform: str = ""
    alignment: int = 0
    spaces: tuple[str, ...] = ()
    memory_bits: int = 0
    row_bytes: int = 0
    writes: bool = False
    unit: str = ""
    order: tuple[str, ...] = ()
    layout: Layout | None = None
    observed: str = ""
    sparsity: Granularity | None = None

    def __repr__(self) -> str:
        contents = f"{self.elements} x {self.element_type}" if self.elements else self.kind
        carried = f" in {self.registers} x {self.register_types[0]}" if self.registers else ""
        return f"<Operand {self.name}: {contents}{carried}>"

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.title, self.element_type, tuple(self.sizes.items())))

    @property
    def listed(self) -> bool:
        """True if PTX has it as a list of registers in braces."""
        return (bool(self.elements) or self.registers > 1 or self.braced) and not self.single

    @property
    def elements_per_register(self) -> int:
        """Elements in one register, e.g. 2 for f16 in b32; 0 without elements."""
        return self.elements // max(self.registers, 1)

    # --- places -------------------------------------------------------------------------------------------------------------

    @property
    def apart(self) -> tuple[str, ...]:
        """The axes that tell copies or independent products apart: ``("computation",)``."""
        return self.layout.apart if self.layout is not None else ()

    @property
    def tensor(self) -> TensorPlaces | None:
        """Its layout in tensor memory; None for an operand elsewhere."""
        return None

    @property
    def plane(self) -> tuple[int, int]:
        """The sizes of its axes of rows and of columns; 0 for an axis that it lacks."""
        if self.layout is None:
            return 0, 0
        row, col = self.layout.plane
        lacking = int(self.layout.kind == "fragment")  # a fragment with a single axis is a row of a matrix
        return self.sizes.get(row, lacking), self.sizes.get(col, lacking)

    @property
    def rows(self) -> int:
        """Rows of the matrix whose elements it holds; 0 without one."""
        return self.plane[0]

    @property
    def cols(self) -> int:
        """Columns of the matrix whose elements it holds; 0 without one."""
        return self.plane[1]

    @property
    def computations(self) -> int:
        """Independent products that the instruction computes: 4 for ``m8n8k4`` with f16, else 1."""
        return self.sizes.get("computation", 1)

    def fragment(self) -> Layout:
        """Return the layout of its elements.

        Raises:
            ValueError: it has none.
        """
        if self.layout is None or self.layout.kind != "fragment":
            raise ValueError(f"operand {self.name!r} holds no elements of a matrix; its role: {self.title}")
        return self.layout

    def locate(self, *coordinates: Any, check: bool = True, **named: Any) -> Any:
        """Return ``(lane, i)`` of the element at a place: the inverse of :meth:`coords`; of an address, ``lane``.

        The coordinates are numbers of the :attr:`axes`, in order or by name: ``locate(9, 3)``, ``locate(row=9, col=3)``.  Where an element
        is stored in copies, it is the first of them; with ``computation=``, the element of one of several independent products.
        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: a coordinate that is neither an integer nor an array, missing, unknown or given twice.
            ValueError: the operand has no layout, or a place lies outside the matrix.
        """
        return super().locate(*coordinates, check=check, **named)

    def places(self, *coordinates: Any, **named: Any) -> list[Any]:
        """Return every ``(lane, i)`` that holds the element at a place, ascending; of an address, every ``lane``.

        Raises:
            TypeError, ValueError: as :meth:`locate`.
        """
        return super().places(*coordinates, **named)

    def _require(self) -> None:
        self.fragment()

    def _at(self, point: Mapping[str, Any]) -> Any:
        element = self.fragment().to_axes.inverse().apply(point)
        return element["lane"], element["i"]

    def coords(self, lane: Any, i: Any = 0, *, check: bool = True) -> Any:
        """Return the place of element ``i`` of thread ``lane``, a number for each of :attr:`axes`: ``(row, col)``.

        ``lane`` runs over 0..31, for warpgroup instructions over 0..127; ``i`` over 0..elements-1, from the lowest bits of register 0 on.
        For a sparse A, ``col`` is the column in the packed matrix.  Integers, or arrays (whatever has a shape);
        ``check=False`` leaves the range of arrays unchecked.  Of an address, which has no elements: the row of memory that begins at the
        address of thread ``lane``, or None where the instruction ignores that address.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: the operand has no layout, a number is out of range, or an array has threads whose addresses are ignored.
        """
        place = self._numbers(lane, i, check=check)
        return tuple(place[axis] for axis in self.axes)

    def computation(self, lane: Any, i: Any) -> Any:
        """Return the number of the independent product that the element belongs to; 0 except for ``m8n8k4`` with f16."""
        return self._numbers(lane, i).get("computation", 0)

    def _numbers(self, lane: Any, i: Any, *, check: bool = True) -> dict[str, Any]:
        """Return the number of an element on every axis."""
        layout = self.fragment()
        lane = in_range("lane", lane, layout.threads, check=check)
        return layout.to_axes.apply({"lane": lane, "i": in_range("i", i, self.elements, check=check)})

    def chunk(self, lane: Any, i: Any) -> Any:
        """Sparse A: the first column, in the full matrix, of the chunk that the element comes from."""
        return self._pattern().chunk_of(self._column(lane, i))

    def window(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """Sparse A: first and last column, in the full matrix, that the element's register covers (PTX ISA's firstcol, lastcol)."""
        return self._pattern().window_of(self._column(lane, i), self.elements_per_register)

    def _column(self, lane: Any, i: Any) -> Any:
        return self.coords(lane, i)[-1]

    def _pattern(self) -> Granularity:
        if self.sparsity is None:
            raise ValueError(f"operand {self.name!r} is not sparse")
        return self.sparsity

    # --- matrices -----------------------------------------------------------------------------------------------------------
    # These functions import NumPy, without which most questions are answered.

    def pack(self, matrix: Any) -> Any:
        """One tile of a matrix to the registers of all threads; leading dimensions are batches of tiles.

        ``matrix`` has shape (..., rows, cols), of several matrices (``ldmatrix.x4``, ``m8n8k4`` with f16) (..., 4, rows, cols), and the
        dtype of the element type, or holds its bits as unsigned integers; narrow types have one element in each byte.  A torch tensor
        gives a tensor.  The result is (..., threads, registers) in the type that the CUDA wrappers have for a register; element ``i`` of
        thread ``lane`` lies at the place that :meth:`coords` gives.  An element that several threads hold goes to all of them.
        Padding bits of containers are 0.

        Raises:
            ValueError: another shape or dtype, a code that the type does not have, or an operand without elements.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import batch_of

        codes, expected = self._codes(matrix), (*self._leads.values(), self.rows, self.cols)
        if codes.shape[-len(expected) :] != expected:
            raise ValueError(f"{self.name} has shape {codes.shape}; one tile is {batch_of(*expected)}: pack_tiles takes larger matrices")
        return elements.like(self._packed(codes)[..., 0, 0, :, :], matrix)

    def unpack(self, registers: Any) -> Any:
        """Return the matrix in the registers of all threads: the inverse of :meth:`pack`.

        ``registers`` has shape (..., threads, registers) and any dtype of a register's size, whose bits are read; padding bits of
        containers are ignored.  Of copies of an element the first is read.  The result is (..., rows, cols), of several matrices
        (..., matrices, rows, cols), in the dtype of the element type.  A torch tensor gives a tensor; where torch has no usable dtype, as
        for 4-bit and 6-bit types, it is one of ``uint8`` codes, which :meth:`pack` takes back.

        Raises:
            ValueError: another shape, a dtype of another size, or an operand without elements.
        """
        from ptxmma.arrays import elements

        return elements.like(self._unpacked(self._words(registers)[..., None, None, :, :]), registers)

    def pack_tiles(self, matrix: Any, *, pad: bool = False) -> Any:
        """A whole matrix to the registers of each of its tiles: (..., R, C) to (..., R/rows, C/cols, threads, registers).

        Args:
            matrix: as :meth:`pack` takes it, R and C multiples of ``rows`` and ``cols``.
            pad: fill up with zeros to such multiples.

        Raises:
            ValueError: as :meth:`pack`, or sizes that are not multiples without ``pad``.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import whole

        return elements.like(self._packed(whole(self._codes(matrix), (self.rows, self.cols), self.name, pad)), matrix)

    def unpack_tiles(self, registers: Any, shape: Sequence[int] | None = None) -> Any:
        """Return a whole matrix from the registers of its tiles: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, C/cols, threads, registers), as :meth:`unpack` reads them.
            shape: the matrix's own, where it was padded: all of it, or (R, C).

        Raises:
            ValueError: as :meth:`unpack`, or a shape that needs another number of tiles.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import cropped

        words = self._words(registers)
        if words.ndim < 4:
            axes = f"(..., R/{self.rows}, C/{self.cols}, {self.fragment().threads}, {self.registers})"
            raise ValueError(f"registers have shape {words.shape}; a grid of tiles is {axes}")
        return elements.like(cropped(self._unpacked(words), shape, (self.rows, self.cols), "registers"), registers)

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of its elements in the registers; worked out once."""
        from ptxmma.arrays.tiling import Tiling

        layout, sizes = self.fragment(), (self._matrices, self.rows, self.cols)
        return Tiling(_plane_map(layout, list(self._leads)), sizes, layout.threads, self.bits, _MATRIX)

    @functools.cached_property
    def _leads(self) -> dict[str, int]:
        """The axes that tell several matrices apart, with their sizes."""
        around = (*self.fragment().plane, COPY)
        return {axis: size for axis, size in self.sizes.items() if axis not in around and size > 1}

    @property
    def _matrices(self) -> int:
        """The number of matrices that it holds."""
        return math.prod(self._leads.values())

    @functools.cached_property
    def register_dtype(self) -> np.dtype[Any]:
        """The dtype of a register: the C type that the CUDA wrappers give it."""
        import numpy as np

        dtype: np.dtype[Any] = np.dtype(getattr(ctypes, f"c_{self.c_type.removesuffix('_t')}"))
        return dtype

    @property
    def _container(self) -> str:
        """The dtype of the container of an element."""
        return f"u{max(self.bits // 8, 1)}"

    def _codes(self, matrix: Any) -> Array:
        """Return the bits of a matrix of the operand's type, checked as far as they do not depend on the number of tiles."""
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import not_empty

        self.fragment()
        assert self.element is not None
        codes = elements.codes(matrix, self.element, self.name)
        leads = tuple(self._leads.values())
        if codes.ndim < len(leads) + 2 or codes.shape[-2 - len(leads) : -2] != leads:
            raise ValueError(f"{self.name} has shape {codes.shape}; it takes (..., {''.join(f'{size}, ' for size in leads)}R, C)")
        not_empty(codes, self.name)
        return codes

    def _words(self, registers: Any) -> Array:
        """Return the registers of all threads as unsigned integers, checked."""
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import not_empty

        wanted = (self.fragment().threads, self.registers)
        words = elements.bits(registers, self.register_dtype.itemsize, "registers")
        if words.shape[-2:] != wanted:
            axes = f"(..., {wanted[0]}, {wanted[1]})"
            raise ValueError(f"registers have shape {words.shape}; {self.name} takes {axes}: threads, registers of each")
        not_empty(words, "registers")
        return words

    def _packed(self, codes: Array) -> Array:
        """Return the registers of whole tiles."""
        import numpy as np

        shifted = codes.astype(self._container, copy=False)
        if self.shift:
            shifted = shifted << self.shift
        shifted = shifted.reshape(*shifted.shape[: shifted.ndim - 2 - len(self._leads)], self._matrices, *shifted.shape[-2:])
        if shifted.strides[-2] == shifted.itemsize != shifted.strides[-1]:
            order = self.tiling.transposed
            packed = np.ascontiguousarray(order.pack(order.fold(shifted.swapaxes(-1, -2))).swapaxes(-4, -3))
        else:
            packed = self.tiling.pack(self.tiling.fold(shifted))
        return packed.view(self.register_dtype)

    def _unpacked(self, words: Array) -> Array:
        """Return the whole tiles of a grid of registers."""
        import numpy as np

        from ptxmma.arrays import elements

        assert self.element is not None
        codes = self.tiling.unfold(self.tiling.unpack(words, np.dtype(self._container)))
        codes = codes.reshape(*codes.shape[:-3], *self._leads.values(), *codes.shape[-2:])
        if self.shift:
            codes >>= self.shift
        if self.bits > self.element.bits:
            codes &= (1 << self.element.bits) - 1
        return elements.typed(codes.astype(elements.bits_dtype(self.element), copy=False), self.element)

    # --- other notations ----------------------------------------------------------------------------------------------------

    def to_cute(self) -> str:
        """CuTe's ``shape:stride`` text of its layout with its own columns, see :func:`ptxmma.catalog.layouts.interop.to_cute`.

        Raises:
            ValueError: the operand has no layout, or one of addresses.
        """
        layout = self._own_layout()
        from ptxmma.catalog.layouts import interop

        return interop.to_cute(layout, self.cols if layout.growing else None)

    def to_triton(self) -> dict[str, list[list[int]]]:
        """Triton's linear-layout bases of its layout with its own columns, see :func:`ptxmma.catalog.layouts.interop.to_triton`.

        Raises:
            ValueError: the operand has no layout, or one of addresses, or a number of columns that is not a power of two.
        """
        layout = self._own_layout()
        from ptxmma.catalog.layouts import interop

        return interop.to_triton(layout, self.cols if layout.growing else None)

    def _own_layout(self) -> Layout:
        if self.layout is None:
            raise ValueError(f"operand {self.name!r} has no layout")
        return self.layout


class RowAddress(Operand, frozen=True, kw_only=True):
    """An operand with the address of a row of memory in each thread; its place on the axes is the thread alone."""

    def fragment(self) -> Layout:
        """Raise an error: it holds no elements.

        Raises:
            ValueError: always.
        """
        if self.layout is not None:
            raise ValueError(f"operand {self.name!r} is an address and holds no elements: coords() says which row each thread's begins")
        return super().fragment()

    def _require(self) -> None:
        self._rows()

    def _rows(self) -> Layout:
        """The layout of the rows that its addresses name."""
        return self.layout if self.layout is not None else super().fragment()

    def _at(self, point: Mapping[str, Any]) -> Any:
        return self._rows().to_axes.inverse().apply(point)["lane"]

    def coords(self, lane: Any, i: Any = 0, *, check: bool = True) -> Any:
        """Return the row of memory that begins at the address of a thread; see :meth:`Operand.coords`."""
        layout = self._rows()
        lane, to_axes = in_range("lane", lane, layout.threads, check=check), layout.to_axes
        in_range("i", i, 1, check=check)
        place = to_axes.apply({"lane": lane})
        ignored = (lane >> to_axes.inputs["lane"]) != 0
        for axis in layout.growing:
            ignored = ignored | (place[axis] >= self.sizes[axis])
        if isinstance(lane, int) and ignored:
            return None
        if not isinstance(lane, int) and ignored.any():
            raise ValueError(f"lane of operand {self.name!r} names threads whose addresses the instruction ignores")
        return tuple(place[axis] for axis in self.axes)


def _plane_map(layout: Layout, leads: Sequence[str]) -> BitMap:
    """Return the map of a layout with one number for the matrix, and rows and columns called so."""
    names = dict(zip(layout.plane, (("row", 0), ("col", 0)), strict=True))
    width = 0
    for axis in reversed(leads):
        names[axis] = _MATRIX, width
        width += layout.map.outputs[axis]
    outputs = {names.get(axis, (axis, 0))[0]: size for axis, size in layout.map.outputs.items()} | ({_MATRIX: width} if leads else {})
    bits = {
        source: tuple((names[axis][0], names[axis][1] + bit) if axis in names else (axis, bit) for axis, bit in targets)
        for source, targets in layout.map.bits.items()
    }
    return BitMap(layout.map.inputs, outputs, bits)
