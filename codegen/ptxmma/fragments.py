"""Matrices to the registers of all threads, and back: fragments, sparsity metadata, scale factors.

A layout permutes elements within a tile.  Elements that are neighbours both in a register and in memory stay together, so a matrix
is moved as words, as wide as the layout allows, in the order that :class:`Tiling` works out once; elements narrower than a byte are
first folded into bytes along the axis on which a register holds neighbours.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from ptxmma import elements
from ptxmma.bitmap import BitMap
from ptxmma.elements import Array
from ptxmma.operands import in_range, integer

if TYPE_CHECKING:
    from ptxmma.instructions import Metadata, Scales
    from ptxmma.operands import Operand

#: Words that one step moves: their order, and what they are moved from and to, should stay in the cache.
_PANEL = 1 << 18
#: The axes of a tile: independent products, rows, columns.
_AXES = ("computation", "row", "col")

_REGISTER = np.dtype(np.uint32)  # of metadata and scale factors


class Tiling:
    """How the elements of one tile of a matrix stand in the registers of all threads.

    Args:
        places: maps ``(i, lane)`` to ``(row, col)``, perhaps to ``computation`` too.
        shape: computations, rows and columns of a tile.
        threads: threads that hold it together; each has the same number of elements.
        bits: width of an element in a register.

    Attributes:
        folds: for elements narrower than a byte, ``(axis, below, width)`` of each step that doubles their width: along ``axis``,
            an element moves above the one that stands ``below`` earlier.
        word: the dtype of what is moved in one piece.
        shape: computations, rows and columns of a tile in words.
        order: for each word, in the order of threads and registers, its flat position in the tile.
    """

    def __init__(self, places: BitMap, shape: tuple[int, int, int], threads: int, bits: int) -> None:
        self._given = (places, shape, threads, bits)
        self.folds: list[tuple[int, int, int]] = []
        joined: list[tuple[str, int]] = []  # bits of the matrix that lie within a word
        extent = list(shape)
        for name, bit in places.bits["i"]:
            axis = _AXES.index(name)
            position = bit - sum(other == name and below < bit for other, below in joined)
            if bits < 8:
                self.folds.append((axis - len(_AXES), 1 << position, bits))
            elif bits == 64 or name != "col" or position or extent[axis] % 2:
                break
            joined.append((name, bit))
            extent[axis] //= 2
            bits *= 2
        self.word = np.dtype(f"u{bits // 8}")
        self.threads = threads
        self.shape = tuple(extent)

        count = math.prod(shape) // threads >> len(joined)
        points = {"lane": np.arange(threads)[:, None], "i": np.arange(count) << len(joined)}
        found = places.apply(points)
        place = [_without(found.get(name, 0), [bit for other, bit in joined if other == name]) for name in _AXES]
        self._places = [np.broadcast_to(value, (threads, count)).reshape(-1) for value in place]
        self.order = np.ravel_multi_index(self._places, self.shape)

    @functools.cached_property
    def transposed(self) -> Tiling:
        """The same for a matrix whose columns lie in memory one after another."""
        places, (computations, rows, cols), threads, bits = self._given
        swap = {"row": "col", "col": "row"}
        moved = {name: tuple((swap.get(output, output), bit) for output, bit in targets) for name, targets in places.bits.items()}
        outputs = {swap.get(name, name): width for name, width in places.outputs.items()}
        return Tiling(BitMap(places.inputs, outputs, moved), (computations, cols, rows), threads, bits)

    def fold(self, codes: Array) -> Array:
        """Elements narrower than a byte, one in each byte of (..., computations, R, C), to full bytes."""
        for axis, below, width in self.folds:
            codes = _fold(codes, axis, below, width)
        return codes

    def unfold(self, codes: Array) -> Array:
        """The inverse of :meth:`fold`."""
        for axis, below, width in reversed(self.folds):
            codes = _unfold(codes, axis, below, width)
        return codes

    def pack(self, matrix: Array) -> Array:
        """(..., computations, R, C), folded, of whole tiles, to (..., R/rows, C/cols, threads, words)."""
        words = np.ascontiguousarray(matrix).view(self.word)
        computations, rows, cols = self.shape
        *batch, _, height, width = words.shape
        down, across = height // rows, width // cols
        words = words.reshape(*batch, computations, down, rows, width).swapaxes(-4, -3)  # a row of tiles after another
        packed = np.empty((math.prod(batch) * down, across, self.order.size), self.word)
        for tiles in self._panels(across):
            count = tiles.stop - tiles.start
            part = words[..., tiles.start * cols : tiles.stop * cols]
            which, row, col = self._places
            order = ((which * rows + row) * count + np.arange(count)[:, None]) * cols + col
            np.take(part.reshape(len(packed), -1), order, axis=1, out=packed[:, tiles], mode="clip")
        return packed.reshape(*batch, down, across, self.threads, -1)

    def unpack(self, registers: Array, dtype: np.dtype[Any]) -> Array:
        """(..., R/rows, C/cols, threads, registers) to (..., computations, R, C) of ``dtype``, still folded."""
        words = np.ascontiguousarray(registers).view(self.word)
        computations, rows, cols = self.shape
        *batch, down, across, _, _ = words.shape
        size = self.order.size
        words = words.reshape(math.prod(batch) * down, across, size)
        inverse = np.argsort(self.order).reshape(computations, rows, 1, cols)
        matrix = np.empty((len(words), computations, rows, across, cols), self.word)
        for tiles in self._panels(across):
            count = tiles.stop - tiles.start
            order = inverse + np.arange(0, count * size, size)[:, None]
            np.take(words[:, tiles].reshape(len(words), -1), order, axis=1, out=matrix[:, :, :, tiles], mode="clip")
        matrix = matrix.reshape(*batch, down, computations, rows, across * cols).swapaxes(-4, -3)
        whole: Array = matrix.reshape(*batch, computations, down * rows, across * cols)
        return whole.view(dtype)

    def _panels(self, across: int) -> list[slice]:
        """A row of tiles in pieces of at most ``_PANEL`` words, or of one tile."""
        step = max(1, _PANEL // self.order.size)
        return [slice(first, min(first + step, across)) for first in range(0, across, step)]


def _without(value: Any, bits: Sequence[int]) -> Any:
    """``value`` without those of its bits."""
    for bit in sorted(bits, reverse=True):
        value = value >> bit + 1 << bit | value & (1 << bit) - 1
    return value


def _fold(codes: Array, axis: int, below: int, width: int) -> Array:
    """Elements of ``width`` bits, one in each byte, to half as many of twice the width, joined along ``axis``."""
    if axis == -1 and below == 1:  # neighbours in memory: both at once
        pairs = np.ascontiguousarray(codes).view(np.uint16)
        both: Array = (pairs | pairs >> 8 - width).astype(np.uint8)
        return both
    low, high = _halves(codes, axis, below)
    joined: Array = low | high << width
    return joined.reshape(_resized(codes.shape, axis, codes.shape[axis] // 2))


def _unfold(codes: Array, axis: int, below: int, width: int) -> Array:
    """The inverse of :func:`_fold`."""
    shape = _resized(codes.shape, axis, codes.shape[axis] * 2)
    mask = (1 << width) - 1
    if axis == -1 and below == 1:
        pairs = codes.astype(np.uint16)
        pairs |= pairs << 8 - width
        pairs &= mask << 8 | mask
        return pairs.view(np.uint8)
    result = np.empty(shape, np.uint8)
    low, high = _halves(result, axis, below)
    np.bitwise_and(codes.reshape(low.shape), mask, out=low)
    np.right_shift(codes.reshape(low.shape), width, out=high)
    return result


def _halves(codes: Array, axis: int, below: int) -> tuple[Array, Array]:
    """Views of the elements along ``axis`` whose partner stands ``below`` later, and of the partners."""
    before, after = codes.shape[:axis], codes.shape[axis:][1:]
    split = codes.reshape(*before, codes.shape[axis] // (2 * below), 2, below, *after)
    low, high = np.moveaxis(split, len(before) + 1, 0)
    return low, high


def _resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis:][1:])


# --- elements of a matrix ---------------------------------------------------------------------------------------------------


def tiling(operand: Operand) -> Tiling:
    """The order of an operand's elements in its registers."""
    layout = operand.fragment()
    return Tiling(layout.map, (operand.computations, operand.rows, operand.cols), layout.threads, operand.bits)


