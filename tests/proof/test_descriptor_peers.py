"""The comparison of descriptors with CuTe, Triton and JAX: what is recorded covers the formats as they are, and differences are seen."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from installed_headers import cutlass

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Laid
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import attached
from ptxmma_proof.peers import (
    cute_descriptors,
    descriptor_record,
    dsl_descriptors,
    mosaic_descriptors,
    sm107_descriptors,
    triton_descriptors,
)
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.descriptor_words import Words

#: What LLVM makes of one product of a kernel: A at byte 0 of shared memory, B at byte 16384, and the second step along K.
_PTX = """
	mov.b32 	%r2, global_smem;
	bfe.u32 	%r7, %r2, 4, 15;
	add.s32 	%r8, %r2, 16384;
	bfe.u32 	%r9, %r8, 4, 15;
	mov.b32 	%r10, 1073758272;
	add.s32 	%r11, %r7, 2;
	or.b32 	%r12, %r9, 65536;
	mov.b64 	%rd3, {%r11, %r10};
	mov.b64 	%rd4, {%r12, %r10};
	mov.b32 	%r5, -2;
	@%p4 tcgen05.mma.cta_group::1.kind::f16 [ %r17 + 0 ], %rd3, %rd4, %r5, %p3;
"""


def test_the_record_is_of_the_formats_as_they_are(catalog: Catalog) -> None:
    witness = attached(catalog.database)[witnesses.DESCRIPTORS]
    assert witness.run is not None
    lines = {line.layout: line for line in witness.of(Laid)}
    formats = {each.name: each for each in catalog.database.spec.descriptors}
    assert formats.keys() >= lines.keys() >= {name for name, each in formats.items() if each.family == "tcgen05"}
    assert all(line.facts == digest.descriptor_format(formats[name]) for name, line in lines.items())
    assert all(line.fields.keys() <= {field.name for field in formats[name].fields} for name, line in lines.items())


_DSL = """
import cutlass  # is not there
class Tcgen05SmemDesc(Int64):
    @property
    def base_offset(self) -> Nothing:
        return _get_field(self, {low}, 3)
def _get_field(desc, low, width):
    return desc.value >> low & (1 << width) - 1
