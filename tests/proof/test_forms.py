"""Forms that other projects list are read, and what they say otherwise is found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import cccl_forms, cuda_rust_forms, form_record, forms, tvm_forms
from ptxmma_proof.peers.forms import Form, Ours
from ptxmma_proof.peers.sources import MissingPeerError

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
  asm volatile("tcgen05.wait::ld.sync.aligned; // 2." : : : "memory");
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


def _listed(catalog: Catalog, checkout: Path, **changed: object) -> list[Form]:
    folder = checkout / cccl_forms.HEADERS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tcgen05_own.h").write_text(_HEADER.format(**(_SAME | changed)), encoding="utf-8")
    return list(cccl_forms.forms(checkout, Ours.of(catalog)))


def test_forms_that_agree_agree(catalog: Catalog, tmp_path: Path) -> None:
    listed = forms.compare(catalog, _listed(catalog, tmp_path))
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
    (found,) = forms.compare(catalog, _listed(catalog, tmp_path, **changed)).differences
    assert (found.operand, found.theirs, found.ours) == difference


def test_an_instruction_that_we_lack_is_found(catalog: Catalog, tmp_path: Path) -> None:
    own = _listed(catalog, tmp_path)[0]
    other = own._replace(statement=own.statement._replace(mnemonic="tcgen05.ld.sync.aligned.32x32b.x3.b32"))
    (found,) = forms.compare(catalog, [other]).differences
    assert (found.operand, found.ours) == ("form", "no such instruction")


def test_a_folder_without_headers_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(MissingPeerError, match=r"no headers; give a checkout of cccl"):
        list(cccl_forms.forms(tmp_path, Ours.of(catalog)))
    with pytest.raises(MissingPeerError, match=r"no table\.py; give a checkout of TVM"):
        list(tvm_forms.forms(tmp_path, Ours.of(catalog)))


def test_targets_from_one_on_are_every_later_one(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / cccl_forms.HEADERS
    folder.mkdir(parents=True)
    text = """/*
// fence.proxy.async; // PTX ISA 80, {first}
*/
  asm volatile("fence.proxy.async; // 5." : : : "memory");
"""
    found = []
    for first in ("SM_90", "SM_80"):
        (folder / "fence.h").write_text(text.format(first=first), encoding="utf-8")
        found += forms.compare(catalog, cccl_forms.forms(tmp_path, Ours.of(catalog))).differences
    assert [(each.operand, each.ours) for each in found] == [("targets", "allows no more")]
    assert {"sm_80", "sm_89"} <= set(found[0].theirs.replace(",", "").split())


_TABLE = """
import collections
Entry = collections.namedtuple("Entry", "ptx_name immediates")
TABLE = {
    "wait": Entry("wgmma", ("0", "7")),
    "other": Entry("ld", ()),
}
Slot = collections.namedtuple("Slot", "choices")
def variants(entry):
    assert entry.ptx_name == "wgmma", "no other entry is asked for its variants, of which some have thousands"
    return [("wait_group", "sync", "aligned"), ("wait_groups", "sync", "aligned")]
def imm_slots(entry):
    return [Slot(entry.immediates)]
"""
_RENDER = """
def render_variant(entry, tokens, imms):
    opcode = ".".join((entry.ptx_name, *tokens))
    return opcode, "name", f'asm volatile("{opcode} {imms[0]};" : : : "memory");'
"""


def test_tvm_s_table_is_read(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / tvm_forms.TABLE
    folder.mkdir(parents=True)
    (folder / "table.py").write_text(_TABLE, encoding="utf-8")
    (folder / "render.py").write_text(_RENDER, encoding="utf-8")
    listed = forms.compare(catalog, tvm_forms.forms(tmp_path, Ours.of(catalog)))
    assert listed.compared == 4
    assert {(each.subject, each.ours) for each in listed.differences} == {("wgmma.wait_groups.sync.aligned", "no such instruction")}


_OVERLAY = """
[[intrinsic]]
targets = "{targets}"
minimum_ptx = "8.6"
[intrinsic.expected_ptx]
mnemonic = "ldmatrix"
modifiers = ["sync", "aligned", "m16n16", "x1", "trans", "shared", "b8"]
operands = [{{ kind = "register_list", length = 2 }}, {{ kind = "address" }}]
"""


def test_cuda_rust_s_records_and_lists_are_read(catalog: Catalog, tmp_path: Path) -> None:
    pytest.importorskip("tomllib")
    asm = "wmma.mma.sync${ptx:aligned}.row.col.m16n16k16.f16.f16\n\t\t{{%s}},\n\t\t{{%s}},\n\t\t{{%s}},\n\t\t{{%s}};"
    registers = (", ".join(f"$r{name}{number}" for number in range(count)) for name, count in (("d", 4), ("a", 8), ("b", 8), ("c", 4)))
    versions = ["Subtarget->getSmVersion() >= 70", "Subtarget->getPTXVersion() >= 60"]
    records = [{"selections": [{"asm": asm % tuple(registers), "predicates": versions}]}]
    (tmp_path / cuda_rust_forms.LISTS).mkdir(parents=True)
    (tmp_path / cuda_rust_forms.IMPORTED).write_text(json.dumps({"intrinsics": records}), encoding="utf-8")
    overlay = tmp_path / cuda_rust_forms.LISTS / "own.toml"
    found = []
    for targets in ("sm_100a|sm_120a", "sm_100a|sm_90a"):
        overlay.write_text(_OVERLAY.format(targets=targets), encoding="utf-8")
        listed = forms.compare(catalog, cuda_rust_forms.forms(tmp_path, Ours.of(catalog)))
        assert listed.compared == 2
        found += listed.differences
    assert [(each.operand, each.theirs, each.ours) for each in found] == [("targets", "allows sm_90a besides", "allows no more")]


def test_llvm_lists_forms(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from ptxmma_proof.peers import llvm_forms

    names = ["tcgen05.ld.16x64b.x1", "tcgen05.shift.down.cg1", "tcgen05.mma.ws.shared.zero_col_mask", "tcgen05.ld.red.32x32b.x2.f32"]
    assert re.fullmatch("[0-9a-f]{12}", llvm_forms.version())
    monkeypatch.setattr(llvm_forms, "_names", lambda: [f"llvm.nvvm.{name}" for name in names])
    listed = list(llvm_forms.forms(Ours.of(catalog)))
    opcodes = {form.statement.mnemonic for form in listed}
    assert {"tcgen05.ld.sync.aligned.16x64b.x1.b32", "tcgen05.ld.sync.aligned.16x64b.x1.pack::16b.b32"} <= opcodes
    assert "tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b3::lastuse" in opcodes
    assert "tcgen05.ld.red.sync.aligned.32x32b.x2.min.abs.NaN.f32" in opcodes
    assert forms.compare(catalog, [form for form in listed if ".ld." in form.statement.mnemonic]).differences == []


def test_what_a_peer_leaves_out_is_recorded_by_family(catalog: Catalog, tmp_path: Path) -> None:
    own = _listed(catalog, tmp_path)[:1]
    differences = list(form_record._all("cccl", forms.compare(catalog, own)))
    assert [(each.subject, each.operand, each.theirs) for each in differences] == [("tcgen05.ld", "unlisted", "lists fewer")]