def pack(operand: Operand, matrix: Any) -> Any:
    """See :meth:`ptxmma.operands.Operand.pack`."""
    codes = _codes(operand, matrix)
    wanted = _tile_shape(operand)
    if codes.shape[-len(wanted) :] != wanted:
        raise ValueError(f"{operand.name} has shape {codes.shape}; one tile is {_shape(*wanted)}: pack_tiles takes larger matrices")
    return elements.like(_packed(operand, codes)[..., 0, 0, :, :], matrix)


def pack_tiles(operand: Operand, matrix: Any, *, pad: bool = False) -> Any:
    """See :meth:`ptxmma.operands.Operand.pack_tiles`."""
    codes = _whole(_codes(operand, matrix), (operand.rows, operand.cols), operand.name, pad)
    return elements.like(_packed(operand, codes), matrix)


def unpack(operand: Operand, registers: Any) -> Any:
    """See :meth:`ptxmma.operands.Operand.unpack`."""
    held = _registers(operand, registers)
    return elements.like(_unpacked(operand, held[..., None, None, :, :]), registers)


def unpack_tiles(operand: Operand, registers: Any, shape: Sequence[int] | None = None) -> Any:
    """See :meth:`ptxmma.operands.Operand.unpack_tiles`."""
    held = _registers(operand, registers)
    if held.ndim < 4:
        raise ValueError(
            f"registers have shape {held.shape}; a grid of tiles is (..., R/{operand.rows}, C/{operand.cols}, {_held(operand)})"
        )
    return elements.like(_cropped(_unpacked(operand, held), shape, (operand.rows, operand.cols)), registers)


