"""Forms that cccl and LLVM list are read, and what they say otherwise is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import form_record, forms
from ptxmma_proof.peers.forms import Form

_HEADER = """
/*
// tcgen05.ld.sync.aligned.32x32b.x2.b32 out, [taddr]; // {version}, {targets},
SM_110f template <typename B32>
*/
{{
  asm("tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%0, %1}}, [%2];" : "=r"(__out[{first}]), "=r"(__out[{second}]) : "r"(__taddr) : "memory");
}}

/*
// tcgen05.wait::ld.sync.aligned; // PTX ISA 86, SM_100a, SM_100f, SM_103a, SM_103f, SM_110a, SM_110f
*/
{{
  asm volatile("tcgen05.wait::ld.sync.aligned;" : : : "memory");
}}

/*
// tcgen05.mma.cta_group.kind [d_tmem], a_desc, b_desc, idesc, disable_output_lane, enable_input_d; //
PTX ISA 86, SM_100a, SM_100f, SM_103a, SM_103f, SM_110a, SM_110f
*/
{{
  asm volatile("{{\\n\\t .reg .pred P; \\n\\t" "setp.ne.b32 P, %8, 0;\\n\\t"
    "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {{%4, %5, %6, %7}}, P;\\n\\t" "}}"
    : : "r"(d), "l"(a), "l"(b), "r"(i), "r"(__m[0]), "r"(__m[1]), "r"(__m[2]), "r"(__m[3]), "r"(e) : "memory");
}}
"""
_SAME = {"version": "PTX ISA 86", "targets": "SM_100a, SM_100f, SM_103a, SM_103f, SM_110a", "first": 0, "second": 1}


def _listed(checkout: Path, **changed: object) -> list[Form]:
    folder = checkout / forms.CCCL
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tcgen05_own.h").write_text(_HEADER.format(**(_SAME | changed)), encoding="utf-8")
    return list(forms.cccl(checkout))


def test_forms_that_agree_agree(catalog: Catalog, tmp_path: Path) -> None:
    listed = forms.compare(catalog, _listed(tmp_path))
    assert (listed.differences, listed.compared) == ([], 3)
    lacking = {each.canonical for each in listed.lacking}
    assert "tcgen05.ld.sync.aligned.32x32b.x4.b32" in lacking
    assert "tcgen05.ld.sync.aligned.32x32b.x2.b32" not in lacking


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"version": "PTX ISA 88"}, ("version", "PTX ISA 8.8", "PTX ISA 8.6")),
        ({"targets": "SM_100a, SM_103a, SM_103f, SM_110a"}, ("targets", "allows no more", "allows sm_100f besides")),
        ({"targets": "SM_100a, SM_100f, SM_103a, SM_103f, SM_120a, SM_110a"}, ("targets", "allows sm_120a besides", "allows no more")),
        ({"first": 1, "second": 0}, ("form", "r: its registers are in another order", "other operands")),
    ],
)
def test_forms_that_differ_are_found(
    catalog: Catalog, tmp_path: Path, changed: dict[str, object], difference: tuple[str, str, str]
) -> None:
    (found,) = forms.compare(catalog, _listed(tmp_path, **changed)).differences
    assert (found.operand, found.theirs, found.ours) == difference


def test_an_instruction_that_we_lack_is_found(catalog: Catalog, tmp_path: Path) -> None:
    own = _listed(tmp_path)[0]
    other = own._replace(statement=own.statement._replace(mnemonic="tcgen05.ld.sync.aligned.32x32b.x3.b32"))
    (found,) = forms.compare(catalog, [other]).differences
    assert (found.operand, found.ours) == ("form", "no such instruction")


def test_a_folder_without_headers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no tcgen05_\*\.h; give a checkout of cccl"):
        list(forms.cccl(tmp_path))


def test_llvm_lists_forms(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    from ptxmma_proof.corpus import llvm
    from ptxmma_proof.peers import llvm_forms

    names = ["tcgen05.ld.16x64b.x1", "tcgen05.shift.down.cg1", "tcgen05.mma.ws.shared.zero_col_mask"]
    llvm.version()  # the library is made ready
    monkeypatch.setattr(llvm_forms, "_names", lambda: [f"llvm.nvvm.{name}" for name in names])
    listed = llvm_forms.forms()
    opcodes = {form.statement.mnemonic for form in listed}
    assert {"tcgen05.ld.sync.aligned.16x64b.x1.b32", "tcgen05.ld.sync.aligned.16x64b.x1.pack::16b.b32"} <= opcodes
    assert "tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b3::lastuse" in opcodes
    assert forms.compare(catalog, [form for form in listed if ".ld." in form.statement.mnemonic]).differences == []


def test_what_a_peer_leaves_out_is_recorded_by_family(catalog: Catalog, tmp_path: Path) -> None:
    own = _listed(tmp_path)[:1]
    differences = list(form_record._all(own, forms.compare(catalog, own)))
    assert [(each.subject, each.operand, each.theirs) for each in differences] == [("tcgen05.ld", "unlisted", "lists fewer")]
