"""The conversions of narrow codes: their cost, the order of codes that they want, and their steps."""

from __future__ import annotations

import itertools
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.docs import rest
from ptxmma.matrices.quantised import steps
from ptxmma.matrices.quantised.conversions import function, held
from ptxmma.model import Dequantisation

#: Codes for which the page counts instructions.
_CODES = 8


def page(catalog: Catalog) -> dict[str, Any]:
    """The values for the part of the guide to quantised weights."""
    spec = catalog.database.spec
    bits = {entry.name: entry.bits for entry in spec.types.elements}
    grouped = [[*entries] for _, entries in itertools.groupby(spec.dequantisations, function)]
    rows = [
        (
            rest.code(function(entries[0])),
            "; ".join(_cost(entry, bits[entry.codes]) for entry in entries),
            f"0 to {entries[0].largest_zero}" if entries[0].largest_zero else rest.NOTHING,
        )
        for entries in grouped
    ]
    orders: dict[tuple[int, ...], list[str]] = {}
    for entries in grouped:
        orders.setdefault(held(entries[0], bits[entries[0].codes]), []).append(function(entries[0]))
    return {
        "costs": rest.table(("Function", f"Instructions for {_CODES} codes", "Zero points"), rows),
        "orders": [{"functions": rest.codes(functions), "picture": _register(order)} for order, functions in orders.items()],
        "steps": [
            {
                "name": function(entry),
                "targets": _targets(entry),
                "text": rest.text(entry.text),
                "lines": entry.steps,
                "finite": entry.finite,
            }
            for entry in spec.dequantisations
        ],
    }


def _cost(entry: Dequantisation, bits: int) -> str:
    return f"{steps.count(entry.steps, 'codes') * _CODES * bits // steps.WORD} on {_targets(entry)}"


def _targets(entry: Dequantisation) -> str:
    return f"{' or '.join(map(rest.code, entry.targets))} and newer, PTX ISA {entry.ptx}"


def _register(order: tuple[int, ...]) -> str:
    """A register as a table: the elements of the fragment that its bits are, the highest first."""
    width = steps.WORD // len(order)
    places = [*reversed(range(len(order)))]
    return rest.table(
        ["bits", *(f"{(place + 1) * width - 1}:{place * width}" for place in places)],
        [
            ["element", *(str(order[place]) for place in places)],
            ["register, half", *(f"{order[place] // 2}, {('low', 'high')[order[place] % 2]}" for place in places)],
        ],
    )
