"""One operand of one instruction."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import msgspec

from ptxmma.arguments import AnyArray, Numbers
from ptxmma.catalog.operands.placement import Placement
from ptxmma.model import ElementType, Granularity, Kind, Layout, RegisterType, Space

if TYPE_CHECKING:
    import numpy as np

    from ptxmma.catalog.operands.held import Held
    from ptxmma.catalog.operands.tensor_fragment import TensorFragment
    from ptxmma.catalog.operands.tensor_operand import Transfer
    from ptxmma.catalog.operands.tensor_places import TensorPlaces


#: A matrix, or the registers that hold it, and the numbers that select its part.
Given: TypeAlias = AnyArray | Numbers | Sequence[int] | None


class Operand(Placement, msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One operand of one instruction, and the questions that every operand answers, wherever its data lies.

    An operand with data is of a class of its own: :class:`ptxmma.RegisterOperand`, :class:`ptxmma.Metadata`, :class:`ptxmma.Scales`,
    :class:`ptxmma.TensorOperand`.  Others, as a predicate, have no axes, and refuse what is about data.

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
        carrier: the spec's entry of the usual register type; None for an operand that is always an immediate.
        immediates: the legal immediate values, a range where they are many; None where no immediate is admitted.
        within: the operand, an immediate too, that its immediates must not exceed; ``""`` for none.
        droppable: true if ``_`` may take its place: its result is not wanted.
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
        memory: the on-chip memory in which its data lies; None for data in registers, and without data.
        why: the reason why no source says where in that memory; ``""`` where one does.
        layout: the layout of its elements in registers, where it has one.
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
    carrier: RegisterType | None = None
    immediates: Sequence[int] | None = None
    within: str = ""
    droppable: bool = False
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
    memory: Space | None = None
    why: str = ""
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

    @property
    def apart(self) -> tuple[str, ...]:
        """The axes that tell copies or independent products apart: ``("computation",)``."""
        return self.layout.apart if self.layout is not None else ()

    @property
    def tensor(self) -> TensorPlaces | None:
        """Its layout in tensor memory; None for an operand elsewhere, and where no source says it."""
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
            raise self._without_data()
        return self.layout

    def coords(self, *place: Numbers, **chosen: Numbers) -> tuple[Any, ...]:  # noqa: ARG002  # it has no data
        """Return the part at a place, a number for each of :attr:`axes`: the inverse of :meth:`locate`.

        Raises:
            ValueError: it has no layout, or nothing of it lies there.
        """
        raise self._without_data()

    def computation(self, lane: Any, i: Any) -> Any:  # noqa: ARG002  # it has no data
        """Return the number of the independent product that the element belongs to; 0 except for ``m8n8k4`` with f16.

        Raises:
            ValueError: it holds no elements of a matrix in registers, or a number is out of range.
        """
        raise self._without_data()

    def chunk(self, lane: Any, i: Any) -> Any:
        """Sparse A: the first column, in the full matrix, of the chunk that the element comes from."""
        return self._pattern().chunk_of(self.coords(lane, i)[-1])

    def window(self, lane: Any, i: Any) -> tuple[Any, Any]:
        """Sparse A: first and last column, in the full matrix, that the element's register covers (PTX ISA's firstcol, lastcol)."""
        return self._pattern().window_of(self.coords(lane, i)[-1], self.elements_per_register)

    def _pattern(self) -> Granularity:
        if self.sparsity is None:
            raise ValueError(f"operand {self.name!r} is not sparse")
        return self.sparsity

    def placed(self) -> TensorPlaces:
        """Return its layout in tensor memory.

        Raises:
            ValueError: it does not lie there, or no source says where.
        """
        raise ValueError(f"operand {self.name!r} does not lie in tensor memory; its role: {self.title}")

    def through(self, transfer: Transfer) -> TensorFragment:  # noqa: ARG002  # no load moves it
        """Return its elements in the registers of a load or store of tensor memory: see :meth:`ptxmma.TensorOperand.through`.

        Raises:
            TypeError: ``transfer`` is not an instruction.
            ValueError: it has no layout in tensor memory, the instruction is not such a load or store, or it takes other columns or bits.
        """
        raise ValueError(f"no load or store moves operand {self.name!r}: it does not lie in tensor memory; its role: {self.title}")

    def held(self) -> Held:
        """Return its elements as threads hold them.

        Raises:
            ValueError: it holds no elements in registers.
        """
        raise self._without_data()

    def _require(self) -> None:
        self.fragment()

    @functools.cached_property
    def register_dtype(self) -> np.dtype[Any]:
        """The dtype of a register: the C type that the CUDA wrappers give it."""
        import numpy as np

        dtype: np.dtype[Any] = np.dtype(getattr(ctypes, f"c_{self.c_type.removesuffix('_t')}"))
        return dtype

    # --- matrices, which each class packs in its own way --------------------------------------------------------------------

    # Two underscores mark what is positional alone: of "/" mypy says that *data does not take it.
    @overload
    def pack(self, __data: np.ndarray[Any, Any], **chosen: Given) -> np.ndarray[Any, Any]: ...
    @overload
    def pack(self, *data: Given, **chosen: Given) -> Any: ...
    def pack(self, *data: Given, **chosen: Given) -> Any:  # noqa: ARG002  # it has no data
        """One tile of what it holds to where it lies: to the registers of all threads, or to an image of an on-chip memory.

        Raises:
            ValueError: it holds none, or another shape or dtype.
        """
        raise self._without_data()

    @overload
    def unpack(self, __held: np.ndarray[Any, Any], **chosen: Given) -> np.ndarray[Any, Any]: ...
    @overload
    def unpack(self, *held: Given, **chosen: Given) -> Any: ...
    def unpack(self, *held: Given, **chosen: Given) -> Any:  # noqa: ARG002  # it has no data
        """Return what registers or an image hold: the inverse of :meth:`pack`.

        Raises:
            ValueError: it holds none, or another shape or dtype.
        """
        raise self._without_data()

    @overload
    def pack_tiles(self, __data: np.ndarray[Any, Any], **chosen: Given) -> np.ndarray[Any, Any]: ...
    @overload
    def pack_tiles(self, *data: Given, **chosen: Given) -> Any: ...
    def pack_tiles(self, *data: Given, **chosen: Given) -> Any:  # noqa: ARG002  # it has no data
        """A whole matrix to the registers of each of its tiles.

        Raises:
            ValueError: it holds none in registers, or another shape or dtype.
        """
        raise self._without_data()

    @overload
    def unpack_tiles(self, __held: np.ndarray[Any, Any], **chosen: Given) -> np.ndarray[Any, Any]: ...
    @overload
    def unpack_tiles(self, *held: Given, **chosen: Given) -> Any: ...
    def unpack_tiles(self, *held: Given, **chosen: Given) -> Any:  # noqa: ARG002  # it has no data
        """Return a whole matrix from the registers of its tiles: the inverse of :meth:`pack_tiles`.

        Raises:
            ValueError: it holds none in registers, or another shape or dtype.
        """
        raise self._without_data()

    def _without_data(self) -> ValueError:
        """The error about an operand that holds no such data."""
        return ValueError(f"operand {self.name!r} holds no elements of a matrix; its role: {self.title}")

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
