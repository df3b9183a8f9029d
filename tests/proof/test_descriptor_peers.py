"""The comparison of descriptors with CuTe: what is recorded covers the formats as they are, and differences are seen."""

from __future__ import annotations

import msgspec
import pytest

from ptxmma.catalog import digest, witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.witnesses import Laid
from ptxmma.generator.proven import attached
from ptxmma_proof.peers import cute_descriptors, descriptor_record, headers


def test_the_record_is_of_the_formats_as_they_are(catalog: Catalog) -> None:
    witness = attached(catalog.database)[witnesses.DESCRIPTORS]
    assert witness.run is not None
    assert witness.run.totals["differences"] == 0
    lines = {line.layout: line for line in witness.of(Laid)}
    formats = {each.name: each for each in catalog.database.spec.descriptors if each.family == "tcgen05"}
    assert lines.keys() == formats.keys()
    assert all(line.facts == digest.descriptor_format(formats[name]) and not line.differ for name, line in lines.items())


@pytest.mark.nvcc
def test_cute_contradicts_a_field_that_moves(catalog: Catalog, nvcc: str) -> None:
    """One program with the spec, and one with M a bit higher."""
    cutlass = headers.installed() or pytest.skip("CUTLASS's headers are not installed")
    assert descriptor_record.Outcome(catalog, cute_descriptors.compare(catalog, cutlass, nvcc), (), "").agrees
    spec = catalog.database.spec
    formats = []
    for format in spec.descriptors:
        fields = tuple(
            msgspec.structs.replace(field, low=25, width=4) if (format.name, field.name) == ("tcgen05_instruction", "m") else field
            for field in format.fields
        )
        formats.append(msgspec.structs.replace(format, fields=fields))
    changed = Catalog(msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, descriptors=tuple(formats))))
    differing = {each.format for each in cute_descriptors.compare(changed, cutlass, nvcc) if each.differing}
    assert differing == {"tcgen05_instruction"}