"""


@pytest.mark.parametrize(("low", "differ"), [(49, set()), (50, {"base_offset"})])
def test_classes_of_the_dsl_are_executed(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: int, differ: set[str]
) -> None:
    monkeypatch.setattr(dsl_descriptors, "_CLASSES", {"tcgen05_descriptor": ("Tcgen05SmemDesc", {"base_offset": "base_offset"})})
    monkeypatch.setattr(dsl_descriptors, "ENUMERATORS", {})
    path = tmp_path / dsl_descriptors._FILE
    path.parent.mkdir(parents=True)
    path.write_text(_DSL.replace("{low}", str(low)), encoding="utf-8")
    words = list(dsl_descriptors.compare(catalog, tmp_path))
    assert [each.subject for each in words][-1] == "Tcgen05SmemDesc.base_offset"
    assert {field for each in words[:-1] if each.differing for field in each.fields} == differ


_UNION = """
union Sm107MXF4NVF4InstrDescriptor {
  uint32_t desc_;
  struct {
    uint16_t reserved_ : 2,  // bit [ 0, 2) : reserved
             sparse_flag_ : 1, k_size_upper_ : 1, b_sf_id_ : 2, : 1, a_format_ : 3, b_format_ : 2, sparsity_ver_ : 1, a_negate_ : 1,
             b_negate_ : 1, a_major_ : 1;
    uint16_t b_major_ : 1, n_dim_ : 6, scale_format_ : 2, : WIDTH, m_dim_ : 2, a_sf_id_ : 2, k_size_lower_ : 1;
  };
};
"""


@pytest.mark.parametrize(("width", "differ"), [("2", set()), ("1", {"m", "scale_a_id", "k"})])
def test_bits_of_a_union_are_counted(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: str, differ: set[str]
) -> None:
    mxf4 = sm107_descriptors._UNIONS["tcgen05_instruction_mxf4"]
    monkeypatch.setattr(sm107_descriptors, "_UNIONS", {"tcgen05_instruction_mxf4": mxf4})
    path = tmp_path / sm107_descriptors._FILE
    path.parent.mkdir(parents=True)
    path.write_text(_UNION.replace("WIDTH", width), encoding="utf-8")
    first, second, *widths = sm107_descriptors.compare(catalog, tmp_path)
    wrong = {question.partition(" ")[0] for each in (first, second) for _, _, question in each.differing}
    assert wrong == differ
    assert not [each.subject for each in widths if each.differing]


def test_descriptors_are_read_from_ptx() -> None:
    pytest.importorskip("triton")
    from ptxmma_proof.peers import triton_products

    high = 1073758272 << 32
    opcode = "tcgen05.mma.cta_group::1.kind::f16"
    assert list(triton_products.read(_PTX)) == [(opcode, high | 2, high | 65536 | 1024, 0xFFFFFFFE)]


def test_each_peer_is_recorded_by_its_name(catalog: Catalog) -> None:
    words = [Words("Triton", "tcgen05_instruction", "a", [(1, 1, "")]), Words("JAX", "tcgen05_instruction", "b", [(1, 1, ""), (2, 3, "q")])]
    found = descriptor_record.findings(catalog, words)
    (line,) = (line for line in found.lines if isinstance(line, Laid))
    assert (line.agree, line.differ) == ({"Triton": ("a",)}, ("b",))
    assert found.differences == [Difference("JAX", "b", "tcgen05_instruction", "q is 0x2", "q is 0x3", 1, 2)]
    assert found.rows == {"Triton": 1, "JAX": 1}


def test_jax_writes_the_same_instruction_descriptors(catalog: Catalog) -> None:
    pytest.importorskip("jax")
    answers = list(mosaic_descriptors.compare(catalog))
    assert [each.subject for each in answers if each.differing] == []
    assert {each.format for each in answers} == {"tcgen05_instruction", "tcgen05_instruction_mxf8f6f4", "tcgen05_instruction_mxf4"}
    moved = list(mosaic_descriptors.compare(_moved(catalog, "n", 18, 6)))
    assert {each.format for each in moved if each.differing} == {"tcgen05_instruction"}


def test_triton_writes_the_same_descriptors(catalog: Catalog) -> None:
    pytest.importorskip("triton")
    answers = list(triton_descriptors.compare(catalog))
    assert [each.subject for each in answers if each.differing] == []
    formats = {"tcgen05_descriptor", "tcgen05_instruction", "tcgen05_instruction_mxf8f6f4", "tcgen05_instruction_mxf4"}
    assert {each.format for each in answers} == formats


@pytest.mark.nvcc
def test_cute_contradicts_a_field_that_moves(catalog: Catalog, nvcc: str) -> None:
    """One program with the spec, and one with M a bit higher."""
    headers = cutlass()
    assert not descriptor_record.findings(catalog, cute_descriptors.compare(catalog, headers, nvcc)).differences
    differing = {each.format for each in cute_descriptors.compare(_moved(catalog, "m", 25, 4), headers, nvcc) if each.differing}
    assert differing == {"tcgen05_instruction"}


def _moved(catalog: Catalog, name: str, low: int, width: int) -> Catalog:
    """The spec with a field of one format elsewhere."""
    spec = catalog.database.spec
    formats = []
    for format in spec.descriptors:
        fields = tuple(
            msgspec.structs.replace(field, low=low, width=width) if (format.name, field.name) == ("tcgen05_instruction", name) else field
            for field in format.fields
        )
        formats.append(msgspec.structs.replace(format, fields=fields))
    return Catalog(msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, descriptors=tuple(formats))))