def register_dtype(operand: Operand) -> np.dtype[Any]:
    """The dtype of a register: the C type that the CUDA wrappers give it."""
    held: np.dtype[Any] = np.dtype(getattr(ctypes, f"c_{operand.c_type.removesuffix('_t')}"))
    return held


def _tile_shape(operand: Operand) -> tuple[int, ...]:
    """The shape of one tile; independent products stand in front where there are several."""
    return (operand.rows, operand.cols) if operand.computations == 1 else (operand.computations, operand.rows, operand.cols)


def _held(operand: Operand) -> str:
    return f"{operand.fragment().threads}, {operand.registers}"


def _codes(operand: Operand, matrix: Any) -> Array:
    """The bits of a matrix of the operand's type, checked as far as they do not depend on the number of tiles."""
    operand.fragment()
    assert operand.element is not None
    codes = elements.codes(matrix, operand.element, operand.name)
    products = operand.computations
    least = 2 if products == 1 else 3
    if codes.ndim < least or (products > 1 and codes.shape[-3] != products):
        raise ValueError(f"{operand.name} has shape {codes.shape}; it takes (..., {'' if products == 1 else f'{products}, '}R, C)")
    _not_empty(codes, operand.name)
    return codes


def _packed(operand: Operand, codes: Array) -> Array:
    """Whole tiles to a grid of registers."""
    held = codes.astype(f"u{max(operand.bits // 8, 1)}", copy=False)
    if operand.shift:
        held = held << operand.shift
    if operand.computations == 1:
        held = held[..., None, :, :]
    if held.strides[-2] == held.itemsize != held.strides[-1]:
        order = operand.tiling.transposed
        packed = np.ascontiguousarray(order.pack(order.fold(held.swapaxes(-1, -2))).swapaxes(-4, -3))
    else:
        packed = operand.tiling.pack(operand.tiling.fold(held))
    return packed.view(register_dtype(operand))


