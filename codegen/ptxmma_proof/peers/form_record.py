"""Compares the forms of instructions with the lists of other projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ptxmma.catalog.evidence.witnesses import Tool
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import forms, sources
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.forms import Form, Listed
from ptxmma_proof.peers.sources import MissingPeerError, Source

#: The operand of a difference about what a peer leaves out.
_UNLISTED = "unlisted"


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare a catalog with a checkout of cccl and with the installed LLVM.

    Raises:
        MissingPeerError: cccl's headers or LLVM are not there.
    """
    cccl = sources.checkout(given, "cccl")
    try:
        from ptxmma_proof.corpus import llvm
        from ptxmma_proof.peers import llvm_forms

        lists = [list(forms.cccl(cccl.folder)), llvm_forms.forms()]
        tools = (cccl.tool(date), Tool(kind="peer", name="LLVM", version=llvm.version(), date=date))
    except (OSError, ImportError) as error:
        raise MissingPeerError(f"{error}; LLVM comes with: pip install llvmlite") from None
    compared = [forms.compare(catalog, own) for own in lists]
    rows = {own[0].peer: listed.compared for own, listed in zip(lists, compared, strict=True)}
    return Findings(tools, rows, [each for own, listed in zip(lists, compared, strict=True) for each in _all(own, listed)])


def _all(own: list[Form], listed: Listed) -> Iterator[Difference]:
    """The differences, and what the peer leaves out, for each family."""
    yield from listed.differences
    lacking: dict[str, list[str]] = defaultdict(list)
    for one in listed.lacking:
        lacking[one.family].append(one.canonical)
    for family, names in lacking.items():
        yield Difference(own[0].peer, family, _UNLISTED, "lists fewer", f"{len(names)} more, {names[0]} for one", len(names), len(names))
