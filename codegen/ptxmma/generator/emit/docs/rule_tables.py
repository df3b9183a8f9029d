"""The spec's other facts on an instruction: arithmetic, and facts in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import (
    Accumulation,
    Semantics,
    Statement,
)


def statements(entries: Iterable[Statement]) -> str:
    """Facts in words, as a list."""
    return rest.bullets(
        (f"Where {rest.condition(entry.when)}: " if entry.when else "")
        + rest.text(entry.text)
        + (f" (over the {entry.over}; {rest.source(entry.source)})" if entry.over else f" ({rest.source(entry.source)})")
        for entry in entries
    )


def semantics_table(promises: Sequence[Semantics]) -> str:
    """The promises about arithmetic."""
    overflow = {"wrap": "wraps", "saturate": "is clamped"}
    return struct_tables.table(
        promises,
        titles={
            "multiply": "Products",
            "accumulate": "Sums",
            "rounds": "Rounding",
            "truncates": "Ignored low bits",
            "text": "In words",
        },
        cells={
            "rounds": lambda promise: rest.text(f"to {promise.rounds}" if promise.rounds else ""),
            "overflow": lambda promise: rest.text(overflow.get(promise.overflow, promise.overflow)),
            "unspecified": lambda promise: rest.text(", ".join(promise.unspecified)),
        },
        first=("when", "text"),
        without=("sums",),
    )


def accumulation_table(promises: Iterable[Semantics]) -> str:
    """The observed ways in which chips sum."""
    observed: dict[Accumulation, list[Semantics]] = {}
    for promise in promises:
        for seen in promise.observed:
            observed.setdefault(seen, []).append(promise)
    return struct_tables.table(
        observed,
        titles={"where": "Where", "text": "In words", "fraction_bits": "Bits kept below the leading one of the largest term"},
        cells={"where": lambda seen: _where(observed[seen])},
        first=("chip", "where", "text"),
        without=("target",),
    )


def _where(promises: Sequence[Semantics]) -> str:
    """For which variants some promises hold."""
    return (
        rest.condition([part for promise in promises for part in promise.when]) if all(promise.when for promise in promises) else "always"
    )
