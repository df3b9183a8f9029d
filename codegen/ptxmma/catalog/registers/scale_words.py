"""Scale factors to the registers of all threads, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import batch_of, cropped, not_empty, whole
from ptxmma.arrays.words import REGISTER, words

if TYPE_CHECKING:
    from ptxmma.catalog.scales import Scales


def pack(scales: Scales, factors: Any, byte_id: int, thread_id: int, registers: Any) -> Any:
    """See :meth:`ptxmma.catalog.scales.Scales.pack`."""
    codes = _factors(scales, factors)
    if codes.shape[-2:] != scales.shape:
        raise ValueError(f"scales have shape {codes.shape}; one tile is {batch_of(*scales.shape)}: pack_tiles takes larger matrices")
    return elements.like(_packed(scales, codes, byte_id, thread_id, registers), factors)


def pack_tiles(scales: Scales, factors: Any, byte_id: int | None, thread_id: int, registers: Any, *, pad: bool) -> Any:
    """See :meth:`ptxmma.catalog.scales.Scales.pack_tiles`."""
    codes = whole(_factors(scales, factors), scales.shape, "scales", pad)
    (*batch, height, width), (rows, cols) = codes.shape, scales.shape
    tiles = codes.reshape(*batch, height // rows, rows, width // cols, cols).swapaxes(-3, -2)
    if byte_id is not None:
        return elements.like(_packed(scales, tiles, byte_id, thread_id, registers), factors)
    count, along = len(scales.byte_ids), tiles.ndim - (3 if scales.matrix == "a" else 4)  # the axis of the K-tiles
    shared = list(tiles.shape)
    shared[along] = -(-shared[along] // count) * count
    tiles = elements.extended(tiles, tuple(shared))
    for number, chosen in enumerate(scales.byte_ids):
        every = (slice(None),) * along + (slice(number, None, count),)
        registers = _packed(scales, tiles[every], chosen, thread_id, registers)
    return elements.like(registers, factors)


def unpack(scales: Scales, registers: Any, byte_id: int, thread_id: int) -> Any:
    """See :meth:`ptxmma.catalog.scales.Scales.unpack`."""
    return elements.like(_unpacked(scales, words(registers, scales.layout.threads), byte_id, thread_id), registers)


def unpack_tiles(scales: Scales, registers: Any, byte_id: int | None, thread_id: int, shape: Sequence[int] | None) -> Any:
    """See :meth:`ptxmma.catalog.scales.Scales.unpack_tiles`."""
    grid_words = words(registers, scales.layout.threads)
    if grid_words.ndim < 3:
        grid = f"(..., {_axes(scales, f'/{scales.shape[0]}', f'/{scales.shape[1]}')}, {scales.layout.threads})"
        raise ValueError(f"registers have shape {grid_words.shape}; a grid of tiles is {grid}")
    ids, behind = (byte_id,) if byte_id is not None else scales.byte_ids, -3 if scales.matrix == "a" else -4
    each = [_unpacked(scales, grid_words, chosen, thread_id) for chosen in ids]
    tiles = np.stack(each, behind)  # behind the axis of the K-tiles
    tiles = tiles.reshape(*tiles.shape[: behind - 1], -1, *tiles.shape[behind + 1 :])
    *batch, down, across, rows, cols = tiles.shape
    matrix = tiles.swapaxes(-3, -2).reshape(*batch, down * rows, across * cols)
    step = (rows, cols * len(ids)) if scales.matrix == "a" else (rows * len(ids), cols)
    return elements.like(cropped(matrix, shape, step, "registers"), registers)


def _factors(scales: Scales, factors: Any) -> Array:
    codes = elements.codes(factors, scales.element, "scales")
    if codes.ndim < 2:
        raise ValueError(f"scales have shape {codes.shape}; they are (..., {_axes(scales)})")
    not_empty(codes, "scales")
    return codes


def _axes(scales: Scales, first: str = "", second: str = "") -> str:
    """The names of the two axes of a matrix of scale factors, each with a suffix."""
    return f"rows{first}, blocks{second}" if scales.line == "row" else f"blocks{first}, columns{second}"


def _turned(scales: Scales, codes: Array) -> Array:
    """Scale factors as their matrix lies, to (..., rows, blocks), and back."""
    return np.ascontiguousarray(codes if scales.line == "row" else codes.swapaxes(-1, -2))


def _scale_places(scales: Scales, byte_id: int, thread_id: int) -> tuple[np.dtype[Any], Array]:
    """Where the scale factors are in the registers of all threads: a word that is moved in one piece, and each word's place.

    The word is a whole row where its factors lie side by side, else one factor.
    """
    lane, byte = scales.locate(np.arange(scales.rows)[:, None], np.arange(scales.blocks), byte_id=byte_id, thread_id=thread_id)
    places, blocks = lane * REGISTER.itemsize + byte, scales.blocks
    together = np.array_equal(places, places[:, :1] + np.arange(blocks)) and not (places[:, 0] % blocks).any()
    return (np.dtype(f"u{blocks}"), places[:, :1] // blocks) if together else (np.dtype(np.uint8), places)


def _packed(scales: Scales, codes: Array, byte_id: int, thread_id: int, registers: Any) -> Array:
    (word, places), threads = _scale_places(scales, byte_id, thread_id), scales.layout.threads
    shape = (*codes.shape[:-2], threads)
    if registers is None:
        packed = np.zeros(shape, REGISTER)
    else:
        packed = words(registers, threads).copy()
        if packed.shape != shape:
            raise ValueError(f"registers have shape {packed.shape}; for scales of this shape they are {shape}")
    packed.view(word)[..., places] = _turned(scales, codes).view(word)
    return packed


def _unpacked(scales: Scales, registers: Array, byte_id: int, thread_id: int) -> Array:
    word, places = _scale_places(scales, byte_id, thread_id)
    factors = np.take(registers.view(word), places, axis=-1)
    return elements.typed(_turned(scales, factors.view(np.uint8)), scales.element)
