"""Structured sparsity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from ptxmma.model.fields import SOME, Binary, Condition, Entry, Facts, Positive, Source, Text, like, matches

#: The fault of a field of metadata; ``"out of order"``: with its indices in ascending order it would be legal.
Fault = Literal["equal indices", "out of order", "illegal"]


class Granularity(Entry, frozen=True, kw_only=True):
    """A pattern of structured sparsity, e.g. 2:4: two of four elements are kept."""

    name: Annotated[str, like(r"^[0-9]+:[0-9]+$", "kept elements, a colon, elements of a chunk")]  # "2:4"
    of: tuple[Condition, ...]
    chunk: Annotated[int, Meta(ge=2)]  # elements of the full matrix that one field describes: 4
    kept: Positive  # elements of them that are stored: 2
    unit: Positive  # elements that are kept or dropped together: 1
    index_bits: Positive  # bits of one index: 2
    indices: Positive  # indices in a field: 2
    legal: Annotated[tuple[Binary, ...], SOME]  # field values, in binary: "0b0100"
    ordered: Annotated[tuple[Binary, ...], SOME] = ()  # the legal ones where the indices must ascend
    ordered_when: tuple[Condition, ...] = ()  # the variants that demand ascending indices
    text: Text
    source: Source

    def __post_init__(self) -> None:
        """The name says the sizes, indices differ, and ordered fields, whose indices ascend, need a condition."""
        if bool(self.ordered) != bool(self.ordered_when):
            raise ValueError("ordered and ordered_when go together: the legal fields in order, and which variants demand that")
        if self.name != f"{self.kept}:{self.chunk}":
            raise ValueError(f"a pattern that keeps {self.kept} of {self.chunk} is {self.kept}:{self.chunk}, not {self.name}")
        if extra := set(self.ordered) - set(self.legal):
            raise ValueError(f"ordered are some of the legal fields; {min(extra)} is not legal")
        for fields in (self.legal, self.ordered):
            for field in fields if self.indices > 1 else ():
                indices = self._indices(int(field, 2))
                if len(set(indices)) < len(indices) or (fields is self.ordered and list(indices) != sorted(indices)):
                    raise ValueError(f"{field} is not legal here: its indices are {', '.join(map(str, indices))}, the lowest bits first")

    @property
    def ratio(self) -> int:
        """Columns of the full matrix for each column of the packed one: 2."""
        return self.chunk // self.kept

    @property
    def width(self) -> int:
        """Bits of a field: 4."""
        return self.index_bits * self.indices

    def admitted(self, facts: Facts) -> tuple[str, ...]:
        """The values that a field may have in an instruction with these facts."""
        return self.ordered if self.ordered and matches(self.ordered_when, facts) else self.legal

    def chunk_of(self, col: Any) -> Any:
        """The first column, in the full matrix, of the chunk from which column ``col`` of the packed matrix comes."""
        return col // self.kept * self.chunk

    def window_of(self, col: Any, per_register: int) -> tuple[Any, Any]:
        """First and last column, in the full matrix, that the register with column ``col`` of the packed matrix covers."""
        first = col // per_register * (per_register * self.ratio)
        return first, first + per_register * self.ratio - 1

    @property
    def units(self) -> int:
        """Units of a chunk."""
        return self.chunk // self.unit

    def kept_units(self, field: str) -> tuple[int, ...]:
        """The units of a chunk that a legal field keeps, the one whose element comes first in the packed matrix first."""
        if self.indices == 1:  # too wide to be a place: the legal values number the places in their order
            return (self.legal.index(field),)
        return self._indices(int(field, 2))

    def columns(self, col: int, legal: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """The columns of the full matrix from which column ``col`` of the packed one may come, each with the fields that say so.

        ``legal`` are the fields to choose from.
        """
        place = col % self.kept
        sources: dict[int, list[str]] = {}
        for field in legal:
            unit = self.kept_units(field)[place // self.unit]
            sources.setdefault(self.chunk_of(col) + unit * self.unit + place % self.unit, []).append(field)
        return {column: tuple(sources[column]) for column in sorted(sources)}

    def index_of(self, col: int) -> int:
        """The number of an element's index in its field, by its column in the packed matrix; a single index describes the whole chunk."""
        return col % self.kept // self.unit % self.indices

    def faults(self, legal: Sequence[str]) -> dict[int, Fault]:
        """Every value that a field must not have where only the fields in ``legal`` are allowed, with the fault of each."""
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
    """The field that describes a chunk, by the units of it that are not zero."""

    units: Annotated[int, Meta(ge=2, le=4)]  # units of a chunk: 4
    fields: Annotated[
        dict[Binary, Binary], SOME
    ]  # the units that are not zero, the first one lowest, to the field: {"0b0001": "0b1000", …}
    text: Text
    source: Source
