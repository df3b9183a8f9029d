"""Advice about loops of asynchronous instructions, and about instructions that a target does not have."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 1, 1, 1, 0, 0;"
_OTHER = _WGMMA.replace("%f", "%f1")
_FENCE, _COMMIT, _WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
_STEPS = [_WGMMA, _COMMIT, _WAIT]
_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];"
_FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};"
_INT4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r6,%r7,%r8,%r9}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r6,%r7,%r8,%r9};"


def reported(*body: str, target: str = "sm_90a") -> list[tuple[str, int]]:
    """The rule of each finding, and the line of the body that it is about, from 0."""
    head = [f".version 8.7\n.target {target}\n.visible .entry kernel()\n{{"]
    head += [".reg .f32 %f<40>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<4>;"]
    findings = check("\n".join([*head, *body, "ret;", "}"]))
    assert all(finding.severity == "note" for finding in findings), findings
    return [(finding.rule, finding.line - 6) for finding in findings]


@pytest.mark.parametrize(
    ("body", "findings"),
    [
        (["$L:", _FENCE, *_STEPS, "@%p1 bra $L;"], []),
        ([_FENCE, "$L:", *_STEPS, "@%p1 bra $L;"], [("fence-outside-loop", 2)]),
        ([_FENCE, "$L:", *_STEPS, "@%p1 bra.uni $L;", *_STEPS], [("fence-outside-loop", 2)]),
        ([_FENCE, *_STEPS, "$L:", "add.u32 %r1, %r1, 1;", "@%p1 bra $L;"], []),  # another loop
        (["$M:", _FENCE, "$L:", *_STEPS, "@%p1 bra $L;", "@%p2 bra $M;"], [("fence-outside-loop", 3)]),  # the inner loop counts
        ([_FENCE, *_STEPS, "@%p1 bra $L;", "$L:"], []),  # no loop
        (["$L:", _FENCE, *_STEPS, _ARRIVE, "@%p1 bra $L;"], [("release-in-loop", 5)]),
        (["$L:", _FENCE, *_STEPS, _ARRIVE.replace(".release.cluster", ""), "@%p1 bra $L;"], []),
        (["$L:", _FENCE, *_STEPS, _ARRIVE.replace("release.cluster", "release.cta"), "@%p1 bra $L;"], []),
        (["$L:", _FENCE, *_STEPS, "@%p1 bra $L;", "$M:", _ARRIVE, "@%p1 bra $M;"], []),  # the loop of a producer
        ([_FENCE, *_STEPS, _ARRIVE], []),
    ],
)
def test_loops(body: list[str], findings: list[tuple[str, int]]) -> None:
    assert reported(*body) == findings


@pytest.mark.parametrize(
    ("body", "findings"),
    [
        ([_FENCE, _WGMMA, _COMMIT, "mov.f32 %f10, %f0;", _FENCE, _OTHER, _COMMIT, _WAIT], [("copied-accumulator", 5)]),
        ([_FENCE, _WGMMA, _COMMIT, "mov.f32 %f10, %f0;", _WAIT, _FENCE, _OTHER, _COMMIT, _WAIT], []),
        ([_FENCE, _WGMMA, _COMMIT, _WAIT, "mov.f32 %f10, %f0;", _FENCE, _OTHER, _COMMIT, _WAIT], []),
        ([_FENCE, _WGMMA, _COMMIT, "mov.f32 %f20, %f0;", "mov.f32 %f0, %f20;", _FENCE, _WGMMA, _COMMIT, _WAIT], []),  # the same again
    ],
)
def test_copies(body: list[str], findings: list[tuple[str, int]]) -> None:
    assert reported(*body) == findings


@pytest.mark.parametrize(
    ("body", "target", "findings"),
    [
        (_FP8, "sm_90a", [("emulated", 0)]),
        (_FP8, "sm_90", [("emulated", 0)]),
        (_FP8, "sm_89", []),
        (_FP8, "sm_120", []),  # nobody asked such a chip
        (_INT4, "sm_90a", [("emulated", 0)]),
        (_INT4, "sm_80", []),
        (_FP8.replace("k32.row.col.f32.e4m3.e4m3", "k16.row.col.f32.f16.f16"), "sm_90a", []),
    ],
)
def test_instructions_that_a_target_does_not_have(body: str, target: str, findings: list[tuple[str, int]]) -> None:
    assert reported(body, target=target) == findings


def test_messages_name_what_the_target_has() -> None:
    text = f".version 8.7\n.target sm_90a\n.visible .entry kernel()\n{{\n.reg .f32 %f<40>; .reg .b32 %r<40>;\n{_FP8}\n{_INT4}\nret;\n}}\n"
    first, second = (finding.message for finding in check(text))
    assert "2 HMMA.16816.F32; wgmma.mma_async.sync.aligned.m64n" in first
    assert first.endswith("k32.f32.e4m3.e4m3 is one instruction there")
    assert second.endswith("2 IMMA.16832.S8.S8; no other instruction multiplies these types there")
