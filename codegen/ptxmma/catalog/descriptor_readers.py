"""Which instructions read a descriptor, by their families, and on which targets."""

from __future__ import annotations

from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.requirements import accepting
from ptxmma.model import DescriptorFormat


def reads(family: str, of: str) -> bool:
    """Whether what is said of the families ``of``, which all begin so, holds for a family: of ``"tcgen05"`` for ``"tcgen05.mma"``."""
    return f"{family}.".startswith(f"{of}.")


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
