"""Matrix descriptors: the 64 bits that say where and how a matrix lies in shared memory (PTX ISA 9.7.15.5.1.2.2, 9.7.16.4.1).

>>> Descriptor(start_address=1024, leading_byte_offset=0, stride_byte_offset=1024, swizzle="128B").encode() == 0x4000004000000040
True
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.user_names import swizzle_named
from ptxmma.matrices.shared.canonical import Geometry, aligned, matrix_codec, mode_of
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.model import formula


def base_offset(swizzle: str, start: int, *, database: DatabaseLike = None) -> int:
    """The base offset of a descriptor whose swizzle pattern starts at an address; 0 where that is a multiple of the pattern's size.

    It is for matrices that were swizzled relative to their own start.  TMA swizzles by absolute addresses, for which it is 0.
    Source: PTX ISA 9.7.15.5.1.2.2.

    Raises:
        TypeError: a start that is not an integer.
        ValueError: no such swizzle, or a start that is negative or not aligned.
    """
    memory = memory_of(database)
    known = {"start": aligned("start", start, memory.alignment), "pattern": mode_of(memory, swizzle_named(swizzle)).pattern}
    value: Any = formula.evaluate(formula.parse(memory.base_offset), known)
    return int(value)


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A matrix descriptor: where and how a matrix operand lies in shared memory (PTX ISA 9.7.15.5.1.2.2, 9.7.16.4.1).

    Attributes:
        start_address: shared address of the first element, before the swizzle; in bytes.
        leading_byte_offset: leading dimension byte offset (LBO); with ``leading_mode="address"`` the shared address of the second part.
        stride_byte_offset: stride dimension byte offset (SBO).
        base_offset: the number that the swizzle subtracts; see :func:`base_offset`.
        swizzle: name of the swizzle mode.
        family: the family of the instructions that read it: the same bits mean different things to others.  By default the packaged
            database's first with matrix descriptors: ``"wgmma"``.
        leading_mode: ``"offset"``, or ``"address"`` (``tcgen05`` on sm_103a only).
        lut_start: the first byte of a block of B that ``.decompress::lut::b`` uses (``tcgen05`` on sm_107 only).
    """

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    base_offset: int = 0
    swizzle: str = "none"
    family: str = msgspec.field(default_factory=lambda: matrix_format(catalog(None).database.spec).family)
    leading_mode: str = "offset"
    lut_start: int = 0

    def encode(self, *, database: DatabaseLike = None) -> int:
        """The 64 bits that the instruction takes.

        Raises:
            TypeError: a field that is not an integer, or one that descriptors of the family lack.
            ValueError: a field whose value has no encoding.
        """
        codec = matrix_codec(self.family, database)
        own = {field.name for field in codec.parameters}
        given = {field.name: getattr(self, field.name) for field in msgspec.structs.fields(self) if field.name != "family"}
        unset = {field.name: field.default for field in msgspec.structs.fields(self) if field.name != "family"}
        return codec.encode(**{name: value for name, value in given.items() if name in own or value != unset[name]})

    @classmethod
    def decode(cls, descriptor: int, *, family: str = "", database: DatabaseLike = None) -> Descriptor:
        """The fields of a descriptor; bits that belong to no field are ignored.

        Raises:
            TypeError: something that is not an integer.
            ValueError: no 64-bit number, or a swizzle mode that does not exist.
        """
        codec = matrix_codec(family, database)
        fields: dict[str, Any] = codec.decode(descriptor)
        if not isinstance(fields["swizzle"], str):
            known = sorted(codec.legal(codec.field("swizzle")))
            raise ValueError(f"descriptor {descriptor:#x} has swizzle mode {fields['swizzle']}; the modes are {', '.join(map(str, known))}")
        return cls(**{name: _interned(value) for name, value in fields.items()}, family=codec.format.family)

    @classmethod
    def of(cls, geometry: Geometry) -> Descriptor:
        """The descriptor of a whole matrix."""
        return cls(
            start_address=geometry.start,
            leading_byte_offset=geometry.lbo,
            stride_byte_offset=geometry.sbo,
            base_offset=geometry.base_offset,
            swizzle=_interned(geometry.swizzle),
            family=geometry.family,
        )


def _interned(value: Any) -> Any:
    """A string as the one object that the defaults are, too: their repr leaves out what is the default."""
    return sys.intern(value) if isinstance(value, str) else value
