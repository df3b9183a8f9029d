"""Mutants against the tensor maps that were given to a chip: the driver's verdicts, and the images of copies."""

from __future__ import annotations

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.silicon import tensor_maps

#: One copy of so many is repeated.
_STEP = 10
_MEMORY = 8 << 20


class Mapped:
    """The recorded tensor maps on which the rules of a spec and the driver agree, to compare its mutants with."""

    def __init__(self, catalog: Catalog) -> None:
        self._facts = _facts(catalog)
        rows = tensor_maps.read()
        self._rows = [row for row in rows if tensor_maps.refused(row, catalog.database) != row["accepted"]]
        self._copies = [row for row in self._rows if "runs" in row][::_STEP]
        self._memory = np.random.default_rng(0).integers(0, 256, _MEMORY, np.uint8)

    def contradiction(self, catalog: Catalog) -> str:
        """The first row that a catalog contradicts, in words."""
        if _facts(catalog) == self._facts:
            return ""
        for row in self._rows:
            if tensor_maps.refused(row, catalog.database) == row["accepted"]:
                return f"the driver {'takes' if row['accepted'] else 'refuses'} {row['map']}"
        for row in self._copies:
            ours, theirs = tensor_maps.images(row, self._memory, catalog.database)
            if not np.array_equal(ours, theirs):
                return f"the image of a chip with {row['map']}"
        return ""


def _facts(catalog: Catalog) -> tuple[object, ...]:
    """All that verdicts and images depend on."""
    spec = catalog.database.spec
    return spec.tensor_maps, spec.shared_memory, spec.types.elements
