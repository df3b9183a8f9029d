"""The page of the peers: what CuTe and PyTorch say of the same instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ptxmma.catalog.witnesses import Difference, Unknown, Witness
from ptxmma.generator.emit.docs import rest


def page(witness: Witness) -> dict[str, Any]:
    """The data of the page; the witness must have a run."""
    assert witness.run is not None
    return {
        "date": rest.text(witness.run.date),
        "tools": rest.table(("Peer", "Version", "SHA-256"), (rest.tool(tool)[:3] for tool in witness.run.tools)),
        "totals": rest.totals(witness.run),
        "differences": rest.table(("What", "Operand", "The peer says", "We say", "Why"), _differences(witness.of(Difference))),
        "unknown": rest.table(
            ("Instruction", "Atoms"), ((rest.code(one.instruction), rest.codes(one.atoms)) for one in witness.of(Unknown))
        ),
    }


def _differences(differences: Iterable[Difference]) -> Iterator[Sequence[str]]:
    for one in differences:
        subjects = "\n\n".join(map(rest.code, one.subjects))
        yield subjects, rest.code(one.operand), rest.text(one.theirs), rest.text(one.ours), rest.text(one.why)
