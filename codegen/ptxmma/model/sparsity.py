"""Structured sparsity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ptxmma.model.conditions import Condition, Entry

#: What is wrong with a field of metadata; ``"out of order"``: with its indices in ascending order it would be legal.
Fault = Literal["equal indices", "out of order", "illegal"]


class Granularity(Entry, frozen=True, kw_only=True):
    """A pattern of structured sparsity, e.g. 2:4: two of four elements are kept."""

    name: str  # "2:4"
    of: tuple[Condition, ...]
    chunk: int  # elements of the full matrix that one field describes: 4
    kept: int  # elements of them that are stored: 2
    unit: int  # elements that are kept or dropped together: 1
    index_bits: int  # bits of one index: 2
    indices: int  # indices in a field: 2
    legal: tuple[str, ...]  # field values, in binary: "0b0100"
    ordered: tuple[str, ...] = ()  # the legal ones where the indices must ascend
    ordered_when: tuple[Condition, ...] = ()  # which variants demand that
    text: str
    source: str

    @property
    def units(self) -> int:
        """Units of a chunk."""
        return self.chunk // self.unit

    def kept_units(self, field: str) -> tuple[int, ...]:
        """The units of a chunk that a legal field keeps, the one whose element stands first in the packed matrix first."""
        if self.indices == 1:  # too wide to be a place: the legal values stand for the places in their order
            return (self.legal.index(field),)
        return self._indices(int(field, 2))

    def faults(self, legal: Sequence[str]) -> dict[int, Fault]:
        """Every value that a field must not have where only those in ``legal`` are allowed, and why."""
        allowed = {int(field, 2) for field in legal}
        return {value: self._fault(value, allowed) for value in range(1 << self.index_bits * self.indices) if value not in allowed}

    def _fault(self, value: int, allowed: set[int]) -> Fault:
        indices = self._indices(value)
        if len(set(indices)) < len(indices):
            return "equal indices"
        ascending = sum(index << self.index_bits * place for place, index in enumerate(sorted(indices)))
        return "out of order" if ascending in allowed else "illegal"

    def _indices(self, value: int) -> tuple[int, ...]:
        return tuple(value >> self.index_bits * index & (1 << self.index_bits) - 1 for index in range(self.indices))


class Choice(Entry, frozen=True, kw_only=True):
    """Which field describes a chunk, by the units of it that are not zero."""

    units: int  # units of a chunk: 4
    fields: dict[str, str]  # the units that are not zero, the first one lowest, to the field: {"0b0001": "0b1000", …}
    text: str
    source: str
