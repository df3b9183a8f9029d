"""Tensor memory: its size and addresses, and where matrices, scale factors and metadata lie in it."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from msgspec import Meta

from ptxmma.model.conditions import Condition, Entry
from ptxmma.model.digits import Term, inverse, terms
from ptxmma.model.fields import SOME, Formula, Identifier, Name, Natural, Positive, Source, TargetName, Text
from ptxmma.model.instruction import Statement

#: The coordinates of tensor memory: the CTA of a pair, the lane, the column, and the bit of the cell.
COORDINATES = ("cta", "lane", "column", "bit")

#: The kinds of operands that have layouts in tensor memory.
TensorKind = Literal["tensor-accumulator", "tensor-matrix", "tensor-scales", "tensor-metadata", "tensor-copy"]


class TensorColumns(Entry, frozen=True, kw_only=True):
    """The columns of tensor memory on some targets."""

    targets: Annotated[tuple[TargetName, ...], SOME]  # these, and those that include one of them; all that the rows before do not name
    columns: Positive  # 512
    source: Source


class Selection(Entry, frozen=True, kw_only=True):
    """A number of the instruction descriptor that selects a part of the columns, and its legal values."""

    name: Identifier  # "scale_id"
    when: tuple[Condition, ...] = ()
    values: Annotated[tuple[Natural, ...], SOME]  # (0, 2)
    source: Source


class TensorLayout(Entry, frozen=True, kw_only=True, dict=True):
    """The place of an operand in tensor memory: a formula for each coordinate, as a sum of digits of the axes.

    ``at`` gives the coordinates of a place: ``cta`` (0 or 1 in a pair), ``lane``, ``column`` and ``bit`` (the lowest of the element in its
    cell); a coordinate without a formula is 0.  Lanes and columns count from the address.  Each formula is a sum of
    ``weight * (axis // step % size)``, the smallest weight first.  The formulas read the extents of the instruction, ``bits`` of an
    element, ``ratio``, ``chunk_size``, ``blocks`` (scale factors of a row) and ``ctas``.
    """

    name: Identifier  # "layout_a": end of the names of its functions
    title: Text
    operand: TensorKind  # "tensor-accumulator"
    matrix: Name = ""  # the matrix that the operand describes, where that decides: "a"
    of: tuple[Condition, ...]
    axes: Annotated[dict[Identifier, Formula], SOME]  # the sizes: {"row": "m", "col": "n"}
    apart: tuple[Identifier, ...] = ()  # axes that number copies of the same data
    selections: tuple[Selection, ...] = ()
    at: Annotated[dict[Identifier, Formula], SOME]
    align: Annotated[tuple[Natural, ...], Meta(description="lanes at which it may start")] = (0,)
    unit: Formula = "bits"  # bits of what lies at a place
    text: Text = ""
    source: Source

    @functools.cached_property
    def terms(self) -> tuple[Term, ...]:
        """The digits of the formulas.

        Raises:
            NotDigitsError: a formula is not a sum of digits.
        """
        return tuple(terms(self.at, self.axes))

    @functools.cached_property
    def back(self) -> dict[str, str]:
        """The way back: a formula for each axis, over the coordinates."""
        return inverse(self.terms, self.axes)


class TensorMemory(Entry, frozen=True, kw_only=True):
    """A memory of lanes and columns of cells: its size, its addresses, and the layouts of operands in it."""

    name: Identifier  # "tensor": start of the names of its files and of its functions in C
    title: Text  # "tensor memory"
    of: tuple[Condition, ...] = ()  # the instructions that reach it; none: those that no other memory names
    lanes: Positive  # 128
    cell: Positive  # bits: 32
    columns: Annotated[tuple[TensorColumns, ...], SOME]
    partition: Positive  # lanes that a warp reaches: 32
    allocation: Positive  # columns of a unit of allocation: 32
    address: dict[Identifier, Natural]  # the lowest bit of each part of an address: {"column": 0, "lane": 16}
    notes: tuple[Statement, ...] = ()
    source: Source
    layouts: tuple[TensorLayout, ...] = ()

    @property
    def addresses(self) -> range:
        """Every number that an address can be."""
        counts = {"lane": self.lanes, "column": self.most_columns}
        return range(counts[self._high] << self.address[self._high])

    @property
    def _high(self) -> str:
        """The coordinate in the upper bits of an address."""
        return max(self.address, key=lambda name: self.address[name])

    @property
    def most_columns(self) -> int:
        """The columns on the target that has most of them."""
        return max(row.columns for row in self.columns)

    @property
    def least_columns(self) -> int:
        """The columns that every target has."""
        return min(row.columns for row in self.columns)

    def address_of(self, lane: Any, column: Any) -> Any:
        """The address of a cell: integers, or arrays that are wide enough."""
        return (lane << self.address["lane"]) + (column << self.address["column"])

    def parts(self, address: Any) -> tuple[Any, Any]:
        """The lane and the column of an address, or of an array of them."""
        low = self.address[self._high]
        above, below = address >> low, address & (1 << low) - 1
        return (above, below) if self._high == "lane" else (below, above)

    def layout(self, name: str) -> TensorLayout:
        """The layout of that name."""
        return next(entry for entry in self.layouts if entry.name == name)
