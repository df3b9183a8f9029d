"""The shared memory of a database: its bytes in each chip, and the element types that the instructions of a family read there."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.user_names import target_named, type_named
from ptxmma.model import ElementType, Majorness, Padded, SharedCapacity, SharedMemory, Swizzle


def memory_of(database: DatabaseLike) -> SharedMemory:
    """The shared-memory part of a database.

    Raises:
        ValueError: the database has none.
    """
    memory = catalog(database).database.spec.shared_memory
    if memory is None:
        raise ValueError("the database says nothing about shared memory")
    return memory


def majornesses(family: str, database: DatabaseLike) -> list[Majorness]:
    """The types that the instructions of a family can read from shared memory."""
    return [entry for entry in memory_of(database).majorness if reads(family, entry.family)]


def swizzles(family: str, database: DatabaseLike) -> list[Swizzle]:
    """The swizzle modes that the instructions of a family read."""
    known = {name for entry in majornesses(family, database) for name in entry.swizzles}
    return [mode for mode in memory_of(database).swizzles if mode.name in known]


def paddings(family: str, database: DatabaseLike) -> list[Padded]:
    """The types that the instructions of a family read with padding."""
    return [entry for entry in memory_of(database).padded if reads(family, entry.family)]


def readable(majorness: str, database: DatabaseLike, *, family: str, swizzle: str = "", padded: bool = False) -> dict[str, ElementType]:
    """The element types that instructions of a family read with a majorness, and with a swizzle where one is given, by name.

    With ``padded`` the types that they read with padding.
    """
    spec = catalog(database).database.spec
    known: Sequence[Majorness | Padded] = paddings(family, database) if padded else majornesses(family, database)
    entries = [entry for entry in known if entry.majorness == majorness and (not swizzle or swizzle in entry.swizzles)]
    return {each.name: each for each in spec.types.elements if any(each.name in entry.elements for entry in entries)}


def element_of(
    given: ElementType | str, majorness: str, database: DatabaseLike, *, family: str, swizzle: str = "", padded: bool = False
) -> ElementType:
    """An element type that instructions of a family can read with that majorness and swizzle.

    Raises:
        ValueError: an unknown type, or one that cannot be read so.
    """
    spec = catalog(database).database.spec
    types = readable(majorness, database, family=family, swizzle=swizzle, padded=padded)
    name = given.name if isinstance(given, ElementType) else type_named(spec, given) if isinstance(given, str) else ""
    if name in types:
        return types[name]
    if padded:
        raise ValueError(f"{family} reads no {name} with padding; {majorness}-major: {', '.join(types) or 'nothing'}")
    entries = majornesses(family, database)
    if not any(name in entry.elements for entry in entries) and any(each.name == name for each in spec.types.elements):
        described = (each for each in spec.instructions if any(kind.kind == "descriptor" for kind in each.operand_kinds.values()))
        every = dict.fromkeys(each.family for each in described if reads(each.family, family))
        if any(name in entry.elements for entry in paddings(family, database)):
            raise ValueError(f"{family} reads {name} with padding; say so, with padded=True, or take one of {', '.join(types)}")
        whose = " and ".join(every) or f"the instructions of {family}"
        raise ValueError(f"{whose} have no {name}; they read {majorness}-major: {', '.join(types)}")
    if any(each.name == name for each in spec.types.elements):
        others = [mode for entry in entries if entry.majorness == majorness and name in entry.elements for mode in entry.swizzles]
        hint = f" with swizzle {swizzle}" if others else ""
        also = f", and {name} with {' or '.join(others)}" if others else ""
        elsewhere = [entry.family for entry in memory_of(database).majorness if entry.majorness == majorness and name in entry.elements]
        if elsewhere and not others:
            also = f"; {' and '.join(dict.fromkeys(elsewhere))} can read {name}"
        raise ValueError(f"{family} cannot read {name} {majorness}-major{hint}; it reads {', '.join(types) or 'no type so'}{also}")
    raise ValueError(f"unknown element type {given!r}; known for {majorness}-major, named as in PTX: {', '.join(types)}")


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
