"""The page of published peaks."""

from __future__ import annotations

from typing import Any

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import Spec


def page(spec: Spec) -> dict[str, Any]:
    """The values for the page's template."""
    return {
        "chips": struct_tables.table(
            spec.throughput, titles={"clock": "Clock"}, cells={"clock": lambda chip: f"{chip.clock} MHz"}, code=("target",)
        ),
        "peaks": [
            {
                "chip": rest.text(f"{chip.chip} at {chip.clock} MHz"),
                "rates": struct_tables.table(
                    chip.rates,
                    titles={"dense": "Dense", "sparse": "Sparse A", "published": "Of the whole chip"},
                    cells={"published": lambda rate: " and ".join(map(rest.text, rate.published))},
                ),
            }
            for chip in spec.throughput
        ],
    }
