"""Legal choices in the instruction descriptor of ``tcgen05.mma``: rules with ranges, in place of a row for each combination."""

from __future__ import annotations

import functools
from typing import Annotated

from ptxmma.model.decision_table import DecisionTable
from ptxmma.model.fields import SOME, Condition, ElementName, Entry, Identifier, Positive, Source, TargetName
from ptxmma.model.instruction import Range


class ProductTypes(Entry, frozen=True, kw_only=True):
    """Element types that go together: any of each list with any of the others."""

    of: tuple[Condition, ...]
    dtype: Annotated[tuple[ElementName, ...], SOME]
    atype: Annotated[tuple[ElementName, ...], SOME]
    btype: Annotated[tuple[ElementName, ...], SOME]
    source: Source


class ProductDepth(Entry, frozen=True, kw_only=True):
    """A depth K; where several are legal, a descriptor whose K field is 0 has the first."""

    of: tuple[Condition, ...]
    k: Positive
    targets: tuple[TargetName, ...] = ()  # targets that take it, with all that include one of them; all if absent
    source: Source


class ProductShape(Entry, frozen=True, kw_only=True):
    """The sizes M and N that go together."""

    of: tuple[Condition, ...]
    m: Annotated[tuple[Positive, ...], SOME]
    n: Annotated[tuple[Range, ...], SOME]
    source: Source


class ProductOption(Entry, frozen=True, kw_only=True):
    """A value of a field on which the meaning or the place of an operand depends; of several legal ones the first is usual."""

    of: tuple[Condition, ...]
    field: Identifier  # a field of the instruction descriptor: "sparsity_version"
    value: str | int  # "v1", as the descriptor names it
    targets: tuple[TargetName, ...] = ()
    source: Source


class ProductLimit(Entry, frozen=True, kw_only=True):
    """The M, the N, or the values of fields, that qualifiers and other fields of the instruction descriptor leave; conditions read both."""

    of: tuple[Condition, ...]
    m: tuple[Positive, ...] = ()  # any if absent
    n: tuple[Range, ...] = ()  # any if absent
    fields: Condition = {}  # the types of D, A and B, and fields of the descriptor that choose no product: {btype: "e4m3"}
    source: Source

    def __post_init__(self) -> None:
        """A limit is one of M, of N or of a field."""
        if not (self.m or self.n or self.fields):
            raise ValueError("a limit leaves some M, some N or some values of a field: give m, n or fields")


class ProductScale(Entry, frozen=True, kw_only=True):
    """The types of scale factors, and the kept elements along K that share one."""

    of: tuple[Condition, ...]
    stype: Annotated[tuple[ElementName, ...], SOME]
    block: Positive
    targets: tuple[TargetName, ...] = ()
    source: Source


class TensorProducts(Entry, frozen=True, kw_only=True, dict=True):
    """The legal choices: a product is legal if a row of each list has its values.

    Conditions read the qualifiers of the instruction, and what the lists before have chosen: types, then ``k``, then the fields of
    ``options``, then ``m`` and ``n``.
    """

    types: Annotated[tuple[ProductTypes, ...], SOME]
    depths: Annotated[tuple[ProductDepth, ...], SOME]
    options: tuple[ProductOption, ...] = ()
    shapes: Annotated[tuple[ProductShape, ...], SOME]
    limits: tuple[ProductLimit, ...] = ()  # a product whose descriptor one of these rows is for needs the row's M, N and fields, too
    scales: tuple[ProductScale, ...] = ()

    @functools.cached_property
    def fitting(self) -> ProductTables:
        """The rows of each list, looked up by facts."""
        return ProductTables(self)


class ProductTables:
    """The lists of rules as decision tables: ``tables.depths(facts)``."""

    def __init__(self, rules: TensorProducts) -> None:
        self.types = DecisionTable(rules.types, "of")
        self.depths = DecisionTable(rules.depths, "of")
        self.options = DecisionTable(rules.options, "of")
        self.shapes = DecisionTable(rules.shapes, "of")
        self.limits = DecisionTable(rules.limits, "of")
        self.scales = DecisionTable(rules.scales, "of")
