"""The layouts of matrices, scale factors and metadata in an on-chip memory."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.digits import Summand, inverse, terms
from ptxmma.model.fields import SOME, Condition, Entry, Formula, Identifier, Name, Natural, Source, Text

#: The kinds of operands that have layouts in tensor memory.
TensorKind = Literal["tensor-accumulator", "tensor-matrix", "tensor-scales", "tensor-metadata", "tensor-copy"]


class Selection(Entry, frozen=True, kw_only=True):
    """A number of the instruction descriptor that selects a part of the columns, and its legal values."""

    name: Identifier  # "scale_id"
    when: tuple[Condition, ...] = ()
    values: Annotated[tuple[Natural, ...], SOME]  # (0, 2)
    source: Source


class TensorLayout(Entry, frozen=True, kw_only=True, dict=True):
    """The place of an operand in an on-chip memory: a formula for each coordinate, as a sum of digits of the axes.

    ``at`` gives the coordinates of a place, in their order: ``cta`` (0 or 1 in a pair), ``lane``, ``column`` and ``bit`` (the lowest of the
    element in its cell); a coordinate without a formula is 0.  Lanes and columns count from the address.  Each formula is a sum of
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
    align: Annotated[tuple[Natural, ...], Meta(min_length=1, description="lanes at which it may start")] = (0,)
    unit: Formula = "bits"  # bits of what lies at a place
    text: Text = ""
    source: Source

    @functools.cached_property
    def terms(self) -> tuple[Summand, ...]:
        """The digits of the formulas.

        Raises:
            NotDigitsError: a formula is not a sum of digits.
        """
        return tuple(terms(self.at, self.axes))

    @functools.cached_property
    def back(self) -> dict[str, str]:
        """The way back: a formula for each axis, over the coordinates."""
        return inverse(self.terms, self.axes)


class UnknownPlace(Entry, frozen=True, kw_only=True):
    """An operand of legal products whose place no source gives: the library says so."""

    operand: TensorKind
    matrix: Name = ""
    of: tuple[Condition, ...]
    text: Text  # "A of sparse products with M = 128 in a pair"
