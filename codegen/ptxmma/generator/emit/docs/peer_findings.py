"""The page of the peers: how CuTe and PyTorch describe the same instructions."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.witnesses import Difference, Unknown, Witness
from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.generator.emit.docs.proofs import witness_table


def page(witness: Witness) -> dict[str, Any]:
    """The data of the page; the witness must have a run."""
    assert witness.run is not None
    return {
        "date": rest.text(witness.run.date),
        "tools": witness_table(witness.run.tools, without=("date",)),
        "totals": rest.totals(witness.run),
        "differences": struct_tables.table(
            witness.of(Difference),
            titles={"subjects": "What", "theirs": "The peer says", "ours": "We say"},
            cells={"subjects": lambda difference: "\n\n".join(map(rest.code, difference.subjects))},
            code=("operand",),
        ),
        "unknown": struct_tables.table(witness.of(Unknown), code=("instruction",)),
    }
