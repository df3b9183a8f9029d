"""Compares the forms of instructions with the lists of other projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ptxmma.catalog.evidence.witnesses import Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import cccl_forms, cuda_rust_forms, forms, llvm_forms, sources, tvm_forms
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.forms import Listed, Ours
from ptxmma_proof.peers.sources import MissingPeerError, Source

#: The operand of a difference about what a peer leaves out.
_UNLISTED = "unlisted"
#: The readers of checkouts.
_LISTS = {"cccl": cccl_forms.forms, "TVM": tvm_forms.forms, "cuda-rust": cuda_rust_forms.forms}


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare a catalog with checkouts and with the LLVM in the installed Triton.

    Raises:
        MissingPeerError: a checkout or Triton is not there.
    """
    ours = Ours.of(catalog)
    tools = [sources.checkout(given, name).tool(date) for name in _LISTS]
    try:
        tools.append(Tool(kind="peer", name="LLVM", version=llvm_forms.version(), date=date))
        listed = {name: forms.compare(catalog, read(given[name].folder, ours)) for name, read in _LISTS.items()}
        listed["LLVM"] = forms.compare(catalog, llvm_forms.forms(ours))
    except (OSError, ImportError) as error:
        raise MissingPeerError(f"{error}; LLVM comes with: pip install triton") from None
    rows = {name: each.compared for name, each in listed.items()}
    return Findings(tuple(tools), rows, [each for name, own in listed.items() for each in _all(name, own)])


def _all(peer: str, listed: Listed) -> Iterator[Difference]:
    """The differences, and what the peer leaves out, for each family."""
    yield from listed.differences
    lacking: dict[str, list[str]] = defaultdict(list)
    for one in listed.lacking:
        lacking[one.family].append(one.canonical)
    for family, names in lacking.items():
        yield Difference(peer, family, _UNLISTED, "lists fewer", f"{len(names)} more, {names[0]} for one", len(names), len(names))
