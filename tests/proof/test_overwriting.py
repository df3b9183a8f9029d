"""What assemblers generate wrong code of, in their machine code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof import assemblers
from ptxmma_proof.assemblers import Assembler

_MMA = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, "


def _module(line: str, target: str, version: str) -> str:
    loads = "".join(f"ld.global.b32 %r{n}, [%rd0+{4 * n}];\nld.global.f32 %f{n}, [%rd0+{64 + 4 * n}];\n" for n in range(8))
    stores = "".join(f"st.global.f32 [%rd0+{4 * n}], %f{n};\n" for n in range(4))
    declared = ".reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b64 %rd0;\n"
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n{declared}"
    return f"{head}ld.param.u64 %rd0, [p];\n{loads}{line}\n{stores}ret;\n}}\n"


def _wrong_sums(assembler: Assembler, line: str, target: str, folder: Path) -> int:
    """How many of the last four sums read another one."""
    version = assembler.ptx if target == "sm_90" else "8.8"
    (folder / "m.ptx").write_text(_module(line, target, version), encoding="utf-8")
    subprocess.run([assembler.path, "-arch", target, "-o", "m.cubin", "m.ptx"], cwd=folder, check=True, capture_output=True)
    code = subprocess.run(["nvdisasm", "m.cubin"], cwd=folder, check=True, capture_output=True, text=True).stdout
    sums = re.findall(r"FADD (R\d+), (R\d+)(?:\.reuse)?, (R\d+)", code)[-4:]
    assert len(sums) == 4
    return sum(bool({one, other} & {before for before, _, _ in sums[:place]}) for place, (_, one, other) in enumerate(sums))


@pytest.mark.usefixtures("disassembler")
def test_assemblers_still_do_so(catalog: Catalog, tmp_path: Path) -> None:
    """The first and the last release that the errata name make wrong sums; without the overlap, none."""
    bugs = [bug for erratum in catalog.database.spec.errata for bug in erratum.overwriting]
    assert [(bug.since, bug.until) for bug in bugs] == [("12.4", "")]
    releases = [each for each in assemblers.fetched() if each.ptx >= "8.4"]
    if not releases:
        pytest.skip("no ptxas is fetched: run `make assemblers`")
    for assembler in (releases[0], releases[-1]):
        for target in {"sm_90", "sm_103a"} & {*assembler.targets}:
            assert _wrong_sums(assembler, f"{_MMA}{{%f3, %f2, %f1, %f0}};", target, tmp_path) >= 2, assembler.cuda
            assert _wrong_sums(assembler, f"{_MMA}{{%f0, %f1, %f2, %f3}};", target, tmp_path) == 0, assembler.cuda
            assert _wrong_sums(assembler, f"{_MMA}{{%f4, %f5, %f6, %f7}};", target, tmp_path) == 0, assembler.cuda
