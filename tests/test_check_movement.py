"""``ptxmma check`` on what brings the operands: asynchronous copies and mbarriers."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_KERNEL = """.version {version}
.target {target}
.address_size 64
.visible .entry kernel() {{
.shared .align 8 .b64 bar;
.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b8 %c<2>; .reg .b128 %w<2>;
{line}
ret;
}}
"""


def _rules(line: str, target: str = "sm_107a", version: str = "9.4") -> list[str]:
    text = _KERNEL.format(line=line, target=target, version=version)
    return [finding.rule for finding in check(text) if finding.severity == "error"]


@pytest.mark.parametrize(
    "line",
    [
        "cp.async.ca.shared.global [%r0], [%rd0], 8, %r1;",
        "cp.async.ca.shared.global [%r0], [%rd0], 4, 4;",
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r0], [%rd0], 16, %p0, %rd1;",
        "mbarrier.init.shared::cta.b64 [bar], 1;",
        "mbarrier.arrive.shared::cta.b64 _, [%r0];",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%r0], 3;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0], %r1;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 4096;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %r1, 1000;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %r1, -1;",
        "mbarrier.test_wait.phase_type::primary.shared::cta.b64 %p0|%p1, [%r0], %rd1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%rd0], %r1, [%r2], %h0;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd0], [%r0], 32, %rd1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd0], [%r0], 32;",
        "cp.async.bulk.prefetch.L2.global [%rd0], 32;",
        "elect.sync _|%p0, -1;",
        "elect.sync %r0|%p0, %r1;",
        "mapa.shared::cluster.u32 %r0, %r1, 3;",
        "setmaxnreg.dec.sync.aligned.u32 24;",
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned; fence.mbarrier_init.release.cluster;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, %r2}], [%r3];",
        "cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes [bar], [%rd0, {0, 1, 2, 3, %r1}], [%r3];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2"
        " [%r0], [%rd0, {%r1, %r2, 0}], [%r3], {%h0}, %h1;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address.override::global_dim_stride"
        " [%rd0, %rd1, {%h0, 4}, {%r0}, %h1, {0, 0}], [%r3];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd0, {%r1}], [bar];",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd0, {%r1, %r2}];",
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [bar], %rd0;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0], %r1, [bar]; st.async.release.sys.global.u16 [%rd0], %h1;",
        "st.async.weak.mbarrier::complete_tx::bytes.v4.f32 [%rd0], {%r1, %r2, %r3, 0}, [%rd1];",
        "st.async.release.gpu.global.u8 [%rd0], %c1; st.async.mbarrier::complete_tx::bytes.b128 [%rd0], %w1, [%rd1];",
        "mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %p0|%p1, %c0, [bar], %r1, 1000;",
        "mbarrier.test_wait.phase_type::primary.shared::cta.b64 %p0|_, [%r0], %rd1;",
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %w0;",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, _, %r1, _}, %w0;",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %w0;",
        "st.bulk.weak.shared::cta [bar], %rd0, 0; st.bulk [%rd0], %r0, 0; st.bulk.shared::cta [%r0], 4096, 0;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [%r0], %r1, [bar];",
        "st.global.b32 [%rd0], %r1; red.global.add.u32 [%rd0], %r1; st.shared.v2.b32 [%r0], {%r1, %r2};",
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd0], 4, 7; tensormap.replace.tile.elemtype.b1024.b32 [%rd0], 15;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r0], 128;",
        "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.sys [%rd0], 128; fence.proxy.alias;",
        "fence.acq_rel.gpu; fence .sc.cluster; fence.cta; fence.acquire.sync_restrict::shared::cluster.cluster;",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r0], [bar];",
        "multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0], [%r0], 32, %h0;",
        "multimem.cp.reduce.async.bulk.relaxed.cta.global.shared::cta.bulk_group.min.s64 [%rd0], [%r0], %r1;",
    ],
)
def test_what_assemblers_take_is_sound(line: str) -> None:
    assert _rules(line) == []


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("cp.async.ca.shared.global [%r0], [%rd0], 4, 5;", "immediate"),  # more than cp-size
        ("cp.async.cg.shared.global [%r0], [%rd0], 8;", "immediate"),
        ("cp.async.ca.global.shared [%r0], [%rd0], 8;", "unknown-instruction"),
        ("mbarrier.init.shared::cta.b64 [bar], 0;", "immediate"),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 %rd1, [%r0];", "operand-kind"),
        ("mbarrier.arrive.shared::cta.expect_tx.b64 _, [%r0], 4096;", "unknown-instruction"),
        ("mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 2;", "immediate"),
        ("mbarrier.test_wait.phase_type::primary.shared::cta.b64 %p0|%r1, [%r0], %rd1;", "list"),
        ("mbarrier.test_wait.shared::cta.b64 _, [%r0], %rd1;", "operand-kind"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], 17;", "immediate"),
        ("cp.async.bulk.global.shared::cta [%rd0], [%r0], 32;", "unknown-instruction"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r1}];", "register-count"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r1, %rd1}];", "register-type"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0, %r1];", "list"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0];", "list"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0+64, {%r1}];", "syntax"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [bar, {%r1}];", "state-space"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0, %rd1, {%r1}];", "register-count"),
        ("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0, {%r9}];", "undeclared"),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, %r2}], [%r3];",
            "unknown-instruction",
        ),
        ("tensormap.replace.tile.box_dim.global.b1024.b32 [%rd0], 5, 7;", "immediate"),
        ("tensormap.replace.tile.fill_mode.global.b1024.b32 [%rd0], %r0;", "operand-kind"),
        ("tensormap.replace.tile.rank.global.b1024.b64 [%rd0], %rd1;", "unknown-instruction"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%rd0], 64;", "immediate"),
        ("fence.acq_rel;", "unknown-instruction"),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0], %rd1, [bar];", "register-type"),
        ("st.async.release.cta.global.b32 [%rd0], %r1;", "unknown-instruction"),
        ("st.async.release.gpu.global.b8 [%rd0], %h0;", "register-type"),
        ("st.async.mbarrier::complete_tx::bytes.v2.b128 [%rd0], {%w0, %w1}, [%rd1];", "unknown-instruction"),
        ("mbarrier.test_wait.parity.phase_type::conditional.shared::cta.b64 %p0|%p1, %c0, [bar], 0;", "operand-count"),
        ("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2}, %w0;", "register-count"),
        ("st.bulk.shared::cta [%r0], 4100, 0;", "immediate"),
        ("st.bulk.shared::cta [%r0], 4096, 1;", "immediate"),
        ("fence.release.sync_restrict::shared::cta.gpu;", "unknown-instruction"),
        ("elect.sync %p0, -1;", "list"),
        ("setmaxnreg.inc.sync.aligned.u32 20;", "immediate"),
        ("barrier.cluster.wait.relaxed;", "unknown-instruction"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd0], [%r0], 32;", "unknown-instruction"),
    ],
)
def test_what_assemblers_refuse_is_found(line: str, rule: str) -> None:
    assert _rules(line) == [rule]


@pytest.mark.parametrize(
    ("line", "target", "version", "rule"),
    [
        ("cp.async.wait_all;", "sm_75", "9.4", "target"),
        ("mbarrier.try_wait.parity.shared.b64 %p0, [%r0], 0;", "sm_80", "8.0", "target"),
        ("mbarrier.arrive.shared.b64 _, [%r0], 2;", "sm_80", "8.0", "target"),  # a count needs sm_90
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0], 16, [%r2];", "sm_90", "8.0", "version"),
        ("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0], [%r0], 16, %h0;", "sm_90a", "9.4", "target"),
        ("cp.async.ca.shared.global [%r0], [%rd0], 4, %p0;", "sm_80", "7.4", "version"),
        ("tensormap.replace.tile.elemtype.b1024.b32 [%rd0], 13;", "sm_90a", "9.4", "target"),
        ("tensormap.replace.tile.elemtype.b1024.b32 [%rd0], 13;", "sm_100a", "8.6", "version"),
        ("tensormap.replace.tile.swizzle_mode.b1024.b32 [%rd0], 4;", "sm_120a", "9.4", "target"),
        ("st.bulk.weak.shared::cta [%r0], %r1, 0;", "sm_100a", "8.8", "version"),  # a size of 32 bits
        ("tensormap.replace.tile.elemtype.b1024.b32 [%rd0], 16;", "sm_120a", "9.4", "immediate"),
    ],
)
def test_targets_and_versions(line: str, target: str, version: str, rule: str) -> None:
    assert _rules(line, target, version) == [rule]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("fence.gpu.rank;", []),
        ("cp.async.wait_all.box_dim;", []),
        ("tensormap.replace.tile.rank.shared::cta.b1024.b32.box_dim [%r0], 1;", ["unknown-instruction"]),
        ("clusterlaunchcontrol.try_cancel.mbarrier::complete_tx::bytes.async.b128 [%rd0], [%rd1];", ["unknown-instruction"]),
        (
            "tensormap.cp_fenceproxy.shared::cta.global.tensormap::generic.release.cta.sync.aligned [%rd0], [%r0], 128;",
            ["unknown-instruction"],
        ),
    ],
)
def test_modifiers_of_other_instructions_are_ignored_as_assemblers_do(line: str, rules: list[str]) -> None:
    assert _rules(line) == rules


@pytest.mark.parametrize(
    ("made", "rules"),
    [
        ("mov.b64 %rd1, map; cvta.param.u64 %rd0, %rd1;", []),
        ("mov.b64 %rd1, map; add.u64 %rd0, %rd1, 128;", ["state-space"]),
        ("mov.b64 %rd1, map; mov.b64 %rd0, %rd1; @%p0 mov.b64 %rd0, %rd2;", []),  # it may be another address
        ("mov.u64 %rd2, copy; cvta.local.u64 %rd1, %rd2; add.u64 %rd0, %rd1, 128;", ["state-space"]),
        ("mov.u64 %rd2, copy; cvta.const.u64 %rd0, %rd2;", []),
        ("ld.param.u64 %rd1, [pointer]; cvta.to.global.u64 %rd0, %rd1;", []),
        ("ld.local.u64 %rd0, [copy];", []),
        ("add.u64 %rd0, %rd0, 128;", []),
    ],
)
def test_a_tensor_map_lies_where_copies_may_read_it(made: str, rules: list[str]) -> None:
    copy = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd0, {%r1, %r2}];"
    text = _KERNEL.format(line=f".local .align 128 .b8 copy[256];\n{made}\n{copy}", target="sm_90a", version="8.7")
    text = text.replace("kernel()", "kernel(.param .align 128 .b8 map[128], .param .u64 pointer)")
    assert [finding.rule for finding in check(text) if finding.severity == "warning"] == rules
