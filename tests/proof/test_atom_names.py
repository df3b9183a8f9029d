"""What CuTe calls instructions, as its headers have it."""

from __future__ import annotations

import pytest

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import attached
from ptxmma_proof.peers import atom_names
from ptxmma_proof.peers.sources import MissingPeerError


def test_the_record_has_the_names_in_the_headers(catalog: Catalog) -> None:
    witness = attached(catalog.database)[witnesses.ATOMS]
    assert witness.run is not None
    recorded = {line.instruction: list(line.atoms) for line in witness.of(witnesses.Named)}
    assert recorded.keys() <= {each.canonical for each in catalog.all()}
    try:
        found = atom_names.run(catalog, {}, witness.run.date)
    except MissingPeerError as error:
        pytest.skip(str(error))
    if found.tools != witness.run.tools:
        pytest.skip(f"other headers are installed: {found.tools[0].version}")
    assert {line.instruction: list(line.atoms) for line in found.lines if isinstance(line, witnesses.Named)} == recorded
