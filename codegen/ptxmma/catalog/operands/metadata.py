"""Sparsity metadata in registers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import msgspec

from ptxmma.arguments import AnyArray, Numbers, in_range, integer
from ptxmma.catalog.operands.operand import Operand
from ptxmma.model import Fault, Granularity, Layout
from ptxmma.model.bitmap import BitMap

if TYPE_CHECKING:
    from ptxmma.arrays.elements import Array
    from ptxmma.arrays.tiling import Tiling


class Metadata(Operand, frozen=True, kw_only=True):
    """The sparsity metadata of an instruction (PTX ISA 9.7.14.6.1): a field for each chunk of each row of A.

    ``locate(row, chunk, selector=0)`` is ``(lane, lowest bit, width)`` of a field, its axes in order or by name.

    Other attributes are as :class:`Operand` has them: ``sizes`` is ``{"row": 16, "chunk": 8, "selector": 4}``, ``rows`` the rows of A.

    Attributes:
        granularity: the pattern of zeros that the fields describe.
        legal: the values that a field may have in this instruction, in binary: ``("0b0100", ...)``.
        padding: the value that compression writes for a chunk of zeros.
        contributors: the threads of each quad that hold it for each selector, in words.
    """

    layout: Layout
    granularity: Granularity
    legal: tuple[str, ...]
    padding: str
    contributors: str

    def __repr__(self) -> str:
        return f"<Metadata: {self.rows} rows x {self.chunks} chunks x {self.width} bits, selectors 0..{self.selectors - 1}>"

    @property
    def chunks(self) -> int:
        """Chunks in each row."""
        return self.sizes["chunk"]

    @property
    def selectors(self) -> int:
        """The number of selectors: the legal values are 0..selectors-1."""
        return self.sizes["selector"]

    @property
    def width(self) -> int:
        """Bits of the field of one chunk."""
        return self.granularity.width

    def _require(self) -> None:
        pass

    def _at(self, point: Mapping[str, Any]) -> tuple[Any, Any, int]:
        place = self.layout.map.apply(point)
        return place["lane"], place["bit"] * self.width, self.width

    def coords(self, lane: Numbers, bit: Numbers = 0, *, check: bool = True) -> tuple[Any, Any, Any]:  # type: ignore[override]  # it names its coordinates
        """Return ``(row, chunk, selector)`` of the field with a bit of the register of ``lane``: the inverse of :meth:`locate`.

        Raises:
            TypeError: a number is neither an integer nor an array.
            ValueError: a number is out of range.
        """
        back = self.layout.map.inverse()
        field = in_range("bit", bit, self.width << back.inputs["bit"], check=check) // self.width
        point = back.apply({"lane": in_range("lane", lane, self.layout.threads, check=check), "bit": field})
        return point["row"], point["chunk"], point["selector"]

    def index(self, row: int, col: int, selector: int = 0) -> tuple[int, int, int]:
        """Return ``(lane, lowest bit, width)`` of the index that says from which column element ``row``, ``col`` of the packed A comes.

        Raises:
            TypeError: a number is not an integer.
            ValueError: a number is out of range.
        """
        pattern = self.granularity
        col = in_range("col", integer("col", col), self.chunks * pattern.kept)
        lane, low, _ = self.locate(integer("row", row), col // pattern.kept, integer("selector", selector))
        return lane, low + pattern.index_bits * pattern.index_of(col), pattern.index_bits

    def columns(self, col: int) -> dict[int, tuple[str, ...]]:
        """Return the columns of the full matrix from which column ``col`` of the packed A may come, each with the fields that say so.

        >>> import ptxmma
        >>> sparse = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        >>> sparse.metadata.columns(3)
        {5: ('0b0100',), 6: ('0b1000', '0b1001'), 7: ('0b1100', '0b1101', '0b1110')}

        Raises:
            TypeError: ``col`` is not an integer.
            ValueError: ``col`` is out of range.
        """
        return self.granularity.columns(in_range("col", integer("col", col), self.chunks * self.granularity.kept), self.legal)

    def fields(self, lane: int, selector: int = 0) -> list[tuple[int, int, int]]:
        """Return the ``(row, chunk, lowest bit)`` of every field in the register of ``lane``; empty where that lane is ignored.

        Raises:
            TypeError: anything but one integer; arrays too, since the lanes' lists differ in length.
            ValueError: a lane or selector is out of range.
        """
        lane, selector = integer("lane", lane), self._selector(selector)
        bits = range(0, self.width << self.layout.map.outputs["bit"], self.width)
        places = ((self.coords(lane, bit), bit) for bit in bits)
        return [(row, chunk, bit) for (row, chunk, read), bit in places if read == selector]

    def pack(self, metadata: AnyArray, selector: int = 0, *, check: bool = True) -> Any:  # type: ignore[override]  # it names its data
        """Row-major metadata of one tile to the registers of all threads; leading dimensions are batches of tiles.

        ``metadata`` is uint8 of shape (..., rows, chunks / 2): two fields in each byte, the earlier chunk in the low one.  The result
        is uint32 of shape (..., threads), 0 in the threads that the selector ignores.  ``check=False`` also packs fields that are not
        :attr:`legal`.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: another shape or dtype, a selector that is not legal, or a field with which the behaviour is undefined.
        """
        from ptxmma.arrays import elements, metadata_bytes
        from ptxmma.arrays.shapes import batch_of

        rows = metadata_bytes.row_major(metadata)
        if rows.shape[-2:] != (self.rows, self._row_bytes):
            wanted = batch_of(self.rows, self._row_bytes)
            raise ValueError(f"metadata has shape {rows.shape}; one tile is {wanted}: pack_tiles takes larger matrices")
        chosen = self._selector(selector)
        if check:
            self.refuse_illegal(rows)
        return elements.like(self._registers_of(rows, chosen)[..., 0, 0, :], metadata)

    def unpack(self, registers: AnyArray, selector: int = 0) -> Any:  # type: ignore[override]  # it names its data
        """Return the row-major metadata that the registers of all threads hold for one selector: the inverse of :meth:`pack`.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: not (..., threads) of a 32-bit dtype, or a selector that is not legal.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import words

        grid = words(registers, self.layout.threads)
        return elements.like(self._tiles_of(grid[..., None, None, :], self._selector(selector)), registers)

    def pack_tiles(self, metadata: AnyArray, selector: int | None = None, *, pad: bool = False, check: bool = True) -> Any:  # type: ignore[override]  # it names its data
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
        from ptxmma.arrays import elements, metadata_bytes
        from ptxmma.arrays.shapes import whole

        rows = whole(metadata_bytes.row_major(metadata), (self.rows, self._row_bytes), "metadata", pad, self._padding_byte)
        chosen = None if selector is None else self._selector(selector)
        if check:
            self.refuse_illegal(rows)
        return elements.like(self._registers_of(rows, chosen), metadata)

    def unpack_tiles(self, registers: AnyArray, selector: int | None = None, shape: Sequence[int] | None = None) -> Any:  # type: ignore[override]  # it names its data
        """Return the row-major metadata of a whole matrix: the inverse of :meth:`pack_tiles`.

        Args:
            registers: (..., R/rows, K-tiles or ceil(K-tiles / selectors), threads) of a 32-bit dtype.
            selector: as in :meth:`pack_tiles`.
            shape: the metadata's own, or its last two sizes, where it was padded or the last registers are not full.

        Raises:
            TypeError: a selector that is neither an integer nor None.
            ValueError: another shape or dtype, a selector that is not legal, or a shape that needs another number of registers.
        """
        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import cropped, words

        grid = words(registers, self.layout.threads)
        if grid.ndim < 3:
            raise ValueError(f"registers have shape {grid.shape}; a grid of tiles is (..., R/{self.rows}, K-tiles, {self.layout.threads})")
        chosen = None if selector is None else self._selector(selector)
        shared = self.selectors if selector is None else 1  # K-tiles in a register
        rows = cropped(self._tiles_of(grid, chosen), shape, (self.rows, shared * self._row_bytes), "registers")
        return elements.like(rows, registers)

    def problems(self, registers: Any, selector: int = 0) -> Problems:
        """Return every field that the instruction does not admit, of those in the threads that the selector names.

        ``registers`` is (..., threads) of a 32-bit dtype.  Behaviour is undefined where there is any (PTX ISA 9.7.14.6.1).  The
        result is a sequence of :class:`~ptxmma.catalog.operands.metadata.Problem`, empty where all is well.  It makes each when
        it is asked for, so its length and its first are quickly known for a whole layer too.

        Raises:
            TypeError: a selector that is not an integer.
            ValueError: as :meth:`unpack`.
        """
        return Problems(self, registers, selector)

    def refuse_illegal(self, metadata: Array) -> None:
        """Refuse row-major metadata with a field that the instruction does not admit.

        Raises:
            ValueError: there is such a field; the message names the first.
        """
        import numpy as np

        from ptxmma.arrays import metadata_bytes

        if not (self.illegal[:, None] | self.illegal).ravel().take(metadata).any():  # looked up by the byte of two fields
            return
        fields = metadata_bytes.split(metadata)
        place = tuple(map(int, np.argwhere(self.illegal.take(fields))[0]))
        value = int(fields[place])
        raise ValueError(
            f"the field {value:#06b} at {place} of the metadata, (..., row, chunk), is not legal in this instruction:"
            f" {self.granularity.faults(self.legal)[value]}; legal: {', '.join(self.legal)}; check=False packs it all the same"
        )

    @functools.cached_property
    def tiling(self) -> Tiling:
        """The order of row-major metadata in registers, by bytes; the K-tiles of all selectors lie side by side."""
        from ptxmma.arrays.metadata_bytes import FIELDS
        from ptxmma.arrays.tiling import Tiling

        back = self.layout.map.inverse()
        within = (FIELDS - 1).bit_length()  # bits that tell the fields of one byte apart
        chunk_bits = back.outputs["chunk"]
        outputs = {"row": back.outputs["row"], "col": chunk_bits - within + back.outputs["selector"]}
        first = {"row": ("row", 0), "chunk": ("col", -within), "selector": ("col", chunk_bits - within)}

        def moved(targets: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
            return tuple((first[name][0], first[name][1] + bit) for name, bit in targets)

        if self.width * FIELDS != 8 or back.bits["bit"][:within] != tuple(("chunk", bit) for bit in range(within)):
            raise ValueError(f"{self.layout.name}: the fields of {FIELDS} neighbouring chunks do not share a byte")
        bits = {"i": moved(back.bits["bit"][within:]), "lane": moved(back.bits["lane"])}
        inputs = {"i": back.inputs["bit"] - within, "lane": back.inputs["lane"]}
        shape = (1, self.rows, self.selectors * self._row_bytes)
        return Tiling(BitMap(inputs, outputs, bits), shape, self.layout.threads, bits=8)

    @functools.cached_property
    def illegal(self) -> Array:
        """For every value of a field, true where the instruction does not admit it."""
        import numpy as np

        return np.isin(np.arange(1 << self.width), list(self.granularity.faults(self.legal)))

    def _selector(self, selector: int) -> int:
        return int(in_range("selector", integer("selector", selector), self.selectors))

    @property
    def _row_bytes(self) -> int:
        """Bytes of row-major metadata in each row of a tile."""
        return self.chunks * self.width // 8

    @property
    def _padding_byte(self) -> int:
        """A byte of row-major metadata for zeros."""
        field = int(self.padding, 2)
        return field | field << self.width

    def _registers_of(self, metadata: Array, selector: int | None) -> Array:
        """Whole tiles to a grid of registers."""
        import numpy as np

        from ptxmma.arrays import elements
        from ptxmma.arrays.shapes import REGISTER

        *batch, rows, width = metadata.shape
        size, count = self._row_bytes, self.selectors
        if selector is None:
            metadata = elements.extended(metadata, (*batch, rows, -(-width // (count * size)) * count * size), self._padding_byte)
        else:
            spread = np.zeros((*batch, rows, width // size, count, size), np.uint8)
            spread[..., selector, :] = metadata.reshape(*batch, rows, width // size, size)
            metadata = spread.reshape(*batch, rows, -1)
        return self.tiling.pack(metadata[..., None, :, :]).view(REGISTER)[..., 0]

    def _tiles_of(self, registers: Array, selector: int | None) -> Array:
        """A grid of registers to whole tiles."""
        import numpy as np

        metadata = self.tiling.unpack(registers[..., None], np.dtype(np.uint8))[..., 0, :, :]
        if selector is None:
            return metadata
        *batch, rows, _ = metadata.shape
        chosen = metadata.reshape(*batch, rows, -1, self.selectors, self._row_bytes)[..., selector, :]
        return chosen.reshape(*batch, rows, -1)


class Problem(msgspec.Struct, frozen=True):
    """A field of metadata registers that its instruction does not admit.

    Attributes:
        tile: index of the tile, ``()`` where there is one.
        lane, bit: the thread, and the field's lowest bit in that thread's register.
        row, chunk: what it describes.
        value: the field.
        what: ``"equal indices"``, ``"out of order"`` (legal only without ordered metadata) or ``"illegal"``.
    """

    tile: tuple[int, ...]
    lane: int
    bit: int
    row: int
    chunk: int
    value: int
    what: Fault


class Problems(Sequence[Problem]):
    """The fields of metadata registers that their instruction does not admit, in the order of tiles, rows and chunks.

    A whole layer may have as many as it has fields; each :class:`Problem` is made when it is asked for.
    """

    def __init__(self, metadata: Metadata, registers: Any, selector: int) -> None:
        import numpy as np

        from ptxmma.arrays import elements, metadata_bytes

        self._metadata, self._selector = metadata, selector
        self._faults = metadata.granularity.faults(metadata.legal)
        self._fields = elements.as_array(metadata_bytes.fields(metadata.unpack(registers, selector)))
        self._places = np.flatnonzero(metadata.illegal.take(self._fields))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> list[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | list[Problem]:
        if isinstance(index, slice):
            return list(map(self._problem, self._places[index].tolist()))
        return self._problem(int(self._places[index]))

    def __repr__(self) -> str:
        return f"<Problems: {len(self)}{f', the first {self[0]}' if self else ''}>"

    def _problem(self, place: int) -> Problem:
        """The field with this number."""
        import numpy as np

        *tile, row, chunk = map(int, np.unravel_index(place, self._fields.shape))
        value = int(self._fields.flat[place])
        lane, bit, _ = self._metadata.locate(row, chunk, self._selector)
        return Problem(tuple(tile), lane, bit, row, chunk, value, self._faults[value])
