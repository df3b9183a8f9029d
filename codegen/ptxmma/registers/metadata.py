"""Sparsity metadata to the registers of all threads, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from ptxmma import elements
from ptxmma.bitmap import BitMap
from ptxmma.elements import Array
from ptxmma.operands import in_range, integer
from ptxmma.registers.shapes import REGISTER, batch_of, between, not_empty, padded, whole, words
from ptxmma.registers.tiling import Tiling

if TYPE_CHECKING:
    from ptxmma.metadata import Metadata


class Problem(msgspec.Struct, frozen=True):
    """A field of metadata registers that its instruction does not admit.

    Attributes:
        tile: index of the tile, ``()`` where there is one.
        lane, bit: where the field stands: the thread, and its lowest bit in that thread's register.
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
    what: Literal["equal indices", "out of order", "illegal"]


def tiling(metadata: Metadata) -> Tiling:
    """The order of row-major metadata in registers, by bytes; the K-tiles of all selectors stand side by side."""
    back = metadata.layout.map.inverse()
    within = (_per_byte(metadata) - 1).bit_length()  # bits that tell the fields of one byte apart
    chunk_bits = back.outputs["chunk"]
    outputs = {"row": back.outputs["row"], "col": chunk_bits - within + back.outputs["selector"]}
    first = {"row": ("row", 0), "chunk": ("col", -within), "selector": ("col", chunk_bits - within)}

    def moved(targets: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((first[name][0], first[name][1] + bit) for name, bit in targets)

    if back.bits["field"][:within] != tuple(("chunk", bit) for bit in range(within)):
        raise ValueError(f"{metadata.layout.name}: fields of neighbouring chunks do not share a byte")
    bits = {"i": moved(back.bits["field"][within:]), "lane": moved(back.bits["lane"])}
    inputs = {"i": back.inputs["field"] - within, "lane": back.inputs["lane"]}
    shape = (1, metadata.rows, metadata.selectors * _row_bytes(metadata))
    return Tiling(BitMap(inputs, outputs, bits), shape, metadata.layout.threads, bits=8)


def pack(metadata: Metadata, packed: Any, selector: int) -> Any:
    """See :meth:`ptxmma.metadata.Metadata.pack`."""
    held = _row_major(metadata, packed)
    if held.shape[-2:] != (metadata.rows, _row_bytes(metadata)):
        wanted = batch_of(metadata.rows, _row_bytes(metadata))
        raise ValueError(f"metadata has shape {held.shape}; one tile is {wanted}: pack_tiles takes larger matrices")
    return elements.like(_packed(metadata, held, selector)[..., 0, 0, :], packed)


def pack_tiles(metadata: Metadata, packed: Any, selector: int | None) -> Any:
    """See :meth:`ptxmma.metadata.Metadata.pack_tiles`."""
    held = whole(_row_major(metadata, packed), (metadata.rows, _row_bytes(metadata)), "metadata", False, paddable=False)
    return elements.like(_packed(metadata, held, selector), packed)


def unpack(metadata: Metadata, registers: Any, selector: int) -> Any:
    """See :meth:`ptxmma.metadata.Metadata.unpack`."""
    held = words(registers, metadata.layout.threads)
    return elements.like(_unpacked(metadata, held[..., None, None, :], selector), registers)


def unpack_tiles(metadata: Metadata, registers: Any, selector: int | None, tiles: int | None) -> Any:
    """See :meth:`ptxmma.metadata.Metadata.unpack_tiles`."""
    held = words(registers, metadata.layout.threads)
    if held.ndim < 3:
        raise ValueError(
            f"registers have shape {held.shape}; a grid of tiles is (..., R/{metadata.rows}, K-tiles, {metadata.layout.threads})"
        )
    found = _unpacked(metadata, held, selector)
    if tiles is not None:
        most = held.shape[-2] * (metadata.selectors if selector is None else 1)
        least = most - (metadata.selectors if selector is None else 1) + 1
        if not least <= tiles <= most:
            raise ValueError(f"tiles = {tiles} is out of range: registers of shape {held.shape} hold {between(least, most)} K-tiles")
        found = np.ascontiguousarray(found[..., : tiles * _row_bytes(metadata)])
    return elements.like(found, registers)


def problems(metadata: Metadata, registers: Any, selector: int) -> list[Problem]:
    """See :meth:`ptxmma.metadata.Metadata.problems`."""
    packed = elements.as_array(unpack(metadata, registers, selector))
    fields = np.stack([packed >> bit & (1 << metadata.width) - 1 for bit in range(0, 8, metadata.width)], -1)
    fields = fields.reshape(*packed.shape[:-1], -1)
    faults = {value: fault for value in range(1 << metadata.width) if (fault := _fault(metadata, value))}
    places = np.argwhere(np.isin(fields, list(faults))).tolist()
    found = []
    for place in places:
        *tile, row, chunk = place
        value = int(fields[tuple(place)])
        lane, bit, _ = metadata.locate(row, chunk, selector)
        found.append(Problem(tuple(tile), lane, bit, row, chunk, value, faults[value]))
    return found


def _fault(metadata: Metadata, value: int) -> Literal["equal indices", "out of order", "illegal"] | None:
    """Why a field may not have this value."""
    legal = {int(text, 2) for text in metadata.legal}
    if value in legal:
        return None
    width = metadata.granularity.index_bits
    indices = [value >> place * width & (1 << width) - 1 for place in range(metadata.granularity.indices)]
    if len(set(indices)) < len(indices):
        return "equal indices"
    ascending = sum(index << place * width for place, index in enumerate(sorted(indices)))
    return "out of order" if ascending in legal else "illegal"


def _per_byte(metadata: Metadata) -> int:
    """Fields in one byte of row-major metadata."""
    return 8 // metadata.width


def _row_bytes(metadata: Metadata) -> int:
    """Bytes of row-major metadata in each row of a tile."""
    return metadata.chunks // _per_byte(metadata)


def _row_major(metadata: Metadata, packed: Any) -> Array:
    held = elements.as_array(packed, "metadata")
    if held.dtype.itemsize != 1 or held.dtype.kind not in "ui":
        raise ValueError(f"metadata has dtype {held.dtype}; it takes uint8, {_per_byte(metadata)} fields in each byte")
    if held.ndim < 2:
        raise ValueError(f"metadata has shape {held.shape}; it takes (..., rows, chunks / {_per_byte(metadata)})")
    not_empty(held, "metadata")
    return held.view(np.uint8)


def _packed(metadata: Metadata, packed: Array, selector: int | None) -> Array:
    *batch, rows, width = packed.shape
    size, count = _row_bytes(metadata), metadata.selectors
    if selector is None:
        packed = padded(packed, rows, -(-width // (count * size)) * count * size)
    else:
        selector = in_range("selector", integer("selector", selector), count)
        spread = np.zeros((*batch, rows, width // size, count, size), np.uint8)
        spread[..., selector, :] = packed.reshape(*batch, rows, width // size, size)
        packed = spread.reshape(*batch, rows, -1)
    return metadata.tiling.pack(packed[..., None, :, :]).view(REGISTER)[..., 0]


def _unpacked(metadata: Metadata, registers: Array, selector: int | None) -> Array:
    packed = metadata.tiling.unpack(registers[..., None], np.dtype(np.uint8))[..., 0, :, :]
    if selector is None:
        return packed
    selector = in_range("selector", integer("selector", selector), metadata.selectors)
    *batch, rows, _ = packed.shape
    chosen = packed.reshape(*batch, rows, -1, metadata.selectors, _row_bytes(metadata))[..., selector, :]
    return chosen.reshape(*batch, rows, -1)
