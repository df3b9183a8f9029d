"""Mutants against the tensor maps that were given to a chip: the driver's verdicts, and the images of copies."""

from __future__ import annotations

import itertools

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.silicon import tensor_maps

#: One copy of so many is repeated.
_STEP = 10
_MEMORY = 1 << 20


class Mapped:
    """The recorded tensor maps on which the rules of a spec and the driver agree, to compare its mutants with."""

    def __init__(self, catalog: Catalog) -> None:
        self._facts = _facts(catalog)
        self._memory = np.random.default_rng(0).integers(0, 256, _MEMORY, np.uint8)
        self._rows = [row for row in tensor_maps.read() if not tensor_maps.contradiction(row, None, catalog.database)]
        self._copies = [row for row in self._rows if "runs" in row][::_STEP]

    def contradiction(self, catalog: Catalog) -> str:
        """The first row that a catalog contradicts, in words."""
        if _facts(catalog) == self._facts:
            return ""
        verdicts = (tensor_maps.contradiction(row, None, catalog.database) for row in self._rows)
        copies = (tensor_maps.contradiction(row, self._memory, catalog.database) for row in self._copies)
        return next(filter(None, itertools.chain(verdicts, copies)), "")


def _facts(catalog: Catalog) -> tuple[object, ...]:
    """All that verdicts and images depend on."""
    spec = catalog.database.spec
    return spec.tensor_maps, spec.shared_memory, spec.types.elements
