"""What else the spec says of an instruction: arithmetic, and facts in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import (
    Accumulation,
    InstructionSet,
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


def semantics_table(entry: InstructionSet) -> str:
    """What the arithmetic promises."""
    overflow = {"wrap": "wraps", "saturate": "is clamped"}
    return struct_tables.table(
        entry.semantics,
        titles={
            "multiply": "Products",
            "accumulate": "Sums",
            "rounds": "Rounding",
            "truncates": "Ignored low bits",
            "text": "In words",
        },
        cells={
            "rounds": lambda one: rest.text(f"to {one.rounds}" if one.rounds else ""),
            "overflow": lambda one: rest.text(overflow.get(one.overflow, one.overflow)),
            "unspecified": lambda one: rest.text(", ".join(one.unspecified)),
        },
        first=("when", "text"),
        without=("sums",),
    )


def accumulation_table(entry: InstructionSet) -> str:
    """How chips were seen to sum."""
    observed: dict[Accumulation, list[Semantics]] = {}
    for one in entry.semantics:
        for seen in one.observed:
            observed.setdefault(seen, []).append(one)
    return struct_tables.table(
        observed,
        titles={"where": "Where", "text": "In words", "fraction_bits": "Bits kept below the leading one of the largest term"},
        cells={"where": lambda seen: _where(observed[seen])},
        first=("chip", "where", "text"),
        without=("target",),
    )


def _where(promises: Sequence[Semantics]) -> str:
    """For which variants some promises hold."""
    return rest.condition([part for one in promises for part in one.when]) if all(one.when for one in promises) else "always"
