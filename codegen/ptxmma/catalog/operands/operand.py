"""One operand of one instruction, as users see it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ptxmma.catalog.operands.placement import Placement
from ptxmma.model import ElementType, Granularity, Kind, Layout

if TYPE_CHECKING:
    from ptxmma.arrays.tiling import Tiling


class Operand(Placement, frozen=True, kw_only=True):
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
        bracketed: whether PTX has it in brackets: it is an address.
        braced: whether it is a list even of one register, although it holds no elements.
        single: whether it is one register without braces, although it holds elements.
        takes_register: whether a register is admitted.
        default: the value that wrappers assume for an immediate; None where it must be given.
        uniform: the scope whose threads must all pass one value; ``""`` for none.
        alignment: addresses: bytes to whose multiples they must be aligned; 0 for other operands.
        spaces: addresses: the state spaces whose variables are admitted instead of a register.
        memory_bits: addresses: bits of an element in memory, which may be fewer than in registers; 0 for other operands.
        row_bytes: addresses: bytes of the row that begins at each; 0 for other operands.
        writes: addresses: whether the instruction writes the memory there.
        unit: strides: what they count, e.g. ``"elements"``; ``""`` for other operands.
        order: strides: the axes of the matrix, the one that the stride steps along first: ``("row", "col")``; empty for other operands.
        layout: the layout of its elements, where it has one.
        observed: the target on which that layout was measured, e.g. ``"sm_90"``; ``""`` where the manual states it.
        sparsity: for a sparse A, the pattern of its zeros.
        source: section of the PTX ISA.
    """

    kind: Kind
    title: str
    of: str = ""
    access: str
    source: str
    element_type: str | None = None
    element: ElementType | None = None
    bits: int = 0
    shift: int = 0
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
        """Whether PTX has it as a list of registers in braces."""
        return (bool(self.elements) or self.registers > 1 or self.braced) and not self.single

    @property
    def elements_per_register(self) -> int:
        """Elements in one register, e.g. 2 for f16 in b32; 0 without elements."""
        return self.elements // max(self.registers, 1)

    def chunk(self, lane: Any, i: Any) -> Any:
        """Sparse A: the first column, in the full matrix, of the chunk that the element comes from."""
        return self._pattern().chunk_of(self._column(lane, i))

    def window(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """Sparse A: first and last column, in the full matrix, that the element's register covers (PTX ISA's firstcol, lastcol)."""
        return self._pattern().window_of(self._column(lane, i), self.elements_per_register)

    def _column(self, lane: Any, i: Any) -> Any:
        return self.coords(lane, i)[-1]

    def pack(self, matrix: Any) -> Any:
        """One tile of a matrix to the registers of all threads; leading dimensions are batches of tiles.

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
        """The matrix in the registers of all threads: the inverse of :meth:`pack`.

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
            ValueError: as :meth:`pack`, or sizes that are not multiples without ``pad``.
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
            ValueError: the operand has no layout, or one of addresses, or a number of columns that is not a power of two.
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

    def _pattern(self) -> Granularity:
        if self.sparsity is None:
            raise ValueError(f"operand {self.name!r} is not sparse")
        return self.sparsity
