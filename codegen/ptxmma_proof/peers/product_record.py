"""Compares the products of tcgen05.mma with those that TIRx-harness simulates: sizes and types of each kind and depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.catalog.instructions import Catalog
from ptxmma.model import TensorProducts
from ptxmma_proof.peers import product_shapes, sources, tirx_products, tirx_program
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.product_shapes import Typed, Types
from ptxmma_proof.peers.recorded_products import Products
from ptxmma_proof.peers.sources import Source


def run(catalog: Catalog, given: Mapping[str, Source], date: str) -> Findings:
    """Compare a catalog with an unpacked package of TIRx-harness.

    Raises:
        MissingPeerError: the package or a compiler of Rust is not there.
    """
    package = sources.checkout(given, tirx_program.NAME)
    rules = catalog.database.spec.tensor_products
    assert rules is not None
    allowed, typed = tirx_products.ask(package)
    sizes = [product_shapes.compare(rules, each) for each in allowed]
    differences = [*product_shapes.differences(sizes), *_types(rules, typed)]
    alike = [each.allowed for each in sizes if not each.only_theirs and not each.only_ours]
    agreed = Products.of(alike, [each for each in typed if each.types == product_shapes.types(rules, each.facts)])
    return Findings((package.tool(date),), {package.name: len(allowed) + len(typed)}, differences, agreed=agreed)


def _types(rules: TensorProducts, typed: Sequence[Typed]) -> Iterator[Difference]:
    for each in typed:
        ours = product_shapes.types(rules, each.facts)
        if wrong := len(ours ^ each.types):
            said = _listed(each.types - ours), _listed(ours - each.types)
            yield Difference(each.peer, each.subject, "types", *said, wrong, len(ours | each.types))


def _listed(types: Types) -> str:
    """Types in words."""
    few = 3
    named = [" ".join(each) for each in sorted(types)]
    more = f", … ({len(named)} of them)" if len(named) > few else ""
    return f"alone takes {', '.join(named[:few])}{more}" if named else "takes no more"
