"""Mutants against the recorded answers of another project about the sizes and types of products."""

from __future__ import annotations

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers.recorded_products import Products


class Sized:
    """The recorded sizes and types on which a peer and a spec agree, to compare its mutants with."""

    def __init__(self, catalog: Catalog) -> None:
        self._recorded = Products.read()
        self._rules = catalog.database.spec.tensor_products

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts, in words."""
        rules = catalog.database.spec.tensor_products
        return "" if rules is None or rules == self._rules else next(self._recorded.contradictions(rules), "")
