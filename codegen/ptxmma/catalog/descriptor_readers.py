"""Which instructions read a descriptor, by their families, and on which targets."""

from __future__ import annotations

from ptxmma.catalog.descriptor_bits import taken
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.requirements import accepting
from ptxmma.model import DescriptorFormat, Spec


def reads(family: str, of: str) -> bool:
    """Whether what is said of the families ``of``, which all begin so, holds for a family: of ``"tcgen05"`` for ``"tcgen05.mma"``."""
    return f"{family}.".startswith(f"{of}.")


def marked(spec: Spec, describes: str, bits: int) -> list[str]:
    """The families whose descriptors hold something other than 0 in fields that always hold the same, if the bits hold it there."""
    families = []
    for format in spec.descriptors:
        marks = [field for field in format.fields if field.fixed]
        if format.describes == describes and marks and all(taken(field, bits) == field.fixed for field in marks):
            families.append(format.family)
    return families


def check_target(format: DescriptorFormat, kind: str, target: str, database: DatabaseLike) -> None:
    """Check that a target has an instruction that reads a format; ``kind`` is that of the instruction, or empty for any.

    Raises:
        ValueError: it has none; the message lists the targets that do.
    """
    readers = catalog(database).all(lambda entry: reads(entry.family, format.family))
    variants = (reader.variant for reader in readers if not kind or kind in reader.qualifiers.values())
    allowed = {each.name: None for variant in variants for each in accepting(catalog(database).database.spec, variant)}
    if target not in allowed:
        what = f"{format.family} with {kind}" if kind else format.family
        raise ValueError(f"{target} has no instruction of {what}; targets that have one: {', '.join(allowed)}")
