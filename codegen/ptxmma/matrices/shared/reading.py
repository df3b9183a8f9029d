"""Reads matrices through a descriptor, as instructions do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty
from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.shared.canonical import aligned, canonical, extent, packing
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.readable_types import element_of, memory_of
from ptxmma.model import ElementType

Places = npt.NDArray[np.int64]


def read_operand(
    descriptor: Descriptor | int,
    memory: Any,
    element: ElementType | str,
    x: int,
    k: int,
    majorness: str,
    memory_start: int = 0,
    *,
    database: DatabaseLike = None,
) -> Array:
    """The matrix (..., x, k) that an instruction reads through a descriptor, of the element type's dtype.

    Args:
        descriptor: its 64 bits, or the fields.
        memory: an image of shared memory, ``uint8`` (..., size), or ``bytes``, a ``bytearray`` or a ``memoryview``.
        element: type of the elements.
        x: rows of A or columns of B.
        k: depth; for a sparse A the packed one.
        majorness: ``"K"`` or ``"MN"``.
        memory_start: shared address of the first byte of ``memory``, a multiple of the alignment.
        database: the source of the facts; the packaged database by default.

    Raises:
        TypeError: a descriptor, an extent or an address that is not an integer.
        ValueError: bits that are not a descriptor or one that leaves the memory, memory that is not a contiguous array of bytes or is
            empty, a type that is unknown or cannot be read with that majorness, an extent below 1.
    """
    if not isinstance(descriptor, Descriptor):
        descriptor = Descriptor.decode(descriptor, database=database)
    descriptor.encode(database=database)
    facts = memory_of(database)
    canonical(facts, majorness, descriptor.swizzle)
    kind = element_of(element, majorness, database, family=descriptor.family, swizzle=descriptor.swizzle)
    image = contiguous_bytes(memory, "memory")
    addresses = operand_addresses(descriptor, x, k, kind, majorness, database=database)
    start = aligned("memory_start", memory_start, facts.alignment)
    size, width = image.shape[-1], elements.bits_dtype(kind).itemsize
    outside = (addresses < start) | (addresses > start + size - width)
    if outside.any():
        raise ValueError(
            f"{descriptor} reads address {addresses[outside][0]} for a {majorness}-major {kind.name} matrix of {x} x {k}; "
            f"the memory holds {start}..{start + size - 1}"
        )
    words = image[..., : size // width * width].view(elements.bits_dtype(kind))
    codes = np.take(words, (addresses - start) // width, axis=-1)
    if kind.bits < 8:
        along = np.arange(k) if majorness == "K" else np.arange(x)[:, np.newaxis]
        codes = codes >> (along * kind.bits % 8).astype(np.uint8) & np.uint8((1 << kind.bits) - 1)
    return elements.typed(codes, kind)


def operand_addresses(
    descriptor: Descriptor, x: int, k: int, element: ElementType, majorness: str, *, database: DatabaseLike = None
) -> Places:
    """Absolute addresses (x, k) of the bytes in which the elements of an operand start, as instructions read them.

    Elements narrower than a byte lie in it from the low bits up.  With ``leading_mode="address"``, lines go on at that address where they
    reach a boundary of the swizzle's span: the 48 bytes of K = 96 (PTX ISA 9.7.16.3.1.2; CuTe, ``mma_unpack`` of SM103).

    Raises:
        ValueError: a field without an encoding, an unknown majorness, or a second part that the canonical layout does not have.
    """
    descriptor.encode(database=database)
    layout = canonical(memory_of(database), majorness, descriptor.swizzle)
    rows, depth = np.arange(extent("x", x))[:, np.newaxis], np.arange(extent("k", k))
    packed = packing(element, descriptor.family, database, padded=False)
    by_row = layout.layout.contiguous == "k"

    def places(start: int, along: Any, lbo: int) -> Any:
        x, k = (rows, packed.byte(along)) if by_row else (packed.byte(rows), along)
        return layout.swizzled(start + layout.offset(x, k, lbo, descriptor.stride_byte_offset), descriptor.base_offset)

    if descriptor.leading_mode == "offset":
        addresses: Places = places(descriptor.start_address, depth, descriptor.leading_byte_offset)
        return addresses
    if majorness != "K" or layout.mode.name != "128B" or descriptor.base_offset:
        raise ValueError(f"{descriptor}: a second part at an address is for K-major matrices with swizzle 128B and without a base offset")
    inside = descriptor.start_address % layout.mode.bytes
    first = (layout.mode.bytes - inside) * 8 // element.bits  # elements of a line before its boundary
    second = places(descriptor.leading_byte_offset, np.maximum(depth - first, 0), 0)
    parts: Places = np.where(depth < first, places(descriptor.start_address, depth, 0), second)
    return parts


def contiguous_bytes(memory: Any, what: str) -> npt.NDArray[np.uint8]:
    """Bytes as an array, without a copy.

    Raises:
        ValueError: another dtype, an empty array, or one that is not contiguous.
    """
    if isinstance(memory, (bytes, bytearray, memoryview)):
        memory = np.asarray(memoryview(memory))
    array = elements.as_array(memory, what)
    if array.dtype != np.uint8 or not array.ndim:
        raise ValueError(f"{what} must be an array of uint8, not {array.dtype} of shape {array.shape}")
    not_empty(array, what)
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} is not contiguous; pass a copy: numpy.ascontiguousarray({what})")
    return array
