"""Mutants against the answers of tools about errata: ``spec/evidence/errata.jsonl``."""

from __future__ import annotations

from pathlib import Path

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import errata
from ptxmma_proof.mutation.unchanged import parts

#: Parts of a spec that no answer about a line depends on.
_WITHOUT_ANSWERS = ("tensor_maps", "throughput", "protocols", "words", "preferences", "gpus")


class Sighted:
    """The recorded answers that the rules of a spec give, too, to compare its mutants with."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self._answers = witnesses.Witness(folder / f"{witnesses.ERRATA}.jsonl").of(Sighting)
        self._facts = parts(catalog.database.spec, *_WITHOUT_ANSWERS)
        self._misjudged = set(errata.misjudged(catalog, self._answers))

    def contradiction(self, catalog: Catalog) -> str:
        """The first answer that a catalog contradicts and the spec does not, in words."""
        if parts(catalog.database.spec, *_WITHOUT_ANSWERS) == self._facts:
            return ""
        found = (each for each in errata.misjudged(catalog, self._answers) if each not in self._misjudged)
        return next((f"{seen.tool} on {target}: {seen.answer}: {seen.asked}" for seen, target in found), "")
