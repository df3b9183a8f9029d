"""Loops that use a phase of an mbarrier in each round: an arrival, bytes to expect, or a wait that comes once is found."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 count, .param .u64 data) .reqntid 1\n{\n"
    ".reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[4];\n"
    "ld.param.u32 %r1, [count]; ld.param.u64 %rd1, [data]; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r5, tile;\n"
    "mbarrier.init.shared.b64 [bars], 1; bar.sync 0;\n"
)
_EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;"
_BYTES, _ARRIVE = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 128;", "mbarrier.arrive.shared.b64 _, [bars];"
_COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [bars];"
_PIECE = f"{_COPY.replace('[tile]', '[%r5]')} add.u32 %r5, %r5, 128;"
_READ, _NEXT = "ld.shared.b32 %r4, [tile];", "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;"
_CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;"
_FLIP, _MANY = "xor.b32 %r3, %r3, 1;", "setp.lt.u32 %p1, %r2, 2; @%p1 bra again;"


def wait(name: str, parity: str = "%r3") -> str:
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p2, [bars], {parity}; @!%p2 bra {name};"


_TURN, _TWICE = (wait("full"), _READ, _FLIP, _NEXT), (wait("even", "0"), _READ, _COPY, wait("odd", "1"), _READ, _NEXT)


def rules(*lines: str) -> list[str]:
    return [each.rule for each in check(_HEAD + "\n".join((*lines, "ret;", "}", ""))) if each.severity != "note"]


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        ("endless-wait", (_EXPECT, "again:", _COPY, *_TURN), ("again:", _EXPECT, _COPY, *_TURN)),
        ("endless-wait", (_EXPECT, "again:", _COPY, *_TWICE), ("again:", _EXPECT, _COPY, *_TWICE[:2], _EXPECT, *_TWICE[2:])),
        ("wrong-byte-count", (_BYTES, "again:", _COPY, _ARRIVE, *_TURN), ("again:", _BYTES, _COPY, _ARRIVE, *_TURN)),
        ("unmatched-mbarrier", ("again:", _EXPECT, _COPY, _READ, _NEXT, wait("full")), ("again:", _EXPECT, _COPY, *_TURN)),
    ],
)
def test_what_comes_once_is_found(rule: str, wrong: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert rule in rules(*wrong)
    assert rules(*right) == []


@pytest.mark.parametrize(
    "lines",
    [
        # Pieces of one phase: the loop expects nothing, or does not arrive.
        (_EXPECT, "again:", _PIECE, _NEXT, wait("full"), _READ),
        ("again:", _BYTES, _PIECE, _NEXT, _ARRIVE, wait("full"), _READ),
        # As few rounds as the constant says.
        (_EXPECT, "again:", _COPY, wait("full"), _READ, _FLIP, "add.u32 %r2, %r2, 1;", _MANY),
        # An arrival whose address is not known may be the one.
        (_EXPECT, "ld.shared.b32 %r9, [tile+512];", "again:", _COPY, "mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 128;", *_TURN),
    ],
)
def test_nothing_is_found_where_one_phase_may_be_all(lines: tuple[str, ...]) -> None:
    assert rules(*lines) == []


@pytest.mark.parametrize(
    ("mask", "arrival", "wrong"),
    [
        ("3", _ARRIVE, True),
        ("1", _ARRIVE, False),  # to one thread block
        ("3", "mov.u32 %r6, bars; mapa.shared::cluster.u32 %r7, %r6, %r8; mbarrier.arrive.shared::cluster.b64 _, [%r7+8];", False),
        ("3", f"{_ARRIVE} barrier.cluster.arrive; barrier.cluster.wait;", False),
        ("3", f"{_ARRIVE} ld.acquire.cluster.global.b32 %r6, [%rd1];", False),
    ],
)
def test_readers_of_other_thread_blocks_tell_of_their_reads(mask: str, arrival: str, wrong: bool) -> None:  # a parameter of the test
    sent = (
        f"mov.u16 %rs1, {mask}; {_COPY.replace('shared::cta', 'shared::cluster').replace('bytes', 'bytes.multicast::cluster')[:-1]}, %rs1;"
    )
    free = (
        "mbarrier.init.shared.b64 [bars+8], 1; mov.u32 %r9, 1; mov.u32 %r8, %cluster_ctarank; barrier.cluster.arrive; barrier.cluster.wait;"
    )
    waited = "free: mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], %r9; @!%p2 bra free; xor.b32 %r9, %r9, 1;"
    lines = (
        ".reg .b16 %rs<2>;",
        free,
        "again:",
        waited,
        _EXPECT,
        sent,
        wait("full"),
        _READ,
        _FLIP,
        arrival.replace("[bars]", "[bars+8]"),
        _NEXT,
    )
    assert ("refilled-stage" in rules(*lines, _CLUSTER)) == wrong
