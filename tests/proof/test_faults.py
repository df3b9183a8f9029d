"""Faults put into a kernel with a ring of mbarriers, and into one with groups of copies: all are found, and the kernels are sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmma.catalog.instructions import catalog
from ptxmma.check import check
from ptxmma_proof import faults
from ptxmma_proof.silicon import faulty_kernels

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel()\n.maxntid 384\n{\n"
    ".reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[8];\n"
)
_RING = """mov.u32 %r1, bars;
mov.u32 %r0, %tid.x;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra made;
mbarrier.init.shared.b64 [%r1], 1;
mbarrier.init.shared.b64 [%r1+8], 384;
fence.mbarrier_init.release.cluster;
made:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r2, 1;
mov.u32 %r10, 128;
mov.u32 %r7, 0;
mov.u32 %r8, 0;
empty:
mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], %r2;
@!%p1 bra empty;
@!%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bars], %r10;
@!%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], %r10, [%r1];
full:
mbarrier.try_wait.parity.shared.b64 %p1, [bars], %r7;
@!%p1 bra full;
mbarrier.arrive.shared.b64 _, [%r1+8];
xor.b32 %r2, %r2, 1;
xor.b32 %r7, %r7, 1;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p2, %r8, %r9;
@%p2 bra empty;
"""
_GROUPS = """cp.async.cg.shared.global [tile], [%rd3], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [tile];
"""


_SENT = """st.shared.b32 [tile+64], %r3;
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile+64], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
"""


_ROLES = """mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 128;
mov.u32 %r2, tile;
xor.b32 %r4, %r3, 8;
shl.b32 %r5, %r4, 4;
@%p1 bra consumer;
setmaxnreg.dec.sync.aligned.u32 40;
bra done;
consumer:
setmaxnreg.inc.sync.aligned.u32 232;
done:
cp.async.bulk.prefetch.L2.global [%rd3], 16;
add.s32 %r6, %r2, %r5;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r3};
"""


@pytest.mark.parametrize(("text", "kinds"), [(_RING, 16), (_GROUPS, 4), (_RING + _SENT + _SENT, 22), (_ROLES, 4)])
def test_each_fault_is_put_and_found(text: str, kinds: int, tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_text(f"{_HEAD}{text}ret;\n}}\n")
    assert not [each for each in check(file.read_bytes()) if each.severity != "note"]
    rows = faults.run(catalog(None), [file])
    assert [row.missed for row in rows] == [[]] * len(rows)
    assert sum(row.found for row in rows) == kinds


@pytest.mark.parametrize(("name", "rule", "text"), [*faulty_kernels.modules()])
def test_kernels_for_a_chip_have_their_fault(name: str, rule: str, text: str) -> None:
    assert {each.rule for each in check(text) if each.severity != "note"} == ({rule} if rule else set()), name