def _registers(operand: Operand, registers: Any) -> Array:
    """Registers of all threads as unsigned integers, checked."""
    layout = operand.fragment()
    wanted = register_dtype(operand)
    held = elements.as_array(registers, "registers")
    if held.dtype.itemsize != wanted.itemsize:
        raise ValueError(
            f"registers have dtype {held.dtype}; {operand.name} takes {wanted}, or any type of {wanted.itemsize} bytes that holds its bits"
        )
    if held.shape[-2:] != (layout.threads, operand.registers):
        raise ValueError(f"registers have shape {held.shape}; {operand.name} takes (..., {_held(operand)}): threads, registers of each")
    _not_empty(held, "registers")
    return held.view(f"u{wanted.itemsize}")


def _unpacked(operand: Operand, registers: Array) -> Array:
    """A grid of registers to whole tiles."""
    assert operand.element is not None
    order = operand.tiling
    codes = order.unfold(order.unpack(registers, np.dtype(f"u{max(operand.bits // 8, 1)}")))
    if operand.computations == 1:
        codes = codes[..., 0, :, :]
    if operand.shift:
        codes >>= operand.shift
    if operand.bits > operand.element.bits:
        codes &= (1 << operand.element.bits) - 1
    return elements.typed(codes.astype(elements.bits_dtype(operand.element), copy=False), operand.element)


# --- sparsity metadata ------------------------------------------------------------------------------------------------------


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


def metadata_tiling(metadata: Metadata) -> Tiling:
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


def pack_metadata(metadata: Metadata, packed: Any, selector: int) -> Any:
    """See :meth:`ptxmma.instructions.Metadata.pack`."""
    held = _row_major(metadata, packed)
    if held.shape[-2:] != (metadata.rows, _row_bytes(metadata)):
        wanted = _shape(metadata.rows, _row_bytes(metadata))
        raise ValueError(f"metadata has shape {held.shape}; one tile is {wanted}: pack_tiles takes larger matrices")
    return elements.like(_pack_metadata(metadata, held, selector)[..., 0, 0, :], packed)


def pack_metadata_tiles(metadata: Metadata, packed: Any, selector: int | None) -> Any:
    """See :meth:`ptxmma.instructions.Metadata.pack_tiles`."""
    held = _whole(_row_major(metadata, packed), (metadata.rows, _row_bytes(metadata)), "metadata", False, paddable=False)
    return elements.like(_pack_metadata(metadata, held, selector), packed)


def unpack_metadata(metadata: Metadata, registers: Any, selector: int) -> Any:
    """See :meth:`ptxmma.instructions.Metadata.unpack`."""
    held = _words(registers, metadata.layout.threads)
    return elements.like(_unpack_metadata(metadata, held[..., None, None, :], selector), registers)


def unpack_metadata_tiles(metadata: Metadata, registers: Any, selector: int | None, tiles: int | None) -> Any:
    """See :meth:`ptxmma.instructions.Metadata.unpack_tiles`."""
    held = _words(registers, metadata.layout.threads)
    if held.ndim < 3:
        raise ValueError(
            f"registers have shape {held.shape}; a grid of tiles is (..., R/{metadata.rows}, K-tiles, {metadata.layout.threads})"
        )
    found = _unpack_metadata(metadata, held, selector)
    if tiles is not None:
        most = held.shape[-2] * (metadata.selectors if selector is None else 1)
        least = most - (metadata.selectors if selector is None else 1) + 1
        if not least <= tiles <= most:
            raise ValueError(f"tiles = {tiles} is out of range: registers of shape {held.shape} hold {_between(least, most)} K-tiles")
        found = np.ascontiguousarray(found[..., : tiles * _row_bytes(metadata)])
    return elements.like(found, registers)


def problems(metadata: Metadata, registers: Any, selector: int) -> list[Problem]:
    """See :meth:`ptxmma.instructions.Metadata.problems`."""
    packed = elements.as_array(unpack_metadata(metadata, registers, selector))
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
    _not_empty(held, "metadata")
    return held.view(np.uint8)


