"""Sparsity metadata to the registers of all threads, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import msgspec
import numpy as np

from ptxmma.arguments import in_range, integer
from ptxmma.arrays import elements, metadata_bytes
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import batch_of, cropped, whole
from ptxmma.arrays.tiling import Tiling
from ptxmma.arrays.words import REGISTER, words
from ptxmma.model import Fault
from ptxmma.model.bitmap import BitMap

if TYPE_CHECKING:
    from ptxmma.catalog.metadata import Metadata


class Problem(msgspec.Struct, frozen=True):
    """A field of metadata registers that its instruction does not admit.

    Attributes:
        tile: index of the tile, ``()`` where there is one.
        lane, bit: where the field is: the thread, and its lowest bit in that thread's register.
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


def tiling(metadata: Metadata) -> Tiling:
    """The order of row-major metadata in registers, by bytes; the K-tiles of all selectors lie side by side."""
    back = metadata.layout.map.inverse()
    within = (metadata_bytes.FIELDS - 1).bit_length()  # bits that tell the fields of one byte apart
    chunk_bits = back.outputs["chunk"]
    outputs = {"row": back.outputs["row"], "col": chunk_bits - within + back.outputs["selector"]}
    first = {"row": ("row", 0), "chunk": ("col", -within), "selector": ("col", chunk_bits - within)}

    def moved(targets: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((first[name][0], first[name][1] + bit) for name, bit in targets)

    if metadata.width * metadata_bytes.FIELDS != 8 or back.bits["bit"][:within] != tuple(("chunk", bit) for bit in range(within)):
        raise ValueError(f"{metadata.layout.name}: the fields of {metadata_bytes.FIELDS} neighbouring chunks do not share a byte")
    bits = {"i": moved(back.bits["bit"][within:]), "lane": moved(back.bits["lane"])}
    inputs = {"i": back.inputs["bit"] - within, "lane": back.inputs["lane"]}
    shape = (1, metadata.rows, metadata.selectors * _row_bytes(metadata))
    return Tiling(BitMap(inputs, outputs, bits), shape, metadata.layout.threads, bits=8)


def pack(metadata: Metadata, packed: Any, selector: int, *, check: bool) -> Any:
    """See :meth:`ptxmma.catalog.metadata.Metadata.pack`."""
    rows = metadata_bytes.row_major(packed)
    if rows.shape[-2:] != (metadata.rows, _row_bytes(metadata)):
        wanted = batch_of(metadata.rows, _row_bytes(metadata))
        raise ValueError(f"metadata has shape {rows.shape}; one tile is {wanted}: pack_tiles takes larger matrices")
    chosen = _selector(metadata, selector)
    if check:
        refuse_illegal(metadata, rows)
    return elements.like(_packed(metadata, rows, chosen)[..., 0, 0, :], packed)


def pack_tiles(metadata: Metadata, packed: Any, selector: int | None, *, pad: bool, check: bool) -> Any:
    """See :meth:`ptxmma.catalog.metadata.Metadata.pack_tiles`."""
    rows = whole(metadata_bytes.row_major(packed), (metadata.rows, _row_bytes(metadata)), "metadata", pad, _padding(metadata))
    chosen = selector if selector is None else _selector(metadata, selector)
    if check:
        refuse_illegal(metadata, rows)
    return elements.like(_packed(metadata, rows, chosen), packed)


def unpack(metadata: Metadata, registers: Any, selector: int) -> Any:
    """See :meth:`ptxmma.catalog.metadata.Metadata.unpack`."""
    grid = words(registers, metadata.layout.threads)
    return elements.like(_unpacked(metadata, grid[..., None, None, :], _selector(metadata, selector)), registers)


def unpack_tiles(metadata: Metadata, registers: Any, selector: int | None, shape: Sequence[int] | None) -> Any:
    """See :meth:`ptxmma.catalog.metadata.Metadata.unpack_tiles`."""
    grid = words(registers, metadata.layout.threads)
    if grid.ndim < 3:
        raise ValueError(
            f"registers have shape {grid.shape}; a grid of tiles is (..., R/{metadata.rows}, K-tiles, {metadata.layout.threads})"
        )
    selector = selector if selector is None else _selector(metadata, selector)
    shared = metadata.selectors if selector is None else 1  # K-tiles in a register
    rows = cropped(_unpacked(metadata, grid, selector), shape, (metadata.rows, shared * _row_bytes(metadata)), "registers")
    return elements.like(rows, registers)


class Problems(Sequence[Problem]):
    """The fields of metadata registers that their instruction does not admit, in the order of tiles, rows and chunks.

    A whole layer may have as many as it has fields; each :class:`Problem` is made when it is asked for.
    """

    def __init__(self, metadata: Metadata, registers: Any, selector: int) -> None:
        self._metadata, self._selector = metadata, _selector(metadata, selector)
        self._faults = metadata.granularity.faults(metadata.legal)
        self._fields = elements.as_array(metadata_bytes.fields(unpack(metadata, registers, selector)))
        self._places = np.flatnonzero(_illegal(metadata).take(self._fields))

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
        *tile, row, chunk = map(int, np.unravel_index(place, self._fields.shape))
        value = int(self._fields.flat[place])
        lane, bit, _ = self._metadata.locate(row, chunk, self._selector)
        return Problem(tuple(tile), lane, bit, row, chunk, value, self._faults[value])


def _illegal(metadata: Metadata) -> Array:
    """For every value of a field, whether the instruction does not admit it."""
    values = np.arange(1 << metadata.width)
    return np.isin(values, list(metadata.granularity.faults(metadata.legal)))


def refuse_illegal(metadata: Metadata, packed: Array) -> None:
    """Refuse row-major metadata with a field that the instruction does not admit; names the first."""
    illegal = _illegal(metadata)
    if not (illegal[:, None] | illegal).ravel().take(packed).any():  # looked up by the byte of two fields
        return
    fields = metadata_bytes.split(packed)
    place = tuple(map(int, np.argwhere(illegal.take(fields))[0]))
    value = int(fields[place])
    raise ValueError(
        f"the field {value:#06b} at {place} of the metadata, (..., row, chunk), is not legal in this instruction:"
        f" {metadata.granularity.faults(metadata.legal)[value]}; legal: {', '.join(metadata.legal)}; check=False packs it all the same"
    )


def _selector(metadata: Metadata, selector: int) -> int:
    return int(in_range("selector", integer("selector", selector), metadata.selectors))


def _row_bytes(metadata: Metadata) -> int:
    """Bytes of row-major metadata in each row of a tile."""
    return metadata.chunks // metadata_bytes.FIELDS


def _padding(metadata: Metadata) -> int:
    """A byte of row-major metadata for zeros."""
    return int(metadata_bytes.from_fields(np.full(metadata_bytes.FIELDS, int(metadata.padding, 2)))[0])


def _packed(metadata: Metadata, packed: Array, selector: int | None) -> Array:
    *batch, rows, width = packed.shape
    size, count = _row_bytes(metadata), metadata.selectors
    if selector is None:
        packed = elements.extended(packed, (*batch, rows, -(-width // (count * size)) * count * size), _padding(metadata))
    else:
        spread = np.zeros((*batch, rows, width // size, count, size), np.uint8)
        spread[..., selector, :] = packed.reshape(*batch, rows, width // size, size)
        packed = spread.reshape(*batch, rows, -1)
    return metadata.tiling.pack(packed[..., None, :, :]).view(REGISTER)[..., 0]


def _unpacked(metadata: Metadata, registers: Array, selector: int | None) -> Array:
    packed = metadata.tiling.unpack(registers[..., None], np.dtype(np.uint8))[..., 0, :, :]
    if selector is None:
        return packed
    *batch, rows, _ = packed.shape
    chosen = packed.reshape(*batch, rows, -1, metadata.selectors, _row_bytes(metadata))[..., selector, :]
    return chosen.reshape(*batch, rows, -1)
