"""The conversions of narrow codes: their cost, the order of codes that they want, and their steps."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.descriptors.bits import bit_range
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.docs import rest
from ptxmma.matrices.quantised import steps
from ptxmma.matrices.quantised.conversions import functions, held
from ptxmma.model import Dequantisation

#: Codes for which the page counts instructions.
_CODES = 8


def page(catalog: Catalog) -> dict[str, Any]:
    """The values for the part of the guide to quantised weights."""
    spec = catalog.database.spec
    bits = {entry.name: entry.bits for entry in spec.types.elements}
    grouped = functions(spec)
    rows = [
        (
            rest.code(name),
            "; ".join(_cost(entry, bits[entry.codes]) for entry in entries),
            f"0 to {entries[0].largest_zero}" if entries[0].largest_zero else rest.NOTHING,
        )
        for name, entries in grouped.items()
    ]
    orders: dict[tuple[int, ...], list[str]] = {}
    for name, entries in grouped.items():
        orders.setdefault(held(entries[0], bits[entries[0].codes]), []).append(name)
    return {
        "costs": rest.table(("Function", f"Instructions for {_CODES} codes", "Zero points"), rows),
        "orders": [{"functions": rest.codes(functions), "picture": _register(order)} for order, functions in orders.items()],
        "steps": [
            {
                "name": name,
                "targets": _targets(entry),
                "text": rest.text(entry.text),
                "lines": entry.steps,
                "finite": entry.finite,
            }
            for name, entries in grouped.items()
            for entry in entries
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
        ["bits", *(bit_range(place * width, width) for place in places)],
        [
            ["element", *(str(order[place]) for place in places)],
            ["register, half", *(f"{order[place] // 2}, {('low', 'high')[order[place] % 2]}" for place in places)],
        ],
    )
