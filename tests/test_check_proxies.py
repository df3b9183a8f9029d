"""The fence between ordinary stores to shared memory and the async proxy."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_RULE = "missing-proxy-fence"
_STORE, _MATRIX = "st.shared.v4.b32 [tile], {%r0, %r1, %r2, %r3};", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile], {%r0};"
_COPY = "cp.async.cg.shared.global [tile], [%rd3], 16; cp.async.wait_all;"
_FENCE = "fence.proxy.async.shared::cta;"
_WGMMA = "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 1, 1, 1, 0, 0;"
_WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd3, {%r0, %r1}], [bar];"
_BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd3], 128, [bar];"
_OUT = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {%r0, %r1}], [tile];"
_ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd3], [tile], 128;"


def reported(*body: str, kind: str = ".visible .entry") -> list[tuple[str, int]]:
    """The rule of each warning, and the line of the body that it is about, from 0."""
    head = [f".version 8.7\n.target sm_90a\n{kind} kernel()\n{{\n.reg .f32 %f<40>; .reg .b32 %r<40>; .reg .b64 %rd<9>;"]
    head += [".shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;"]
    ended = ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", "ret;", "}"]
    findings = check("\n".join([*head, *body, *ended]))
    return [(finding.rule, finding.line - 7) for finding in findings if finding.severity != "note"]


@pytest.mark.parametrize("store", [_STORE, _MATRIX, _COPY, "st.volatile.shared::cta.b32 [tile], %r0;"])
def test_operands_that_only_stores_can_have_written(store: str) -> None:
    assert reported(store, "bar.sync 0;", _WGMMA, _WAIT) == [(_RULE, 2)]
    assert reported(store, _FENCE, "bar.sync 0;", _WGMMA, _WAIT) == []


@pytest.mark.parametrize("out", [_OUT, _ADD])
def test_results_that_a_bulk_copy_reads(out: str) -> None:
    assert reported(_LOAD, _WGMMA, _WAIT, _STORE, "bar.sync 0;", out) == [(_RULE, 5)]
    assert reported(_LOAD, _WGMMA, _WAIT, _STORE, _FENCE, "bar.sync 0;", out) == []
    assert reported(_STORE, "bar.sync 0;", out) == [(_RULE, 2)]


@pytest.mark.parametrize(
    "body",
    [
        [_WGMMA, _WAIT],  # nothing is stored
        [_LOAD, _STORE, _WGMMA, _WAIT],  # the store may be for something else
        [_BULK, _STORE, _WGMMA, _WAIT],
        [_WGMMA, _WAIT, _STORE],
        ["call.uni (%r1), fence, (%r2);", _STORE, _WGMMA, _WAIT],
        [_STORE, "fence.proxy.async;", _WGMMA, _WAIT],
        ["st.global.b32 [%rd3], %r0;", _WGMMA, _WAIT],
        [_BULK, _STORE, _OUT],  # no matrices: the copy may read what the other has brought
        ["st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile], %r0, [bar];", _OUT],
    ],
)
def test_where_nothing_is_known(body: list[str]) -> None:
    assert reported(*body) == []


def test_a_function_may_be_called_behind_a_fence() -> None:
    assert reported(_STORE, _WGMMA, _WAIT, kind=".func") == []


def test_the_message_cites_the_section_of_what_reads() -> None:
    def message(*body: str) -> str:
        head = ".version 8.7\n.target sm_90a\n.entry kernel()\n{\n.reg .f32 %f<40>; .reg .b32 %r<40>; .reg .b64 %rd<9>;\n"
        head += ".shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;\n"
        ended = ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", "ret;", "}"]
        return next(each.message for each in check(head + "\n".join([*body, *ended])) if each.rule == _RULE)

    assert "PTX ISA 9.7.15.4" in message(_STORE, "bar.sync 0;", _WGMMA, _WAIT)
    assert "PTX ISA 9.7.9.25.2" in message(_STORE, "bar.sync 0;", _OUT)
