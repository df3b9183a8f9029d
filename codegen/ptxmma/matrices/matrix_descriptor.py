"""Matrix descriptors: the 64 bits that say where and how a matrix lies in shared memory (PTX ISA 9.7.15.5.1.2.2).

>>> Descriptor(start_address=1024, leading_byte_offset=0, stride_byte_offset=1024, swizzle="128B").encode() == 0x4000004000000040
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ptxmma.arguments import integer
from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.canonical import Geometry, aligned, memory_of, mode_of, stored
from ptxmma.model import DescriptorField, ElementType, SharedMemory, formula

_DESCRIPTOR_BITS = 64


def base_offset(swizzle: str, start: int, *, database: DatabaseLike = None) -> int:
    """The base offset of a descriptor whose swizzle pattern starts at an address; 0 where that is a multiple of the pattern's size.

    It is for matrices that were swizzled relative to their own start.  TMA swizzles by absolute addresses, for which it is 0.
    Source: PTX ISA 9.7.15.5.1.2.2.

    Raises:
        TypeError: a start that is not an integer.
        ValueError: no such swizzle, or a start that is negative or not aligned.
    """
    memory = memory_of(database)
    known = {"start": aligned("start", start, memory.alignment), "pattern": mode_of(memory, swizzle).pattern}
    value: Any = formula.evaluate(formula.parse(memory.base_offset), known)
    return int(value)


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix descriptor: where and how a matrix operand lies in shared memory (PTX ISA 9.7.15.5.1.2.2).

    Attributes:
        start_address: shared address of the first element, before the swizzle; in bytes.
        leading_byte_offset: leading dimension byte offset (LBO).
        stride_byte_offset: stride dimension byte offset (SBO).
        base_offset: what the swizzle subtracts; see :func:`base_offset`.
        swizzle: name of the swizzle mode.
    """

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    base_offset: int = 0
    swizzle: str = "none"

    def encode(self, *, database: DatabaseLike = None) -> int:
        """The 64 bits that the instruction takes.

        Raises:
            TypeError: a field that is not an integer.
            ValueError: a field whose value has no encoding.
        """
        memory = memory_of(database)
        return sum(stored(field, self._value(field, memory)) << field.low for field in memory.descriptor)

    def _value(self, field: DescriptorField, memory: SharedMemory) -> int:
        value = getattr(self, field.name)
        return mode_of(memory, value).encoding if field.name == "swizzle" else integer(field.name, value)

    @classmethod
    def decode(cls, descriptor: int, *, database: DatabaseLike = None) -> Descriptor:
        """The fields of a descriptor; bits that belong to no field are ignored, as instructions do.

        Raises:
            TypeError: something that is not an integer.
            ValueError: no 64-bit number, or a swizzle mode that does not exist.
        """
        bits = integer("descriptor", descriptor)
        if not 0 <= bits < 1 << _DESCRIPTOR_BITS:
            raise ValueError(f"descriptor = {bits:#x} is not a {_DESCRIPTOR_BITS}-bit number")
        memory = memory_of(database)
        fields: dict[str, Any] = {entry.name: (bits >> entry.low & (1 << entry.width) - 1) << entry.shift for entry in memory.descriptor}
        modes = {mode.encoding: mode.name for mode in memory.swizzles}
        if fields["swizzle"] not in modes:
            raise ValueError(
                f"descriptor {bits:#x} has swizzle mode {fields['swizzle']}; the modes are {', '.join(map(str, sorted(modes)))}"
            )
        fields["swizzle"] = modes[fields["swizzle"]]
        return cls(**fields)

    @classmethod
    def of(cls, geometry: Geometry) -> Descriptor:
        """The descriptor of a whole matrix."""
        return cls(
            start_address=geometry.start,
            leading_byte_offset=geometry.lbo,
            stride_byte_offset=geometry.sbo,
            base_offset=geometry.base_offset,
            swizzle=geometry.swizzle,
        )


# --- reading one ------------------------------------------------------------------------------------------------------------


class FieldValue(NamedTuple):
    """A field of a descriptor, read."""

    field: DescriptorField
    stored: int  # what its bits hold
    value: int | str  # what that means: bytes for addresses and strides, the name of the swizzle mode
    elements: int | None  # bytes as elements; None where it counts no bytes or no type is known


def fields(descriptor: int, element: ElementType | None = None, *, database: DatabaseLike = None) -> list[FieldValue]:
    """Every field of the 64 bits of a descriptor, lowest first; with ``element``, bytes are also counted in elements of that type.

    Raises:
        TypeError: something that is not an integer.
        ValueError: bits that are not a descriptor: see :meth:`Descriptor.decode`.
    """
    read = Descriptor.decode(descriptor, database=database)
    rows = []
    for field in sorted(memory_of(database).descriptor, key=lambda field: field.low):
        value = getattr(read, field.name)
        counted = value * 8 // element.bits if element is not None and field.unit == "bytes" else None
        rows.append(FieldValue(field, descriptor >> field.low & (1 << field.width) - 1, value, counted))
    return rows
