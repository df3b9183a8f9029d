"""Patterns of structured sparsity with the tables that compression and its inverse look up."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from ptxmma.arrays.metadata_bytes import FIELD_BITS, from_fields
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import DatabaseLike, Instruction, catalog
from ptxmma.catalog.operands.operand_form import Missing
from ptxmma.model import Database, Granularity, Spec


class Pattern:
    """A pattern of structured sparsity with the tables that compression and its inverse look up.

    Attributes:
        name: ``"2:4"``.
        chunk: elements that one field describes.
        kept: elements of a chunk that are stored.
        unit: elements kept or dropped together.
        units: units of a chunk; stored_units: how many of them are stored.
    """

    def __init__(self, spec: Spec, name: str, legal: Sequence[str] = ()) -> None:
        """``legal`` are the fields that it admits; by default the fields of every instruction with the pattern."""
        entries = [entry for entry in spec.granularities if entry.name == name]
        first = entries[0]
        if first.index_bits * first.indices != FIELD_BITS:
            raise ValueError(
                f"{name} has fields of {first.index_bits * first.indices} bits; row-major metadata holds fields of {FIELD_BITS}"
            )
        self.spec = spec
        self.name, self.chunk, self.kept, self.unit = name, first.chunk, first.kept, first.unit
        self.units, self.stored_units = first.units, first.kept // first.unit
        self.fields = {int(occupied, 2): int(field, 2) for occupied, field in spec.choice(first).fields.items()}
        legal = legal or _legal(entries)
        self.faults = first.faults(legal)

        # By field; what an illegal one places is never looked at.
        self.legal = ~np.isin(np.arange(1 << FIELD_BITS), list(self.faults))
        places = np.zeros((1 << FIELD_BITS, self.stored_units), np.intp)
        for field in legal:
            places[int(field, 2)] = first.kept_units(field)
        # By byte of metadata: whether both fields are legal, and the units of two chunks that its values are.
        low, high = np.arange(256) & 15, np.arange(256) >> 4
        self.legal_bytes = self.legal[low] & self.legal[high]
        self.places = np.concatenate([places[low], self.units + places[high]], axis=1)
        # By byte whose bits say which of eight units are not zero: how many chunks have too many, and the metadata.
        chunks = [[byte >> start & (1 << self.units) - 1 for start in range(0, 8, self.units)] for byte in range(256)]
        self.crowded = np.array([sum(chunk not in self.fields for chunk in row) for row in chunks], np.uint8)
        self.metadata = from_fields(np.array([[self.fields.get(chunk, 0) for chunk in row] for row in chunks], np.uint8))
        for table in (self.legal, self.legal_bytes, self.places, self.crowded, self.metadata):
            table.flags.writeable = False

    def __repr__(self) -> str:
        return f"<Pattern {self.name}>"


def _legal(entries: Iterable[Granularity]) -> tuple[str, ...]:
    """The fields that any of the instructions with these patterns admits."""
    return tuple(dict.fromkeys(field for entry in entries for field in entry.legal))


def pattern(name: str, *, database: DatabaseLike = None) -> Pattern:
    """The pattern of that name in a database, which the functions of this module take in the place of its name.

    Raises:
        ValueError: the database has no such pattern.
    """
    source = catalog(database).database
    known = dict.fromkeys(entry.name for entry in source.spec.granularities)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown pattern {name!r}; known: {', '.join(known)}")
    return _made(source, name)


def _made(source: Database, name: str, legal: Sequence[str] = ()) -> Pattern:
    """The pattern with these fields, made once."""
    key = ("sparse", name, tuple(legal))
    if key not in source.memo:
        source.memo[key] = Pattern(source.spec, name, legal)
    made: Pattern = source.memo[key]
    return made


def narrowed(given: str | Pattern | Instruction, element: str) -> Pattern:
    """The pattern with the fields that the instructions for a type of A admit, of which those that name no types do not count.

    An instruction has its own already, and so has a pattern that no instruction has for that type.
    """
    coding = pattern_of(given)
    return coding if isinstance(given, Instruction) else _of_type(coding, element)


@functools.lru_cache(maxsize=64)
def _of_type(coding: Pattern, element: str) -> Pattern:
    entries = [entry for entry in coding.spec.granularities if entry.name == coding.name]
    own = [entry for entry in entries if any(element in part.get("atype", ()) for part in entry.of)]
    legal = _legal(own)
    return coding if not own or legal == _legal(entries) else Pattern(coding.spec, coding.name, legal)


def pattern_of(given: str | Pattern | Instruction) -> Pattern:
    """A pattern, the one of that name, or the one of a sparse instruction, with the fields that it admits.

    Raises:
        ValueError: no such pattern, or an instruction that is not sparse.
    """
    if isinstance(given, Instruction):
        entry = layouts.granularity(given.database.spec, given.variant)
        if entry is None:
            raise Missing(f"{given.canonical} is not sparse: it has no metadata")
        return _made(given.database, entry.name, entry.admitted(given.variant.facts))
    return given if isinstance(given, Pattern) else pattern(given)
