"""Weights as narrow codes, in the order in which the lanes of a warp read the fragments of a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxmma.arguments import AnyArray
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import cropped, not_empty, whole
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.lookup import instruction as found
from ptxmma.catalog.operands import RegisterOperand
from ptxmma.matrices.quantised.conversions import conversions, order
from ptxmma.matrices.quantised.steps import WORD

#: Words that a lane reads at once: 16 bytes.
WORDS = 4
#: The dtype in which lanes read zero points of narrower ones.
_WIDENED = {"int4": np.int16, "int8": np.int16, "uint4": np.uint16, "uint8": np.uint16}
#: Dtypes of whose numbers nothing reads a pair for each lane, and what to convert them to.
_REFUSED = {"float64": "float16", **dict.fromkeys(("int32", "int64", "uint32", "uint64"), "uint16")}


def permute(codes: AnyArray, element: str, instruction: Instruction | str, operand: str = "a", *, pad: bool = False) -> Any:
    """Narrow codes of a matrix as the words that lanes read, 16 bytes at once.

    Word ``[..., tile, step, lane, word]`` has codes of one lane in the order that the function ``dequantise_*`` of
    ``ptxmma/cuda/dequantise.cuh`` wants, whose output registers then are registers of the fragment.  ``tile`` counts tiles along the axis
    that the product keeps (rows of A, columns of B), ``step`` loads along K.  The words of a load belong to fragments that follow each
    other along K.  The threads of a product read contiguous bytes.

    Args:
        codes: the matrix of the operand: A is (..., M, K), B is (..., K, N).  Its dtype is the element type's own, or ``uint8`` for the
            bits (but not of s8); codes of s4 may be ``int8``.  One code in each byte.
        element: the type of a code by its name in PTX: ``"s4"``.
        instruction: the product, such as ``mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32``; its operand is of a type to which
            ``element`` can be converted.
        operand: ``"a"`` or ``"b"``.
        pad: fill up with codes 0 to whole tiles and loads; the other matrix must then be 0 there.

    Returns:
        ``uint32`` (..., tiles, steps, threads, 4), a torch tensor if ``codes`` is one.

    Raises:
        ValueError: another shape or dtype, no conversion between the types, or an operand that is not a fragment or whose elements do not
            fill 16 bytes.
    """
    fragment = _Fragment(element, instruction, operand)
    array = _matrix(elements.codes(codes, fragment.code, "codes"), "codes", fragment.shape)
    return elements.like(fragment.pack(whole(array, fragment.block, "codes", pad)), codes)


def unpermute(
    words: AnyArray, element: str, instruction: Instruction | str, operand: str = "a", *, shape: Sequence[int] | None = None
) -> Any:
    """The codes of a matrix from the words that lanes read: the inverse of :func:`permute`.

    Args:
        words: ``uint32`` (..., tiles, steps, threads, 4), or ``int32`` for the same bits.
        element: as for :func:`permute`.
        instruction: as for :func:`permute`.
        operand: as for :func:`permute`.
        shape: the matrix's own, where it was padded: all of it, or its last two sizes.

    Returns:
        The matrix in the dtype of ``element``, one code in each byte.

    Raises:
        ValueError: as :func:`permute`, or a shape that needs another number of tiles.
    """
    fragment = _Fragment(element, instruction, operand)
    array = elements.as_array(words, "words")
    if array.dtype not in (np.uint32, np.int32):
        raise ValueError(f"words have dtype {array.dtype}; they are uint32, or int32 for the same bits")
    array = array.view(np.uint32)
    if array.ndim < 4 or array.shape[-2:] != (fragment.threads, WORDS):
        raise ValueError(f"words have shape {array.shape}; they are (..., tiles, steps, {fragment.threads}, {WORDS})")
    not_empty(array, "words")
    codes = elements.typed(fragment.unpack(array), fragment.code)
    return elements.like(cropped(codes, shape, fragment.block, "words"), words)


def permute_groups(values: AnyArray, instruction: Instruction | str, operand: str = "a", *, pad: bool = False) -> Any:
    """Scale factors or zero points, one for each group along K of each row of A (column of B), in the order in which lanes read them.

    Element ``[..., tile, group, lane // sharing, i]`` belongs to the registers r of a fragment with r % 2 = i.  A of m16n8k16 has two
    rows in each lane, lane // 4 and lane // 4 + 8, and B one column, lane // 4: ``sharing`` is 4.

    Args:
        values: for A (..., M, groups), for B (..., groups, N): floating-point numbers of up to 32 bits, or integers of up to 16.
        instruction: as for :func:`permute`.
        operand: as for :func:`permute`.
        pad: fill up with zeros to whole tiles.

    Returns:
        (..., tiles, groups, threads / sharing, 1 or 2) of the same dtype, a torch tensor if ``values`` is one.  Integers of 8 bits become
        integers of 16, as ``spread_halves`` of ``ptxmma/cuda/dequantise.cuh`` reads them.

    Raises:
        ValueError: another shape or dtype, or an operand that is not a fragment, or one whose registers are not of one or two rows
            (columns) in turn.
    """
    lines = _Lines(_operand(instruction, operand))
    array = _matrix(values, "values", "M, groups" if lines.axis else "groups, N")
    if array.dtype.name in _REFUSED:
        raise ValueError(f"values have dtype {array.dtype}, which no lane reads; convert them to {_REFUSED[array.dtype.name]} or narrower")
    array = array.astype(_WIDENED.get(array.dtype.name, array.dtype), copy=False)
    array = whole(array if lines.axis else array.swapaxes(-1, -2), (lines.count, 1), "values", pad)
    tiles = array.reshape(*array.shape[:-2], -1, lines.count, array.shape[-1])
    return elements.like(np.ascontiguousarray(np.moveaxis(tiles[..., lines.held, :], -1, -3)), values)


def unpermute_groups(permuted: AnyArray, instruction: Instruction | str, operand: str = "a", *, shape: Sequence[int] | None = None) -> Any:
    """The scale factors or zero points that :func:`permute_groups` has put in order: its inverse.

    Args:
        permuted: (..., tiles, groups, threads / sharing, 1 or 2).
        instruction: as for :func:`permute`.
        operand: as for :func:`permute`.
        shape: the shape of the result, where it was padded: all of it, or its last two sizes.

    Raises:
        ValueError: as :func:`permute_groups`.
    """
    lines = _Lines(_operand(instruction, operand))
    array = elements.as_array(permuted, "values")
    if array.ndim < 4 or array.shape[-2:] != lines.held.shape:
        raise ValueError(f"values have shape {array.shape}; they are (..., tiles, groups, {lines.held.shape[0]}, {lines.held.shape[1]})")
    not_empty(array, "values")
    tiles = np.empty((*array.shape[:-3], lines.count, array.shape[-3]), array.dtype)
    tiles[..., lines.held, :] = np.moveaxis(array, -3, -1)
    matrix = tiles.reshape(*tiles.shape[:-3], -1, tiles.shape[-1])
    block = (lines.count, 1) if lines.axis else (1, lines.count)
    return elements.like(cropped(matrix if lines.axis else matrix.swapaxes(-1, -2), shape, block, "values"), permuted)


def _matrix(values: Any, what: str, shape: str) -> Array:
    """An array of at least two axes, checked."""
    array = elements.as_array(values, what)
    if array.ndim < 2:
        raise ValueError(f"{what} have shape {array.shape}; they are (..., {shape})")
    not_empty(array, what)
    return array


def _operand(instruction: Instruction | str, name: str) -> RegisterOperand:
    """A multiplicand in registers.

    Raises:
        ValueError: an operand of another kind.
    """
    operand = (found(instruction) if isinstance(instruction, str) else instruction).operand(name)
    if not isinstance(operand, RegisterOperand) or not operand.fragment().summed or len(operand.axes) != 2:
        raise ValueError(f"{name} of {instruction} is not one matrix that is summed over K in registers; a and b of mma are")
    return operand


class _Lines:
    """The rows of A, or columns of B, in the registers of each thread.

    Attributes:
        axis: 0 or 1: the axis of K.
        count: rows (columns) of a tile.
        held: (threads / sharing, 1 or 2), the row (column) of the even and of the odd registers.
    """

    def __init__(self, operand: RegisterOperand) -> None:
        layout = operand.fragment()
        self.axis = layout.plane.index(layout.summed)
        self.count = operand.plane[1 - self.axis]
        lines = _places(operand)[1 - self.axis]
        registers = lines.reshape(layout.threads, operand.registers, -1)
        turns = np.arange(operand.registers) % 2
        if not (registers == registers[:, turns, :1]).all():
            raise ValueError(f"the registers of {operand.name} are not of one or two {layout.plane[1 - self.axis]}s in turn")
        held = registers[:, :2, 0]
        if (held == held[:, :1]).all():
            held = held[:, :1]
        sharing = layout.threads * held.shape[1] // self.count
        self.held = np.ascontiguousarray(held[::sharing])
        if not (np.repeat(self.held, sharing, axis=0) == held).all():
            raise ValueError(f"the lanes that share a {layout.plane[1 - self.axis]} of {operand.name} are no neighbours")


def _places(operand: RegisterOperand) -> tuple[Array, Array]:
    """The row and the column of each element: (threads, elements)."""
    threads, count = operand.fragment().threads, operand.elements
    row, col = operand.coords(np.arange(threads)[:, None], np.arange(count)[None, :])
    return np.broadcast_to(row, (threads, count)), np.broadcast_to(col, (threads, count))


class _Fragment:
    """The order of codes for an operand.

    Attributes:
        code: the type of a code.
        threads: the threads that hold a tile.
        shape: the sizes of the matrix, in words: ``"M, K"``.
        block: the sizes of the matrix that the words of one load of all threads cover.
    """

    def __init__(self, element: str, instruction: Instruction | str, name: str) -> None:
        instruction = found(instruction) if isinstance(instruction, str) else instruction
        operand, spec = _operand(instruction, name), instruction.database.spec
        entry = conversions(spec, element, str(operand.element_type))[0]
        layout = operand.fragment()
        self.code = next(each for each in spec.types.elements if each.name == element)
        self.threads, self.axis = layout.threads, layout.plane.index(layout.summed)
        self.shape = "M, K" if self.axis else "K, N"
        self.tile = operand.plane
        each = WORDS * WORD // self.code.bits
        if each % operand.elements or self.threads * operand.elements != self.tile[0] * self.tile[1]:
            raise ValueError(f"a thread has {operand.elements} elements of {name}, and reads {each} codes at once: not whole fragments")
        self.joined = each // operand.elements
        sizes = list(self.tile)
        sizes[self.axis] *= self.joined
        self.block = tuple(sizes)
        row, col = _places(operand)
        self.order = np.array(order(entry, self.code.bits))
        self.places = row * self.tile[1] + col

    def pack(self, codes: Array) -> Array:
        """(..., R, C) of whole blocks to (..., tiles, steps, threads, words)."""
        rows, cols = self.tile
        *batch, height, width = codes.shape
        tiles = codes.reshape(*batch, height // rows, rows, width // cols, cols).swapaxes(-3, -2)
        tiles = tiles if self.axis else np.moveaxis(tiles, -4, -3)
        tiles = tiles.reshape(*tiles.shape[:-3], -1, self.joined, rows * cols)
        held = np.moveaxis(tiles[..., self.places], -3, -2)
        held = held.reshape(*held.shape[:-2], WORDS, len(self.order))
        words = np.zeros(held.shape[:-1], np.uint32)
        for number, place in enumerate(self.order):
            words |= held[..., number].astype(np.uint32) << np.uint32(place * self.code.bits)
        return words

    def unpack(self, words: Array) -> Array:
        """The inverse of :meth:`pack`."""
        rows, cols = self.tile
        held = np.empty((*words.shape, len(self.order)), np.uint8)
        for number, place in enumerate(self.order):
            held[..., number] = words >> np.uint32(place * self.code.bits) & np.uint32((1 << self.code.bits) - 1)
        held = np.moveaxis(held.reshape(*words.shape[:-1], self.joined, -1), -2, -3)
        tiles = np.empty((*held.shape[:-2], rows * cols), np.uint8)
        tiles[..., self.places] = held
        tiles = tiles.reshape(*tiles.shape[:-3], -1, rows, cols)
        tiles = tiles if self.axis else np.moveaxis(tiles, -3, -4)
        *batch, down, across, _, _ = tiles.shape
        return np.ascontiguousarray(tiles.swapaxes(-3, -2)).reshape(*batch, down * rows, across * cols)
