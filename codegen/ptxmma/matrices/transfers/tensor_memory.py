"""The results of loads from tensor memory and of stores to it.

An image of tensor memory is an array (lanes, columns) of cells, 32 bits each.  An address has the lane in its upper half and the column in
its lower half (PTX ISA 9.7.16.1.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.catalog.operands.tensor_fragment import first_lanes
from ptxmma.matrices.places import operand_of
from ptxmma.matrices.transfers.memory import Moved
from ptxmma.model import Space

_CANONICAL_NAN = 0x7FFFFFFF
#: Narrow elements that a copy expands together, and the bytes that they become.
_GROUP = 16
_MATRIX = 2


def load(instruction: Instruction, tensor_address: Any, memory: Any, immediate: Any = 0) -> Moved:
    """Load columns; see :func:`ptxmma.emulate`."""
    target, image = operand_of(instruction, "fragment"), _image(instruction, memory)
    assert target.element is not None
    codes = image[_cells(instruction, tensor_address, immediate, image)] & image.dtype.type((1 << target.bits) - 1)
    return Moved(instruction, registers=target.pack(elements.typed(codes.astype(elements.bits_dtype(target.element)), target.element)))


def load_reduced(instruction: Instruction, tensor_address: Any, memory: Any) -> Moved:
    """Load columns, and reduce the columns of each thread; see :func:`ptxmma.emulate`.

    Raises:
        Missing: a lane has two accesses, and no source says which of them a thread reduces.
    """
    target, qualifiers = operand_of(instruction, "fragment"), instruction.qualifiers
    if "access" in target.axes:
        raise Missing(
            f"{instruction.canonical}: no source says whether a thread reduces the columns of its own access or of both; the manual "
            f"says that they are reduced in each lane, and that the thread of the lane gets the result"
        )
    loaded = load(instruction, tensor_address, memory)
    assert target.element is not None
    values = target.unpack(loaded.registers)
    values = np.abs(values) if qualifiers.get("abs") else values
    best = {"min": np.fmin, "max": np.fmax}[qualifiers["op"]].reduce(values, axis=-1)
    if qualifiers.get("nan"):
        best = np.where(np.isnan(values).any(axis=-1), np.uint32(_CANONICAL_NAN).view(np.float32), best)
    return Moved(instruction, registers=loaded.registers, reduced=best)


def store(instruction: Instruction, tensor_address: Any, fragment: Any, memory: Any, immediate: Any = 0) -> Moved:
    """Store columns; see :func:`ptxmma.emulate`."""
    source, image = operand_of(instruction, "fragment"), _image(instruction, memory).copy()
    assert source.element is not None
    codes = elements.codes(source.unpack(fragment), source.element, source.name)
    image[_cells(instruction, tensor_address, immediate, image)] = codes.astype(image.dtype)
    return Moved(instruction, memory=image)


def copy(instruction: Instruction, tensor_copy: Any, rows: Any, memory: Any = None) -> Moved:
    """Copy rows of shared memory; see :func:`ptxmma.emulate`.

    Raises:
        Missing: no source says which shared memory a pair copies from.
    """
    if instruction.qualifiers.get("cta_group", "").endswith("::2"):
        raise Missing(f"{instruction.canonical}: versions of the manual differ about the shared memory that is copied to the other CTA")
    target = operand_of(instruction, "tensor-copy")
    image = None if memory is None else _image(instruction, memory).copy()
    # No map of the rows to cells moves the bytes: they go to several cells where the copy multiplies them, and may be expanded on the way.
    copied = _expanded(instruction, rows) if instruction.qualifiers.get("from") else rows
    return Moved(instruction, memory=target.pack(copied, image, address=integer(target.name, tensor_copy)))


def _expanded(instruction: Instruction, rows: Any) -> Array:
    """The bytes that narrow elements become; 16 bytes begin with 16 elements, and end with padding.

    Raises:
        ValueError: another dtype, or rows that are not whole groups of 16 bytes.
    """
    given = elements.bits(rows, 1, "rows")
    if given.ndim != _MATRIX or given.shape[-1] % _GROUP:
        raise ValueError(f"rows has shape {given.shape}; {instruction.canonical} takes (rows, bytes), {_GROUP} bytes for {_GROUP} elements")
    width, low = instruction.extents["packed"], instruction.extents["low"]
    groups = given.reshape(*given.shape[:-1], -1, _GROUP)
    filled = np.ascontiguousarray(groups[..., : width * _GROUP // 8])
    codes = np.unpackbits(filled, axis=-1, bitorder="little").reshape(*groups.shape, width)
    weights = np.uint8(1) << np.arange(low, low + width, dtype=np.uint8)
    return np.asarray((codes * weights).sum(-1, dtype=np.uint8).reshape(given.shape))


def shift(instruction: Instruction, tensor_address: Any, memory: Any) -> Moved:
    """Move rows by one lane; see :func:`ptxmma.emulate`."""
    address, space, image = operand_of(instruction, "tensor-address"), _memory(instruction), _image(instruction, memory).copy()
    start = integer(address.name, tensor_address)
    (lane, column), lanes = (space.parts(start)[name] for name in ("lane", "column")), space.partition["lane"]
    end = column + 8 * address.row_bytes // space.cell
    if lane % lanes:
        raise ValueError(f"{address.name} = {start:#x} is lane {lane}; {instruction.canonical} takes multiples of {lanes}")
    if lane + lanes > image.shape[0] or end > image.shape[1]:
        where = f"lane {lane}, column {column}"
        raise ValueError(f"{address.name} = {start:#x} is {where}: from there {instruction.canonical} leaves the memory of {image.shape}")
    rows = image[lane : lane + lanes, column:end]
    rows[:-1] = rows[1:].copy()
    return Moved(instruction, memory=image)


def _memory(instruction: Instruction) -> Space:
    memory = instruction.database.spec.tensor_memory_of(instruction.variant.facts)
    assert memory is not None
    return memory


def _image(instruction: Instruction, given: Any) -> Array:
    """The cells of an image of tensor memory.

    Raises:
        ValueError: another shape or dtype.
    """
    image, memory = elements.as_array(given, "memory"), _memory(instruction)
    if image.ndim != 2 or 8 * image.dtype.itemsize != memory.cell:
        cells = f"(lanes, columns) of {memory.cell}-bit cells"
        raise ValueError(f"memory is {image.dtype} of shape {image.shape}; {memory.title} is {cells}")
    return np.ascontiguousarray(image).view(f"u{image.dtype.itemsize}")


def _cells(instruction: Instruction, given: Any, split: Any, image: Array) -> tuple[Array, Array]:
    """The lane and the column of each element of the fragment.

    Raises:
        ValueError: a lane at which no load or store starts, or an address from which the fragment leaves the image.
    """
    address, fragment = operand_of(instruction, "tensor-address"), operand_of(instruction, "fragment")
    start = integer(address.name, given)
    at = dict(zip(fragment.axes, np.indices([fragment.sizes[axis] for axis in fragment.axes]), strict=True))
    memory = _memory(instruction)
    (lane, column), rows = (memory.parts(start)[name] for name in ("lane", "column")), fragment.sizes["row"]
    if lane not in (legal := first_lanes(memory, fragment)):
        allowed = ", ".join(map(str, legal[:-1]))
        raise ValueError(
            f"{address.name} = {start:#x} is lane {lane}; {instruction.canonical} takes {rows} lanes of one warp, "
            f"from lane {allowed} or {legal[-1]}"
        )
    lanes = lane + at["row"]
    columns = column + at["col"] + at.get("access", 0) * integer("immHalfSplitoff", split)
    if lanes.max() >= image.shape[0] or columns.max() >= image.shape[1]:
        where = f"lane {lane}, column {column}"
        raise ValueError(f"{address.name} = {start:#x} is {where}: from there {instruction.canonical} leaves the memory of {image.shape}")
    return lanes, columns
