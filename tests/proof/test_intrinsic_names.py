"""LLVM's names of our instructions, as cuda-rust imported them."""

from __future__ import annotations

import json
from pathlib import Path

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Intrinsic
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.proven import attached
from ptxmma_proof.peers import cuda_rust_forms, intrinsic_names
from ptxmma_proof.peers.sources import Source

_MMA = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#: Records of LLVM as cuda-rust has them, with what a line of evidence says of each.
_RECORDS = [
    ("llvm.nvvm.mma.m16n8k8.row.col.tf32", [f"{_MMA} {{$d}}, {{$a}}, {{$b}}, {{$c}};"], ["IntrNoCallback", "IntrNoMem"]),
    ("llvm.nvvm.wgmma.fence", ["wgmma.fence.sync${ptx:aligned};"], ["IntrConvergent"]),
    ("llvm.nvvm.ldmatrix", ["ldmatrix.sync.aligned.m8n8.x1.b16 {$r}, [$p];"], ["IntrReadMem", "IntrArgMemOnly"]),
    (
        "llvm.nvvm.two",
        [f"tcgen05.shift.cta_group::{group}.down [$t];" for group in (2, 1)],
        ["IntrInaccessibleMemOrArgMemOnly", "ImmArg<arg7>"],
    ),
    ("llvm.nvvm.barrier0", ["bar.sync 0;"], ["IntrConvergent"]),
]
_LINES = [
    Intrinsic(name="llvm.nvvm.ldmatrix", instructions=("ldmatrix.sync.aligned.m8n8.x1.b16",), memory="argmem: read"),
    Intrinsic(name="llvm.nvvm.mma.m16n8k8.row.col.tf32", instructions=(_MMA,), memory="none"),
    Intrinsic(
        name="llvm.nvvm.two",
        instructions=("tcgen05.shift.cta_group::1.down", "tcgen05.shift.cta_group::2.down"),
        memory="argmem: readwrite, inaccessiblemem: readwrite",
        immediates=(7,),
    ),
    Intrinsic(name="llvm.nvvm.wgmma.fence", instructions=("wgmma.fence.sync.aligned",), convergent=True),
]


def test_names_and_properties_come_from_the_records(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / cuda_rust_forms.IMPORTED
    file.parent.mkdir()
    records = [
        {"llvm_name": name, "properties": properties, "selections": [{"asm": text} for text in texts]}
        for name, texts, properties in _RECORDS
    ]
    file.write_text(json.dumps({"intrinsics": records}), encoding="utf-8")
    found = intrinsic_names.run(catalog, {"cuda-rust": Source("cuda-rust", tmp_path, "1" * 12)}, "2026-11-28")
    assert found.lines == _LINES
    assert found.totals == {"intrinsics": 4, "instructions": 5}


def test_the_record_names_instructions_of_the_database(catalog: Catalog) -> None:
    lines = attached(catalog.database)[witnesses.INTRINSICS].of(Intrinsic)
    assert {each for line in lines for each in line.instructions} <= {each.canonical for each in catalog.all()}
    by_name = {line.name: line for line in lines}
    assert by_name["llvm.nvvm.mma.m16n8k16.row.col.f32.f32"].instructions == ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",)
    assert by_name["llvm.nvvm.elect.sync"].convergent
