"""Where the sparsity metadata of an instruction is, and matrices of it in registers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxmma.arguments import in_range, integer
from ptxmma.catalog.variants import Variant
from ptxmma.model import Choice, Granularity, Layout, RegisterLayout

if TYPE_CHECKING:
    from ptxmma.arrays.tiling import Tiling
    from ptxmma.catalog.registers.metadata_words import Problems


class Metadata:
    """The sparsity metadata of an instruction (PTX ISA 9.7.14.6.1).

    Attributes:
        rows: rows of A; chunks: chunks in each row.
        selectors: legal values of the sparsity selector are 0..selectors-1.
        width: bits of the field of one chunk.
        granularity: the pattern of zeros that the fields describe.
        legal: the values that a field may have in this instruction, in binary: ``("0b0100", ...)``.
        padding: the value that compression writes for a chunk of zeros.
        contributors: which threads of each quad hold it for which selector, in words.
    """

    def __init__(self, layout: Layout, entry: RegisterLayout, pattern: Granularity, choice: Choice, variant: Variant) -> None:
        self.layout = layout
        self.granularity = pattern
        self.legal = pattern.admitted(variant.facts)
        self.padding = next(field for occupied, field in choice.fields.items() if not int(occupied, 2))
        self.rows, self.chunks, self.selectors = (layout.axes[axis] for axis in ("row", "chunk", "selector"))
        self.width = pattern.width
        self.contributors = entry.text

    def __repr__(self) -> str:
        return f"<Metadata: {self.rows} rows x {self.chunks} chunks x {self.width} bits, selectors 0..{self.selectors - 1}>"

    def locate(self, row: Any, chunk: Any, selector: Any = 0, *, check: bool = True) -> tuple[Any, Any, int]:
        """``(lane, lowest bit, width)`` of the field that describes ``chunk`` of ``row``; integers or arrays.

        ``check=False`` leaves the range of arrays unchecked.

        Raises:
            TypeError: something that is neither an integer nor an array.
            ValueError: a number out of range.
        """
        limits = (("row", row, self.rows), ("chunk", chunk, self.chunks), ("selector", selector, self.selectors))
        place = self.layout.map.apply({name: in_range(name, value, limit, check=check) for name, value, limit in limits})
        return place["lane"], place["bit"] * self.width, self.width

    def index(self, row: int, col: int, selector: int = 0) -> tuple[int, int, int]:
        """``(lane, lowest bit, width)`` of the index that says from which column element ``row``, ``col`` of the packed A comes.

        Raises:
            TypeError: something that is not an integer.
            ValueError: out of range.
        """
        pattern = self.granularity
        col = in_range("col", integer("col", col), self.chunks * pattern.kept)
        lane, low, _ = self.locate(integer("row", row), col // pattern.kept, integer("selector", selector))
        return lane, low + pattern.index_bits * pattern.index_of(col), pattern.index_bits

    def columns(self, col: int) -> dict[int, tuple[str, ...]]:
        """The columns of the full matrix from which column ``col`` of the packed A may come, each with the fields that say so.

        >>> import ptxmma
        >>> sparse = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        >>> sparse.metadata.columns(3)
        {5: ('0b0100',), 6: ('0b1000', '0b1001'), 7: ('0b1100', '0b1101', '0b1110')}

        Raises:
            TypeError: no integer.
            ValueError: out of range.
        """
        return self.granularity.columns(in_range("col", integer("col", col), self.chunks * self.granularity.kept), self.legal)

    def fields(self, lane: int, selector: int = 0) -> list[tuple[int, int, int]]:
        """The ``(row, chunk, lowest bit)`` of every field in the register of ``lane``; empty where that lane is ignored.

        Raises:
            TypeError: anything but one integer; arrays too, since the lanes' lists differ in length.
            ValueError: a lane or selector out of range.
        """
        lane = in_range("lane", integer("lane", lane), self.layout.threads)
        selector = in_range("selector", integer("selector", selector), self.selectors)
        back = self.layout.map.inverse()
        places = [back.apply({"lane": lane, "bit": field}) for field in range(1 << back.inputs["bit"])]
        chosen = [(field * self.width, place) for field, place in enumerate(places) if place["selector"] == selector]
        return [(place["row"], place["chunk"], bit) for bit, place in chosen]

    def pack(self, metadata: Any, selector: int = 0, *, check: bool = True) -> Any:
        """Row-major metadata of one tile to the registers of all threads; leading dimensions are batches of tiles.

        ``metadata`` is uint8 of shape (..., rows, chunks / 2): two fields in each byte, the earlier chunk in the low one.  The result
        is uint32 of shape (..., threads), 0 in the threads that the selector ignores.  ``check=False`` also packs fields that are not
        :attr:`legal`.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: another shape or dtype, a selector that is not legal, or a field with which the behaviour is undefined.
        """
        from ptxmma.catalog.registers import metadata_words as packing

        return packing.pack(self, metadata, selector, check=check)

    def unpack(self, registers: Any, selector: int = 0) -> Any:
        """The row-major metadata that the registers of all threads hold for one selector: the inverse of :meth:`pack`.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: not (..., threads) of a 32-bit dtype, or a selector that is not legal.
        """
        from ptxmma.catalog.registers import metadata_words as packing

        return packing.unpack(self, registers, selector)

    def pack_tiles(self, metadata: Any, selector: int | None = None, *, pad: bool = False, check: bool = True) -> Any:
        """Row-major metadata of a whole matrix to the registers of each of its tiles.

        Args:
            metadata: uint8 of shape (..., R, K / chunk / 2).
            selector: with one, every tile has registers of its own: (..., R/rows, K-tiles, threads), 0 in the threads that the
                selector ignores.  Without, as many K-tiles as there are selectors share each register, (..., R/rows,
                ceil(K-tiles / selectors), threads): an instruction reads K-tile ``t`` with register ``t // selectors`` and
                selector ``t % selectors``.  Where the last registers have room for more, they hold the fields of zeros.
            pad: fill up to whole tiles with the fields of zeros, :attr:`padding`.
            check: refuse fields that are not :attr:`legal`.

        Raises:
            TypeError: a selector that is neither an integer nor None.
            ValueError: as :meth:`pack`, or sizes that are not multiples of a tile's without ``pad``.
        """
        from ptxmma.catalog.registers import metadata_words as packing

        return packing.pack_tiles(self, metadata, selector, pad=pad, check=check)

    def unpack_tiles(self, registers: Any, selector: int | None = None, shape: Sequence[int] | None = None) -> Any:
        """The row-major metadata of a whole matrix: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, K-tiles or ceil(K-tiles / selectors), threads) of a 32-bit dtype.
            selector: as in :meth:`pack_tiles`.
            shape: the metadata's own, or its last two sizes, where it was padded or the last registers are not full.

        Raises:
            TypeError: a selector that is neither an integer nor None.
            ValueError: another shape or dtype, a selector that is not legal, or a shape that needs another number of registers.
        """
        from ptxmma.catalog.registers import metadata_words as packing

        return packing.unpack_tiles(self, registers, selector, shape)

    def problems(self, registers: Any, selector: int = 0) -> Problems:
        """Every field that the instruction does not admit, of those in the threads that the selector names.

        ``registers`` is (..., threads) of a 32-bit dtype.  Behaviour is undefined where there is any (PTX ISA 9.7.14.6.1).  The
        result is a sequence of :class:`~ptxmma.catalog.registers.metadata_words.Problem`, empty where all is well.  It makes each when
        it is asked for, so its length and its first are quickly known for a whole layer too.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: as :meth:`unpack`.
        """
        from ptxmma.catalog.registers.metadata_words import Problems

        return Problems(self, registers, selector)

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of row-major metadata in registers; worked out once."""
        from ptxmma.catalog.registers import metadata_words as packing

        return packing.tiling(self)
