"""The results of loads, stores, transpositions and decompressions, in registers and in memory."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices.places import checked_stride, memory_bits, memory_offset, operand_of

_BYTE = 8


class Moved(msgspec.Struct, frozen=True, eq=False):
    """The result of a load, a store or a transposition.

    Attributes:
        instruction: the instruction.
        registers: the registers that it writes, (threads, registers); None for a store.
        memory: the image after a store or a copy; None for the others.
        reduced: the minimum or maximum of the columns of each thread, (threads,) of the element type's dtype; None without a reduction.
    """

    instruction: Instruction
    registers: Any = None
    memory: Array | None = None
    reduced: Array | None = None


def load(instruction: Instruction, address: Any, memory: Any, memory_start: int = 0, stride: Any = None) -> Moved:
    """Load matrices; see :func:`ptxmma.emulate`."""
    target = operand_of(instruction, "fragment")
    assert target.element is not None
    stored = memory_bits(instruction)
    places = _places(instruction, address, memory, memory_start, stride)
    bits = np.unpackbits(_image(memory), bitorder="little")[places[..., None] + np.arange(stored)].astype(np.uint64)
    values = (bits << np.arange(stored, dtype=np.uint64)).sum(-1)
    if target.element.form == "signed" and stored < target.bits:  # the sign fills the rest
        values |= -(values >> stored - 1) << stored
    codes = values.astype(elements.bits_dtype(target.element))
    return Moved(instruction, registers=target.pack(elements.typed(codes.reshape(_tile(target)), target.element)))


def store(instruction: Instruction, address: Any, fragment: Any, memory: Any, memory_start: int = 0, stride: Any = None) -> Moved:
    """Store matrices; see :func:`ptxmma.emulate`."""
    source = operand_of(instruction, "fragment")
    assert source.element is not None
    places = _places(instruction, address, memory, memory_start, stride)
    codes = elements.codes(source.unpack(fragment), source.element, source.name).astype(np.uint64).reshape(places.shape)
    bits = np.unpackbits(_image(memory), bitorder="little")
    bits[places[..., None] + np.arange(source.bits)] = codes[..., None] >> np.arange(source.bits, dtype=np.uint64) & 1
    return Moved(instruction, memory=np.packbits(bits, bitorder="little"))


def transpose(instruction: Instruction, fragment: Any) -> Moved:
    """Transpose a matrix; see :func:`ptxmma.emulate`."""
    source, target = operand_of(instruction, "fragment", "read"), operand_of(instruction, "fragment", "write")
    matrix = elements.as_array(source.unpack(fragment), source.name)
    return Moved(instruction, registers=target.pack(np.ascontiguousarray(matrix.swapaxes(-1, -2))))


def _image(memory: Any) -> Array:
    image = np.frombuffer(memory, np.uint8) if isinstance(memory, (bytes, bytearray, memoryview)) else elements.as_array(memory, "memory")
    return np.ascontiguousarray(image).reshape(-1).view(np.uint8)


def _tile(operand: Operand) -> tuple[int, ...]:
    """The shape of what :meth:`Operand.pack` takes."""
    *leads, rows, cols = (1, *(operand.sizes[axis] for axis in operand.axes))
    return (*(size for size in leads if size > 1), rows, cols)


def _places(instruction: Instruction, given: Any, memory: Any, memory_start: int, stride: Any) -> Array:
    """The lowest bit in the image of each element of the tile, checked."""
    size, address, tile = _image(memory).size, operand_of(instruction, "address"), operand_of(instruction, "fragment")
    apart = checked_stride(instruction, stride)
    at = dict(zip(tile.axes, np.indices([tile.sizes[axis] for axis in tile.axes]), strict=True))
    lanes, bits = memory_offset(instruction, at, apart)
    places: Array
    if address.layout is not None:
        places = _row_starts(address, given, memory_start, size)[lanes] * _BYTE + bits
        return places
    start = integer(address.name, given)
    if start % address.alignment:
        raise ValueError(f"{address.name} = {start:#x} is not a multiple of {address.alignment}")
    places = (start - memory_start) * _BYTE + bits
    if places.min() < 0 or places.max() + tile.bits > size * _BYTE:
        raise ValueError(f"{address.name} = {start:#x} with a stride of {apart} elements leaves the memory of {size} bytes")
    return places


def _row_starts(address: Operand, given: Any, memory_start: int, size: int) -> Array:
    """The start of each row in the image, by the thread that gives its address; rows lie inside the image."""
    addresses, layout = np.asarray(given), address.layout
    assert layout is not None
    if addresses.shape != (layout.threads,) or addresses.dtype.kind not in "iu":
        wanted = f"({layout.threads},) integers: the address that each thread gives"
        raise ValueError(f"{address.name} is {addresses.dtype} of shape {addresses.shape}; it takes {wanted}")
    counted = addresses[: 1 << layout.to_axes.inputs["lane"]]  # the addresses of other threads are ignored
    starts: Array = counted.astype(np.int64) - memory_start
    for wrong, what in (
        (counted % address.alignment != 0, f"is not a multiple of {address.alignment}"),
        ((starts < 0) | (starts + address.row_bytes > size), f"leaves the memory of {size} bytes"),
    ):
        if wrong.any():
            lane = int(np.argmax(wrong))
            raise ValueError(f"{address.name}: the address {int(addresses[lane]):#x} of thread {lane} {what}")
    return starts


# --- vectors of each thread --------------------------------------------------------------------------------------------------


def decompress(instruction: Instruction, indices: Any, source: Any) -> Moved:
    """Decompress vectors; see :func:`ptxmma.emulate`.

    Raises:
        ValueError: another number of registers, or an index of no place: there the result depends on the chip.
    """
    extents = instruction.extents
    kept, group, repeats = extents["kept"], extents["group"], extents["num"]
    codes = _split(source, operand_of(instruction, "vector", "read"), extents["width"], kept * repeats)
    places = _split(indices, operand_of(instruction, "indices"), extents["index"], kept * repeats)
    if (places >= group).any():
        raise ValueError(f"{instruction.canonical}: an index is {places.max()}; elements go to the places 0..{group - 1}")
    codes, places = (array.reshape(*array.shape[:-1], repeats, kept) for array in (codes, places))
    result = np.zeros((*codes.shape[:-1], group), codes.dtype)
    for number in range(kept):
        np.put_along_axis(result, places[..., number, None].astype(np.intp), codes[..., number, None], -1)
    registers = _joined(result.reshape(*result.shape[:-2], -1), operand_of(instruction, "vector", "write"), extents["width"])
    return Moved(instruction, registers=registers)


def _split(registers: Any, operand: Operand, bits: int, count: int) -> Array:
    """The first numbers of so many bits in registers (..., registers), from the low bits up."""
    words = elements.bits(registers, operand.register_dtype.itemsize, operand.name)
    if words.shape[-1:] != (operand.registers,):
        raise ValueError(f"{operand.name} has shape {words.shape}; it takes (..., {operand.registers})")
    numbers = words[..., None] >> _low_bits(operand, bits, words.dtype) & words.dtype.type((1 << bits) - 1)
    every: Array = numbers.reshape(*words.shape[:-1], -1)
    return every[..., :count]


def _joined(codes: Array, operand: Operand, bits: int) -> Array:
    """Registers that hold numbers of so many bits: the inverse of :func:`_split`."""
    places = _low_bits(operand, bits, codes.dtype)
    registers: Array = np.bitwise_or.reduce(codes.reshape(*codes.shape[:-1], -1, len(places)) << places, -1)
    return registers


def _low_bits(operand: Operand, bits: int, dtype: Any) -> Array:
    """The lowest bit of each number in a register."""
    return np.arange(0, _BYTE * operand.register_dtype.itemsize, bits, dtype=dtype)
