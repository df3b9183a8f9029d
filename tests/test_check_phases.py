"""Waits for phases of mbarriers: a wait that never ends or returns too early is found, and nothing where it is not known."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 count)\n{\n.reg .b32 %r<90>; .reg .b64 %rd<9>; "
    ".reg .pred %p<20>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[8];\n"
    "mov.u32 %r1, bars; mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 128;\n"
    "mbarrier.init.shared.b64 [%r1], 1; mbarrier.init.shared.b64 [%r1+8], 128; bar.sync 0; ld.param.u32 %r3, [count];\n"
)
_EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;"
_COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 128, [%r1];"
_READ, _ARRIVE = "ld.shared.b32 %r9, [tile]; st.global.b32 [%rd3], %r9;", "mbarrier.arrive.shared.b64 _, [bars+8];"


def poll(name: str, place: str, parity: str) -> str:
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p2, [{place}], {parity}; @!%p2 bra {name};"


def ring(free: str, full: str) -> tuple[str, ...]:
    """One warp fills a buffer, and 128 threads read it: the first parities of the waits, both of which change in each round."""
    return (
        *("@%p1 bra fill;", f"mov.u32 %r4, {full}; mov.u32 %r5, 0;"),
        *("read:", poll("full", "%r1", "%r4"), _READ, _ARRIVE, "xor.b32 %r4, %r4, 1;"),
        *("add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra read; ret;",),
        *(f"fill: mov.u32 %r6, {free}; mov.u32 %r7, 0;", "again:", poll("empty", "%r1+8", "%r6"), _EXPECT, _COPY),
        *("xor.b32 %r6, %r6, 1; add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %r3; @%p3 bra again;",),
    )


def rules(*lines: str) -> list[str]:
    return [each.rule for each in check(_HEAD + "\n".join((*lines, "ret;", "}", ""))) if each.severity != "note"]


@pytest.mark.parametrize(
    ("free", "full", "found"),
    [
        ("1", "0", []),
        ("0", "0", ["endless-wait"]),
        ("1", "1", ["early-wait"]),
        ("%r3", "0", []),  # the parity is not known
        ("1", "%r3", []),
    ],
)
def test_a_ring_begins_with_the_right_parities(free: str, full: str, found: list[str]) -> None:
    assert rules(*ring(free, full)) == found


def test_a_wait_for_a_later_phase_follows_another() -> None:
    """A thread that has waited for the last mbarrier of a ring of three comes to the first one, waited for elsewhere, for phase 1."""
    inits = "mbarrier.init.shared.b64 [%r1+16], 1; mbarrier.init.shared.b64 [%r1+24], 128; bar.sync 0;"
    read = (
        *("@%p1 bra fill;", "mov.u32 %r4, 0; mov.u32 %r5, 2;"),
        *("read: shl.b32 %r20, %r5, 3; add.u32 %r11, %r1, %r20;", poll("one", "%r11", "%r4"), _READ),
        "add.u32 %r21, %r5, 1; setp.eq.s32 %p4, %r21, 3; selp.u32 %r22, 1, 0, %p4; xor.b32 %r23, %r4, %r22; selp.b32 %r24, 0, %r21, %p4;",
        *(
            "shl.b32 %r25, %r24, 3; add.u32 %r12, %r1, %r25;",
            poll("two", "%r12", "%r23"),
            _READ,
            "mbarrier.arrive.shared.b64 _, [bars+24];",
        ),
        "add.u32 %r26, %r24, 1; setp.eq.s32 %p5, %r26, 3; selp.b32 %r5, 0, %r26, %p5; selp.u32 %r27, 1, 0, %p5; xor.b32 %r4, %r23, %r27;",
        *("add.u32 %r28, %r28, 1; setp.lt.u32 %p3, %r28, %r3; @%p3 bra read; ret;",),
    )
    fill = (
        *("fill: mov.u32 %r6, 1; mov.u32 %r7, 0;", "again: shl.b32 %r29, %r7, 3; add.u32 %r10, %r1, %r29;", poll("empty", "%r1+24", "%r6")),
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;" + _COPY.replace("[%r1]", "[%r10]"),
        "add.u32 %r30, %r7, 1; setp.eq.s32 %p6, %r30, 3; selp.b32 %r7, 0, %r30, %p6; xor.b32 %r6, %r6, 1;",
        *("add.u32 %r31, %r31, 1; setp.lt.u32 %p3, %r31, %r3; @%p3 bra again;",),
    )
    assert rules(inits, *read, *fill) == []


@pytest.mark.parametrize(("first", "index", "found"), [(0, -1, []), (1, -1, ["early-wait"]), (1, 1, []), (0, 1, ["early-wait"])])
def test_a_round_may_compute_the_parity_before_its_wait(first: int, index: int, found: list[str]) -> None:
    """The index of a ring of two begins before 0, and each round takes the next one: what it writes counts in the next round.

    An index that begins with 1 changes the parity in the first round, as Triton writes it.
    """
    wait = "full: mbarrier.try_wait.parity.shared.b64 %p2, [%r14], %r16; @!%p2 bra full;"
    lines = (
        "mbarrier.init.shared.b64 [bars+16], 1; mbarrier.init.shared.b64 [bars+24], 1; bar.sync 0; setp.eq.u32 %p6, %r3, 0; @%p6 bra last;",
        _EXPECT.replace("[bars]", "[bars+16]") + _COPY.replace("[%r1]", "[bars+16]"),
        f"mov.b32 %r20, {first}; mov.b32 %r10, {index}; mov.b32 %r16, %r20; mov.b32 %r5, 0;",
        "read: add.s32 %r11, %r10, 1; setp.gt.s32 %p4, %r11, 1; selp.b32 %r10, 0, %r11, %p4; selp.b32 %r12, 1, 0, %p4;",
        f"xor.b32 %r16, %r16, %r12; shl.b32 %r13, %r10, 3; add.s32 %r15, %r1, %r13; add.s32 %r14, %r15, 16; {wait} {_READ} bar.sync 0;",
        *(_EXPECT.replace("bars", "%r14"), _COPY.replace("[%r1]", "[%r14]")),
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra read; last:",
    )
    assert rules(*lines) == found


@pytest.mark.parametrize(("parity", "found"), [("0", []), ("1", ["early-wait"])])
def test_each_of_several_first_waits_may_be_early(parity: str, found: list[str]) -> None:
    """Memory says which of two waits comes first: both are for the first phase."""
    roles = "again: ld.shared.u32 %r20, [tile+64]; setp.eq.u32 %p4, %r20, 1; @%p4 bra one; setp.eq.u32 %p5, %r20, 2; @%p5 bra two; ret;"
    waits = ("one:", poll("first", "bars", parity), _READ, "bra again; two:", poll("second", "bars", parity), _READ, "bra again;")
    assert rules("@%p1 bra fill;", roles, *waits, "fill:", _EXPECT, _COPY) == found


@pytest.mark.parametrize(("parity", "found"), [("div.u32 %r13, %r6, 3;", []), ("mov.u32 %r13, %r6;", ["unchanged-parity"])])
def test_the_first_turn_of_a_ring_has_one_parity(parity: str, found: list[str]) -> None:
    """In a ring of three, a parity that changes in each round differs in each turn, but waits for phase 1 of the second place first."""
    made = "".join(f"mbarrier.init.shared.b64 [bars+{16 + 8 * number}], 1;" for number in range(3))
    place = "rem.u32 %r1{0}, %r{0}, 3; shl.b32 %r2{0}, %r1{0}, 3; add.u32 %r8{0}, %r1, %r2{0}; add.u32 %r3{0}, %r8{0}, 16;"
    turn = (
        f"mov.u32 %r{{0}}, 0; loop{{0}}: {place} {{1}} add.u32 %r{{0}}, %r{{0}}, 1; setp.lt.u32 %p3, %r{{0}}, %r3; @%p3 bra loop{{0}}; ret;"
    )
    fill = turn.format(5, f"{_EXPECT.replace('bars', '%r35')} {_COPY.replace('%r1', '%r35')} bar.sync 0;")
    read = turn.format(6, f"{parity} and.b32 %r17, %r13, 1; {poll('full', '%r36', '%r17')} {_READ} bar.sync 0;")
    assert rules(made, "bar.sync 0; setp.eq.u32 %p4, %r2, 0; @%p4 bra fill;", read, "fill:", fill) == found


@pytest.mark.parametrize(("otherwise", "found"), [("again", ["endless-wait"]), ("on", [])])
def test_a_thread_that_only_asks_does_not_wait(otherwise: str, found: list[str]) -> None:
    """With many rounds, nothing arrives."""
    more = "setp.gt.u32 %p6, %r3, 3; @%p6 bra again; setp.gt.u32 %p7, %r3, 2; @%p7 bra end;"
    few = f"setp.gt.u32 %p5, %r3, 4; @%p5 bra many; mbarrier.arrive.shared.b64 _, [bars]; many: {more}"
    ask = f"again: mbarrier.try_wait.parity.shared.b64 %p2, [bars], 0; @!%p2 bra {otherwise}; {_READ} on:"
    assert rules("setp.ne.u32 %p4, %r2, 0; @%p4 bra end;", few, ask, "end:") == found


@pytest.mark.parametrize(("first", "found"), [(True, []), (False, ["early-wait"])])
def test_a_thread_that_has_begun_two_phases_waits_for_the_second(first: bool, found: list[str]) -> None:
    """Two warps meet twice; the second one tells the first that they have met once."""
    made = "mbarrier.init.shared.b64 [bars+16], 64; mbarrier.init.shared.b64 [bars+24], 32; bar.sync 0;"
    arrive, tell = (f"mbarrier.arrive.shared.b64 _, [bars+{place}];" for place in (16, 24))
    hear = (arrive if first else "", poll("told", "bars+24", "0"), arrive, poll("again", "bars+16", "1"), "ret;")
    say = ("other:", arrive, poll("met", "bars+16", "0"), tell, arrive)
    roles = ("setp.gt.u32 %p4, %r2, 63; @%p4 bra end; setp.gt.u32 %p4, %r2, 31; @%p4 bra other;", *hear, *say, "end:")
    assert [rule for rule in rules(made, *roles) if rule == "early-wait"] == found


_RESULT = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r10]; tcgen05.wait::ld.sync.aligned;"


@pytest.mark.parametrize(
    ("parity", "before", "read", "found"),
    [
        ("0", "", _RESULT, []),
        ("1", "", _RESULT, ["early-wait"]),
        ("1", "", "", []),  # the mbarrier may say that products have read
        ("1", poll("other", "bars+16", "0"), _RESULT, []),  # the other mbarrier may say that the results are there
    ],
)
def test_results_are_waited_for_with_the_first_parity(parity: str, before: str, read: str, found: list[str]) -> None:
    issued = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];"
    commits = "".join(f"elect.sync _|%p5, -1; @%p5 {issued.format(bar)}" for bar in ("bars", "bars+16"))
    product = "@%p5 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd1, %rd2, %r3, %p6;"
    roles = ("setp.gt.u32 %p1, %r2, 127; @%p1 bra issue;", before, poll("full", "bars", parity), read, "ret;")
    head = (_HEAD.replace("sm_90a", "sm_100a"), "mbarrier.init.shared.b64 [bars+16], 1; bar.sync 0;")
    lines = (*head, *roles, "issue: elect.sync _|%p5, -1;", product, commits, "ret;", "}", "")
    assert [each.rule for each in check("\n".join(lines)) if each.severity == "warning" and each.rule.endswith("wait")] == found


@pytest.mark.parametrize(("parities", "found"), [("01", []), ("10", ["early-wait"])])
def test_phases_begin_again_where_a_round_initialises(parities: str, found: list[str]) -> None:
    """The second wait of the round before does not make the first one a later one."""
    fill = "@%p9 bra on{0};" + _EXPECT + _COPY + "on{0}:"
    lines = (
        "mov.u32 %r5, 0; again: setp.eq.u32 %p5, %r2, 0; @%p5 mbarrier.init.shared.b64 [bars], 1; bar.sync 0;",
        *(fill.format(1), "setp.gt.u32 %p8, %r3, 9; @%p8 bra off;", poll("one", "bars", parities[0]), _READ, "off: bar.sync 0;"),
        *(fill.format(2), poll("two", "bars", parities[1]), _READ, "bar.sync 0; @%p5 mbarrier.inval.shared.b64 [bars];"),
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;",
    )
    head = "setp.ne.u32 %p9, %r2, 0; @%p9 bra free; mbarrier.inval.shared.b64 [bars]; free: bar.sync 0;"
    assert rules(head, *lines) == found


def test_the_finding_says_where_the_arrivals_are() -> None:
    text = _HEAD + "\n".join((*ring("0", "0"), "ret;", "}", ""))
    (finding,) = (each for each in check(text) if each.severity != "note")
    assert "no thread can complete that phase before: the arrival of line" in finding.message
    assert "comes after it, or after what waits in line" in finding.message


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        # The wait before the copy.
        ((poll("full", "bars", "0"), _EXPECT, _COPY), (_EXPECT, _COPY, poll("full", "bars", "0"))),
        # One of two branches has no other way.
        (
            ("setp.eq.u32 %p4, %r3, 0; @%p4 bra on;", poll("full", "bars", "0"), "on:", poll("more", "bars", "0"), _EXPECT, _COPY),
            ("setp.eq.u32 %p4, %r3, 0; @%p4 bra on;", poll("full", "bars", "0"), "on:", _EXPECT, _COPY, poll("more", "bars", "0")),
        ),
        # A wait that is tried once, and repeated only where it fails.
        (
            ("mbarrier.try_wait.parity.shared.b64 %p5, [bars], 0; @%p5 bra on;", poll("full", "bars", "0"), "on:", _EXPECT, _COPY),
            (_EXPECT, _COPY, "mbarrier.try_wait.parity.shared.b64 %p5, [bars], 0; @%p5 bra on;", poll("full", "bars", "0"), "on:"),
        ),
        # The result of the wait in a register, as compilers write it.
        (
            (
                "full: {.reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [bars], 0; selp.b32 %r10, 1, 0, done;}",
                "setp.eq.s32 %p5, %r10, 0; @%p5 bra full;",
                *(_EXPECT, _COPY),
            ),
            (
                *(_EXPECT, _COPY),
                "full: {.reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [bars], 0; selp.b32 %r10, 1, 0, done;}",
                "setp.eq.s32 %p5, %r10, 0; @%p5 bra full;",
            ),
        ),
    ],
)
def test_a_wait_before_what_completes_its_phase_is_found(wrong: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert rules(*wrong, _READ) == ["endless-wait"]
    assert rules(*right, _READ) == []


@pytest.mark.parametrize(("free", "compared", "found"), [("1", "%r3", []), ("0", "%r3", ["endless-wait"]), ("0", "%r8", [])])
def test_readers_without_rounds_arrive_no_more_than_they_wait(free: str, compared: str, found: list[str]) -> None:
    lines = (
        *("@%p1 bra fill;", f"not.b32 %r8, %r3; setp.eq.u32 %p4, {compared}, 0; @%p4 bra tail;", poll("full", "%r1", "0"), _READ),
        *("tail: setp.lt.s32 %p5, %r3, 1; @%p5 bra on;", f"{_ARRIVE} on: ret;"),
        *("fill:", poll("empty", "%r1+8", free), _EXPECT, _COPY),
    )
    assert rules(*lines) == found


@pytest.mark.parametrize(
    "lines",
    [
        ("setp.eq.u32 %p4, %r3, 0; @%p4 bra on;", poll("full", "bars", "0"), "on:", _EXPECT, _COPY),  # another path arrives
        ("@%p1 bra fill;", poll("full", "bars", "0"), "ret; fill:", _EXPECT, _COPY),  # other threads do
        ("mbarrier.try_wait.parity.shared.b64 %p5, [bars], 0;", _EXPECT, _COPY, poll("full", "bars", "0")),  # asked, and ignored
        ("mov.u32 %r12, %r3;", poll("full", "%r12", "0"), _EXPECT, _COPY, poll("more", "bars", "0")),  # it may be another one
        (poll("full", "bars", "0"), "mbarrier.arrive.shared.b64 _, [%r3];", _EXPECT, _COPY, "call.uni other;"),
        (poll("prior", "bars", "1"), _EXPECT, _COPY, poll("full", "bars", "0")),  # the copy before, of which there is none
    ],
)
def test_where_nothing_is_known(lines: tuple[str, ...]) -> None:
    assert rules(*lines, _READ) == []


@pytest.mark.parametrize(
    "chosen", ["elect.sync %r11|%p6, -1; not.pred %p7, %p6; @%p7 bra on;", "setp.ne.u32 %p6, %r2, 0; @%p6 bra on;", ""]
)
def test_a_thread_that_has_begun_the_phase_waits_for_it(chosen: str) -> None:
    for parity, found in (("1", ["early-wait"]), ("0", [])):
        assert rules(chosen, _EXPECT, _COPY, "on:", poll("full", "bars", parity), _READ) == found
