"""Small kernels with a fault that ``ptxmma check`` reports, and the same kernels without it, to be launched on a chip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_HEAD = """\
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u64 source)
{directives}
{{
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 bars[4];
    ld.param.u64 %rd0, [out];
    ld.param.u64 %rd1, [source];
    cvta.to.global.u64 %rd0, %rd0;
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    mov.u32 %r1, tile;
    mov.u32 %r2, bars;
    mov.u32 %r3, 1;
    elect.sync %r4|%p1, -1;
"""
_TAIL = """\
    @%p0 st.global.u32 [%rd0], %r3;
    ret;
}
"""
_INIT = "@%p0 mbarrier.init.shared.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;"
_CLUSTER_INIT = _INIT.replace("bar.sync 0;", "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;")
_CLUSTER_END = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
_EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;"
_COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r2];"
_MULTICAST = _COPY.replace("bytes [", "bytes.multicast::cluster [").replace("[%r2];", "[%r2], {};")
_WAIT = "full:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra full;\nld.shared.u32 %r3, [tile];"
_WGMMA = (
    "wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, 0, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
)
_DESCRIPTORS = "mov.b64 %rd2, 0x4000004000010000;\nmov.b64 %rd3, 0x4000004000010000;"
_ROW = (
    "shl.b32 %r5, %r0, 2;\nadd.s32 %r5, %r5, %r1;\nst.shared.u32 [%r5], %r3;\nbar.sync 0;\n"
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r3}}, [%r1+{}];"
)
_ROLES = (
    "setp.ge.u32 %p3, %r0, 128;\n@%p3 bra more;\nsetmaxnreg.dec.sync.aligned.u32 {};\nbra on;\n"
    "more:\nsetmaxnreg.inc.sync.aligned.u32 {};\non:\nbar.sync 0;"
)


class Pair(NamedTuple):
    """A kernel with a fault, and the same without it.

    Attributes:
        name: the fault, as the name of a file.
        rule: the rule that it breaks.
        wrong, right: the statements that differ, between the head and the tail that all kernels share.
        directives: the directives of the kernel.
    """

    name: str
    rule: str
    wrong: Sequence[str]
    right: Sequence[str]
    directives: str = ".reqntid 128"


PAIRS: Sequence[Pair] = (
    Pair(
        "wgmma_in_one_warp",
        "partial-warp",
        (_DESCRIPTORS, "setp.lt.u32 %p3, %r0, 32;\n@!%p3 bra on;", _WGMMA, "on:"),
        (_DESCRIPTORS, _WGMMA),
    ),
    Pair(
        "too_many_registers",
        "register-pool",
        (_ROLES.format(80, 224),),
        (_ROLES.format(40, 232),),
        ".reqntid 384\n.maxnreg 168",
    ),
    Pair(
        "registers_that_nothing_gives_up",
        "register-pool",
        (_ROLES.replace("setmaxnreg.dec.sync.aligned.u32 {};\n", "").format(232),),
        (_ROLES.format(40, 168),),
        ".reqntid 256\n.maxnreg 128",
    ),
    Pair(
        "misaligned_row",
        "alignment",
        (_INIT, _ROW.format(8)),
        (_INIT, _ROW.format(16)),
    ),
    Pair(
        "misaligned_copy",
        "alignment",
        (_INIT, _EXPECT, f"@%p0 {_COPY}".replace("[%r1]", "[%r1+8]"), _WAIT),
        (_INIT, _EXPECT, f"@%p0 {_COPY}", _WAIT),
    ),
    Pair("misaligned_mbarrier", "alignment", (_INIT.replace("[%r2]", "[%r2+4]"),), (_INIT,)),
    Pair(
        "mask_beyond_the_cluster",
        "outside-cluster",
        (_CLUSTER_INIT, _EXPECT, f"@%p0 {_MULTICAST.format(5)}", _WAIT, _CLUSTER_END),
        (
            _CLUSTER_INIT,
            _EXPECT,
            "mov.u32 %r6, %cluster_ctarank;\nshl.b32 %r7, %r3, %r6;\ncvt.u16.u32 rs, %r7;",
            f"@%p0 {_MULTICAST.format('rs')}",
            _WAIT,
            _CLUSTER_END,
        ),
        ".reqntid 128\n.reqnctapercluster 2, 1, 1",
    ),
    Pair(
        "mask_of_zero",
        "outside-cluster",
        (_CLUSTER_INIT, _EXPECT, f"@%p0 {_MULTICAST.format(0)}", _WAIT, _CLUSTER_END),
        (_CLUSTER_INIT, _EXPECT, f"@%p0 {_COPY}", _WAIT, _CLUSTER_END),
        ".reqntid 128\n.reqnctapercluster 2, 1, 1",
    ),
    Pair(
        "rank_beyond_the_cluster",
        "outside-cluster",
        (_CLUSTER_END, "mapa.shared::cluster.u32 %r5, %r1, 2;\nst.shared::cluster.u32 [%r5], %r3;", _CLUSTER_END),
        (_CLUSTER_END, "mapa.shared::cluster.u32 %r5, %r1, 1;\nst.shared::cluster.u32 [%r5], %r3;", _CLUSTER_END),
        ".reqntid 128\n.reqnctapercluster 2, 1, 1",
    ),
    Pair(
        "copy_by_a_whole_warp",
        "repeated-issue",
        (
            _INIT,
            _EXPECT,
            "shr.u32 %r5, %r0, 5;\nsetp.eq.u32 %p4, %r5, 0;",
            f"@%p4 {_COPY}",
            "bar.warp.sync -1;",
            _WAIT,
            _DESCRIPTORS,
            _WGMMA,
        ),
        (_INIT, _EXPECT, f"@%p0 {_COPY}", _WAIT, _DESCRIPTORS, _WGMMA),
    ),
    Pair(
        "wait_without_arrival",
        "unmatched-mbarrier",
        (_INIT, _WAIT),
        (_INIT, "@%p0 mbarrier.arrive.shared.b64 _, [%r2];", _WAIT.replace("ld.shared.u32 %r3, [tile];", "")),
    ),
    Pair(
        "twice_the_bytes",
        "wrong-byte-count",
        (_INIT, _EXPECT.replace("128", "256"), f"@%p0 {_COPY}", _WAIT),
        (_INIT, _EXPECT, f"@%p0 {_COPY}", _WAIT),
    ),
)


def modules() -> Iterator[tuple[str, str, str]]:
    """The kernels as modules: the name of each file, the rule that it breaks or an empty text, and its text."""
    for pair in PAIRS:
        for kind, lines, rule in (("wrong", pair.wrong, pair.rule), ("right", pair.right, "")):
            head = _HEAD.format(directives=pair.directives).replace("%rd<9>;", "%rd<9>; .reg .b16 rs;")
            yield f"{pair.name}.{kind}.ptx", rule, head + "".join(f"{line}\n" for line in lines) + _TAIL


def write(folder: Path) -> None:
    """Write the modules into a folder, with the program that launches them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, text in modules():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("launched.py"), folder)