def _pack_metadata(metadata: Metadata, packed: Array, selector: int | None) -> Array:
    *batch, rows, width = packed.shape
    size, count = _row_bytes(metadata), metadata.selectors
    if selector is None:
        packed = _padded(packed, rows, -(-width // (count * size)) * count * size)
    else:
        selector = in_range("selector", integer("selector", selector), count)
        spread = np.zeros((*batch, rows, width // size, count, size), np.uint8)
        spread[..., selector, :] = packed.reshape(*batch, rows, width // size, size)
        packed = spread.reshape(*batch, rows, -1)
    return metadata.tiling.pack(packed[..., None, :, :]).view(_REGISTER)[..., 0]


def _unpack_metadata(metadata: Metadata, registers: Array, selector: int | None) -> Array:
    packed = metadata.tiling.unpack(registers[..., None], np.dtype(np.uint8))[..., 0, :, :]
    if selector is None:
        return packed
    selector = in_range("selector", integer("selector", selector), metadata.selectors)
    *batch, rows, _ = packed.shape
    chosen = packed.reshape(*batch, rows, -1, metadata.selectors, _row_bytes(metadata))[..., selector, :]
    return chosen.reshape(*batch, rows, -1)


# --- scale factors ----------------------------------------------------------------------------------------------------------


def pack_scales(scales: Scales, factors: Any, byte_id: int, thread_id: int, registers: Any) -> Any:
    """See :meth:`ptxmma.instructions.Scales.pack`."""
    codes = _factors(scales, factors)
    if codes.shape[-2:] != (scales.rows, scales.blocks):
        wanted = _shape(scales.rows, scales.blocks)
        raise ValueError(f"scales have shape {codes.shape}; one tile is {wanted}: pack_tiles takes larger matrices")
    return elements.like(_pack_scales(scales, codes, byte_id, thread_id, registers), factors)


def pack_scale_tiles(scales: Scales, factors: Any, byte_id: int, thread_id: int, registers: Any, *, pad: bool) -> Any:
    """See :meth:`ptxmma.instructions.Scales.pack_tiles`."""
    codes = _whole(_factors(scales, factors), (scales.rows, scales.blocks), "scales", pad)
    *batch, height, width = codes.shape
    tiles = codes.reshape(*batch, height // scales.rows, scales.rows, width // scales.blocks, scales.blocks).swapaxes(-3, -2)
    return elements.like(_pack_scales(scales, tiles, byte_id, thread_id, registers), factors)


def unpack_scales(scales: Scales, registers: Any, byte_id: int, thread_id: int) -> Any:
    """See :meth:`ptxmma.instructions.Scales.unpack`."""
    return elements.like(_unpack_scales(scales, _words(registers, scales.layout.threads), byte_id, thread_id), registers)


def unpack_scale_tiles(scales: Scales, registers: Any, byte_id: int, thread_id: int, shape: Sequence[int] | None) -> Any:
    """See :meth:`ptxmma.instructions.Scales.unpack_tiles`."""
    held = _words(registers, scales.layout.threads)
    if held.ndim < 3:
        raise ValueError(
            f"registers have shape {held.shape}; a grid of tiles is (..., R/{scales.rows}, blocks/{scales.blocks}, {scales.layout.threads})"
        )
    tiles = _unpack_scales(scales, held, byte_id, thread_id)
    *batch, down, across, rows, blocks = tiles.shape
    matrix = tiles.swapaxes(-3, -2).reshape(*batch, down * rows, across * blocks)
    return elements.like(_cropped(matrix, shape, (scales.rows, scales.blocks)), registers)


def _factors(scales: Scales, factors: Any) -> Array:
    codes = elements.codes(factors, scales.element, "scales")
    if codes.ndim < 2:
        raise ValueError(f"scales have shape {codes.shape}; they are (..., rows, blocks)")
    _not_empty(codes, "scales")
    magnitude = scales.element.exponent + scales.element.mantissa
    if magnitude < scales.element.bits and int(codes.max()) >> magnitude:
        place = tuple(np.argwhere(codes >> magnitude)[0].tolist())
        raise ValueError(f"the scale at {place} is negative ({int(codes[place]):#x}); {scales.element.name} has no sign")
    return np.ascontiguousarray(codes)


def _scale_places(scales: Scales, byte_id: int, thread_id: int) -> tuple[np.dtype[Any], Array]:
    """Where the scale factors stand in the registers of all threads: a word that is moved in one piece, and each word's place.

    The word is a whole row where its factors lie side by side, else one factor.
    """
    lane, byte = scales.locate(np.arange(scales.rows)[:, None], np.arange(scales.blocks), byte_id=byte_id, thread_id=thread_id)
    places, blocks = lane * _REGISTER.itemsize + byte, scales.blocks
    together = np.array_equal(places, places[:, :1] + np.arange(blocks)) and not (places[:, 0] % blocks).any()
    return (np.dtype(f"u{blocks}"), places[:, :1] // blocks) if together else (np.dtype(np.uint8), places)


def _pack_scales(scales: Scales, codes: Array, byte_id: int, thread_id: int, registers: Any) -> Array:
    (word, places), threads = _scale_places(scales, byte_id, thread_id), scales.layout.threads
    shape = (*codes.shape[:-2], threads)
    if registers is None:
        packed = np.zeros(shape, _REGISTER)
    else:
        packed = _words(registers, threads).copy()
        if packed.shape != shape:
            raise ValueError(f"registers have shape {packed.shape}; for scales of this shape they are {shape}")
    packed.view(word)[..., places] = codes.view(word)
    return packed


def _unpack_scales(scales: Scales, registers: Array, byte_id: int, thread_id: int) -> Array:
    word, places = _scale_places(scales, byte_id, thread_id)
    held = np.take(registers.view(word), places, axis=-1)
    return elements.typed(held.view(np.uint8), scales.element)


# --- what all of them share -------------------------------------------------------------------------------------------------


def _words(registers: Any, threads: int) -> Array:
    """One 32-bit register of each thread, checked."""
    held = elements.as_array(registers, "registers")
    if held.dtype.itemsize != _REGISTER.itemsize:
        raise ValueError(
            f"registers have dtype {held.dtype}; they are {_REGISTER}, or any type of {_REGISTER.itemsize} bytes that holds its bits"
        )
    if held.shape[-1:] != (threads,):
        raise ValueError(f"registers have shape {held.shape}; they are (..., {threads}): one of each thread")
    _not_empty(held, "registers")
    return np.ascontiguousarray(held).view(_REGISTER)


def _not_empty(array: Array, what: str) -> None:
    if not array.size:
        raise ValueError(f"{what}: an array of shape {array.shape} has no elements")


def _whole(array: Array, tile: tuple[int, int], what: str, pad: bool, *, paddable: bool = True) -> Array:
    """A matrix of whole tiles: as it is, or padded with zeros."""
    height, width = (-(-size // step) * step for size, step in zip(array.shape[-2:], tile, strict=True))
    if (height, width) == array.shape[-2:]:
        return array
    if not pad:
        hint = "; pad=True fills up with zeros" if paddable else ""
        raise ValueError(f"{what} of shape {array.shape}: the last two sizes must be multiples of {tile[0]} and {tile[1]}{hint}")
    return _padded(array, height, width)


def _padded(array: Array, height: int, width: int) -> Array:
    """The matrix with zeros below and to the right."""
    if array.shape[-2:] == (height, width):
        return array
    padded = np.zeros((*array.shape[:-2], height, width), array.dtype)
    padded[..., : array.shape[-2], : array.shape[-1]] = array
    return padded


def _cropped(matrix: Array, shape: Sequence[int] | None, tile: tuple[int, int]) -> Array:
    """The matrix without its padding; ``shape`` is that of the whole, or of the last two axes."""
    if shape is None:
        return matrix
    *batch, height, width = matrix.shape
    rows = [range(size - step + 1, size + 1) for size, step in zip((height, width), tile, strict=True)]
    fits = len(shape) >= 2 and all(size in span for size, span in zip(shape[-2:], rows, strict=True))
    if not fits or tuple(shape[:-2]) not in ((), tuple(batch)):
        spans = " x ".join(_between(span[0], span[-1]) for span in rows)
        raise ValueError(
            f"shape {tuple(shape)} does not fit registers that hold tiles of shape {matrix.shape}: the last two sizes are {spans}"
        )
    return np.ascontiguousarray(matrix[..., : shape[-2], : shape[-1]])


def _between(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}..{most}"


def _shape(*sizes: int) -> str:
    return "(..., " + ", ".join(map(str, sizes)) + ")"
