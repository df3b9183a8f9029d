"""Bytes of shared memory that thread blocks can have."""

from __future__ import annotations

from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.model import SharedCapacity


def capacity(target: str, *, database: DatabaseLike = None) -> SharedCapacity:
    """Return the bytes of shared memory of a chip: ``block``, the maximum of a thread block, and ``sm``, the maximum of an SM.

    Args:
        target: any name of a target: ``"sm_90a"``, ``"H100"``.
        database: another than the packaged one.

    Raises:
        ValueError: an unknown target, or one of which no source gives them.

    >>> capacity("H100").block, capacity("sm_107a").sm
    (232448, 335872)
    """
    spec = catalog(database).database.spec
    name = target_named(spec, target)
    for entry in spec.capacities:
        if name.rstrip("af") in entry.targets:
            return entry
    raise ValueError(
        f"no source gives the shared memory of {name}; known: {', '.join(each for entry in spec.capacities for each in entry.targets)}"
    )
