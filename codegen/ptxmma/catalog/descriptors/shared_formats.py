"""The part of the spec's shared memory that the instructions of a family read."""

from __future__ import annotations

import msgspec

from ptxmma.catalog.descriptors.bits import taken
from ptxmma.model import DescriptorFormat, SharedMemory, Spec


def marked(spec: Spec, describes: str, bits: int) -> list[str]:
    """The families whose descriptors hold something other than 0 in fields that always hold the same, if the bits hold it there."""
    families = []
    for format in spec.descriptors:
        marks = [field for field in format.fields if field.fixed]
        if format.describes == describes and marks and all(taken(field, bits) == field.fixed for field in marks):
            families.append(format.family)
    return families


def reads(family: str, of: str) -> bool:
    """Return whether a family is one of the families ``of``, which all begin so: ``"tcgen05.mma"`` is one of ``"tcgen05"``."""
    return f"{family}.".startswith(f"{of}.")


def matrix_formats(spec: Spec) -> list[DescriptorFormat]:
    """The formats of matrix descriptors, in the order of the spec."""
    return [each for each in spec.descriptors if each.describes == "matrix"]


def matrix_format(spec: Spec, family: str = "") -> DescriptorFormat:
    """The format of the matrix descriptors of a family; by default the spec's first.

    Raises:
        ValueError: the family reads no matrix descriptors.
    """
    formats = matrix_formats(spec)
    for each in formats:
        if not family or reads(family, each.family):
            return each
    known = ", ".join(each.family for each in formats)
    raise ValueError(f"{family or 'the spec'} has no matrix descriptors; families that have: {known or 'none'}")


def swizzle_encoding(spec: Spec, family: str) -> dict[str, int]:
    """Return the number in the matrix descriptors of a family for each swizzle mode, by its name."""
    names = {mode.name for mode in spec.shared_memory.swizzles} if spec.shared_memory else set()
    cases = [case for field in matrix_format(spec, family).fields for case in field.cases]
    return {name: stored for case in cases if case.values.keys() <= names for name, stored in case.values.items()}


def read_by(spec: Spec, memory: SharedMemory, family: str) -> SharedMemory:
    """Shared memory without the swizzles, canonical layouts and types that a family does not read."""
    encoded = swizzle_encoding(spec, family)
    layouts = [msgspec.structs.replace(each, swizzles=tuple(name for name in each.swizzles if name in encoded)) for each in memory.layouts]
    return msgspec.structs.replace(
        memory,
        swizzles=tuple(mode for mode in memory.swizzles if mode.name in encoded),
        layouts=tuple(each for each in layouts if each.swizzles),
        majorness=tuple(each for each in memory.majorness if reads(family, each.family)),
        padded=tuple(each for each in memory.padded if reads(family, each.family)),
    )
