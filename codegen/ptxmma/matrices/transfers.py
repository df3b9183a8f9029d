"""What loads, stores and transpositions leave in registers and in memory."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand

_BYTE = 8


class Moved(msgspec.Struct, frozen=True, eq=False):
    """What a load, a store or a transposition leaves behind.

    Attributes:
        instruction: the instruction.
        registers: those that it writes, (threads, registers); None of a store.
        memory: the image after a store, bytes; None of the others.
    """

    instruction: Instruction
    registers: Any = None
    memory: Array | None = None


def load(found: Instruction, address: Any, memory: Any, memory_start: int = 0, stride: Any = None) -> Moved:
    """Load matrices; see :func:`ptxmma.emulate`."""
    target = operand_of(found, "fragment")
    assert target.element is not None
    width = found.extents.get("packed", target.bits)
    places = _places(found, address, memory, memory_start, stride)
    bits = np.unpackbits(_image(memory), bitorder="little")[places[..., None] + np.arange(width)].astype(np.uint64)
    values = (bits << np.arange(width, dtype=np.uint64)).sum(-1)
    if target.element.form == "signed" and width < target.bits:  # the sign fills the rest
        values |= -(values >> width - 1) << width
    codes = values.astype(elements.bits_dtype(target.element))
    return Moved(found, registers=target.pack(elements.typed(codes.reshape(_tile(target)), target.element)))


def store(found: Instruction, address: Any, fragment: Any, memory: Any, memory_start: int = 0, stride: Any = None) -> Moved:
    """Store matrices; see :func:`ptxmma.emulate`."""
    source = operand_of(found, "fragment")
    assert source.element is not None
    places = _places(found, address, memory, memory_start, stride)
    codes = elements.codes(source.unpack(fragment), source.element, source.name).astype(np.uint64).reshape(places.shape)
    bits = np.unpackbits(_image(memory), bitorder="little")
    bits[places[..., None] + np.arange(source.bits)] = codes[..., None] >> np.arange(source.bits, dtype=np.uint64) & 1
    return Moved(found, memory=np.packbits(bits, bitorder="little"))


def transpose(found: Instruction, fragment: Any) -> Moved:
    """Transpose a matrix; see :func:`ptxmma.emulate`."""
    source, target = operand_of(found, "fragment", "read"), operand_of(found, "fragment", "write")
    matrix = elements.as_array(source.unpack(fragment), source.name)
    return Moved(found, registers=target.pack(np.ascontiguousarray(matrix.swapaxes(-1, -2))))


def _image(memory: Any) -> Array:
    image = np.frombuffer(memory, np.uint8) if isinstance(memory, (bytes, bytearray, memoryview)) else elements.as_array(memory, "memory")
    return np.ascontiguousarray(image).reshape(-1).view(np.uint8)


def _tile(operand: Operand) -> tuple[int, ...]:
    """The shape of what :meth:`Operand.pack` takes."""
    *leads, rows, cols = (1, *(operand.sizes[axis] for axis in operand.axes))
    return (*(size for size in leads if size > 1), rows, cols)


def operand_of(found: Instruction, kind: str, access: str = "") -> Operand:
    """The operand of a kind, whatever it is called.

    Raises:
        ValueError: the instruction has none.
    """
    for form in reversed(found.forms):  # the last one has all operands
        for operand in form.operands:
            if operand.kind == kind and access in ("", operand.access):
                return operand
    raise ValueError(f"{found.canonical} has no operand that is {kind}")


def _places(found: Instruction, given: Any, memory: Any, memory_start: int, stride: Any) -> Array:
    """The lowest bit in the image of each element of the tile, checked."""
    size, address = _image(memory).size, operand_of(found, "address")
    if address.layout is None:
        return _of_matrix(found, address, given, stride, memory_start, size)
    if stride is not None:
        raise ValueError(f"{found.canonical} takes no stride: each {address.axes[-1]} has an address of its own")
    return _of_rows(found, address, given, memory_start, size)


def _of_rows(found: Instruction, address: Operand, p: Any, memory_start: int, size: int) -> Array:
    """The places where threads give the address of each part of a tile, by the tile's axes; those that an address has not follow on."""
    tile = operand_of(found, "fragment")
    given, layout = np.asarray(p), address.layout
    assert layout is not None
    if given.shape != (layout.threads,) or given.dtype.kind not in "iu":
        wanted = f"({layout.threads},) integers: the address that each thread gives"
        raise ValueError(f"{address.name} is {given.dtype} of shape {given.shape}; it takes {wanted}")
    lanes = np.asarray(address.locate(*np.indices([address.sizes[axis] for axis in address.axes])))
    starts = given.astype(np.int64)[lanes] - memory_start
    for wrong, what in (
        (given[lanes] % address.alignment != 0, f"is no multiple of {address.alignment}"),
        ((starts < 0) | (starts + address.row_bytes > size), f"leaves the memory of {size} bytes"),
    ):
        if wrong.any():
            lane = int(lanes[tuple(int(index[0]) for index in np.nonzero(wrong))])
            raise ValueError(f"{address.name}: the address {int(given[lane]):#x} of thread {lane} {what}")
    rest = [tile.sizes[axis] for axis in tile.axes if axis not in address.axes]
    inside = np.arange(math.prod(rest)).reshape(rest) * found.extents.get("packed", tile.bits)
    places: Array = starts.reshape(*starts.shape, *[1] * len(rest)) * _BYTE + inside
    order = [*address.axes, *(axis for axis in tile.axes if axis not in address.axes)]
    moved: Array = places.transpose([order.index(axis) for axis in tile.axes])
    return moved


def _of_matrix(found: Instruction, address: Operand, p: Any, stride: Any, memory_start: int, size: int) -> Array:
    """The places where one address and a stride say where the matrix lies: (rows, columns)."""
    matrix, step = operand_of(found, "fragment"), operand_of(found, "stride")
    start = integer(address.name, p)
    apart = step.default if stride is None else integer(step.name, stride)
    assert apart is not None
    assert step.default is not None
    if apart < step.default:
        raise ValueError(
            f"the behaviour of {found.canonical} is undefined with a stride of {apart} elements: rows, or columns, have {step.default}"
        )
    if start % address.alignment:
        raise ValueError(f"{address.name} = {start:#x} is no multiple of {address.alignment}")
    rows, cols = np.arange(matrix.rows)[:, None], np.arange(matrix.cols)
    by_rows = found.qualifiers[found.variant.instruction.operand_kinds[step.name].order] == "row"
    places: Array = ((rows * apart + cols) if by_rows else (cols * apart + rows)) * matrix.bits + (start - memory_start) * _BYTE
    if places.min() < 0 or places.max() + matrix.bits > size * _BYTE:
        raise ValueError(f"{address.name} = {start:#x} with a stride of {apart} elements leaves the memory of {size} bytes")
    return places
