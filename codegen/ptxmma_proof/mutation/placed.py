"""Mutants against the recorded answers of other projects about tensor memory."""

from __future__ import annotations

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers.recorded_tensor import Tensor


class Placed:
    """The recorded places, registers and sizes on which peers and a spec agree, to compare its mutants with."""

    def __init__(self, catalog: Catalog) -> None:
        self._recorded = Tensor.read()
        self._facts = _facts(catalog)

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts, in words."""
        return "" if _facts(catalog) == self._facts else next(self._recorded.contradictions(catalog), "")


def _facts(catalog: Catalog) -> tuple[object, ...]:
    """All that places, registers and sizes depend on."""
    database = catalog.database
    return database.spec.spaces, database.spec.tensor_products, database.layouts, database.spec.types.elements
