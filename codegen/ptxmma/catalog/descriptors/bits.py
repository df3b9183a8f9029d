"""The bits of descriptors: the place and the number of each field, and the bits that belong to none."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.model import DescriptorField, DescriptorFormat

#: The value of a field: a number, or a name such as ``"bf16"``.
Value = int | str


class FieldValue(NamedTuple):
    """A field of a descriptor, read."""

    field: DescriptorField
    stored: int  # the number in its bits
    value: Value  # its meaning: bytes, an extent, or the name of a type or a mode


class Mistake(NamedTuple):
    """A mistake in the bits of a descriptor."""

    field: str  # "dtype"; "" for bits that belong to no field, and for fields that do not go together
    text: str


def spare(format: DescriptorFormat) -> list[tuple[int, int]]:
    """The runs of bits that belong to no field, lowest first: the lowest bit and the number of bits of each."""
    used = sum(mask(field) for field in format.fields)
    runs: list[tuple[int, int]] = []
    for bit in range(format.bits):
        if not used >> bit & 1:
            if runs and sum(runs[-1]) == bit:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((bit, 1))
    return runs


def taken(field: DescriptorField, descriptor: int) -> int:
    """Return the number in the bits of a field."""
    low = descriptor >> field.low & ones(field.width)
    return low if field.upper is None else low | (descriptor >> field.upper & 1) << field.width


def placed(field: DescriptorField, stored: int) -> int:
    """Return the number of a field in its place: the inverse of :func:`taken`."""
    bits = (stored & ones(field.width)) << field.low
    return bits if field.upper is None else bits | stored >> field.width << field.upper


def mask(field: DescriptorField) -> int:
    """The bits of a field."""
    return placed(field, ones(width_of(field)))


def width_of(field: DescriptorField) -> int:
    """The number of its bits."""
    return field.width + (field.upper is not None)


def counted(field: DescriptorField, stored: int) -> int:
    """The number that a field without names means by the number in its bits."""
    return (stored << field.shift) + field.less


def ones(width: int) -> int:
    """The largest number of so many bits."""
    return (1 << width) - 1


def bit_range(low: int, width: int) -> str:
    """Bits as PTX writes them: ``"31:16"``, ``"0"`` for one alone."""
    return f"{low + width - 1}:{low}" if width > 1 else str(low)


def bits_of(field: DescriptorField) -> str:
    """The bits of a field: ``"28:24"``, ``"2"``, ``"3,31"``."""
    own = bit_range(field.low, field.width)
    return own if field.upper is None else f"{field.upper},{own}"
