"""LLVM's intrinsics of our instructions, with the properties that its optimiser reads, from TableGen's records in cuda-rust."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog.evidence.witnesses import Intrinsic
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import cuda_rust_forms, sources
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.forms import Ours, statements
from ptxmma_proof.peers.sources import Source

_NAME = "cuda-rust"
_IMMEDIATE = re.compile(r"ImmArg<arg(\d+)>")
#: The memory that an intrinsic may reach, and its effect, in the words of LLVM's IR.
_REACHED = {
    "IntrArgMemOnly": "argmem: ",
    "IntrInaccessibleMemOnly": "inaccessiblemem: ",
    "IntrInaccessibleMemOrArgMemOnly": "argmem, inaccessiblemem: ",
}
_EFFECTS = {"IntrReadMem": "read", "IntrWriteMem": "write"}


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Read the names in the checkout of cuda-rust.

    Raises:
        MissingPeerError: it is not there.
        OSError: it lacks the records.
    """
    checkout = sources.checkout(given, _NAME)
    records = json.loads((checkout.folder / cuda_rust_forms.IMPORTED).read_text(encoding="utf-8"))["intrinsics"]
    lines = sorted(_intrinsics(catalog, records), key=lambda line: line.name)
    totals = {"intrinsics": len(lines), "instructions": len({each for line in lines for each in line.instructions})}
    return Findings((checkout.tool(date),), {}, [], lines, totals)


def _intrinsics(catalog: Catalog, records: Sequence[Mapping[str, list[str]]]) -> Iterator[Intrinsic]:
    """A line for each intrinsic of which LLVM makes instructions of ours."""
    ours = Ours.of(catalog)
    for record in records:
        texts = (text.replace(";", " ;") for text in cuda_rust_forms.selected(record))  # some instructions have no operands
        spelled = (each.mnemonic for text in texts for each in statements(text))
        meant = (catalog.meaning(spelling) for spelling in spelled if ours.has(spelling))
        if instructions := sorted({each.variant.canonical for each in meant if each is not None}):
            properties = record["properties"]
            yield Intrinsic(
                name=str(record["llvm_name"]),
                instructions=tuple(instructions),
                convergent="IntrConvergent" in properties,
                memory=_memory(properties),
                immediates=tuple(sorted(int(match[1]) for each in properties if (match := _IMMEDIATE.fullmatch(each)))),
            )


def _memory(properties: Sequence[str]) -> str:
    """The memory attribute of LLVM's IR: ``"argmem: readwrite"``; empty without one, which means any memory."""
    if "IntrNoMem" in properties:
        return "none"
    reached = next((text for name, text in _REACHED.items() if name in properties), "")
    effect = next((text for name, text in _EFFECTS.items() if name in properties), "readwrite" if reached else "")
    return ", ".join(f"{where.strip()}: {effect}" for where in reached.removesuffix(": ").split(",")) if reached else effect
