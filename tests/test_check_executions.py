"""Instructions that only some of the threads execute: where all must, it is found; a condition that may hold for all is not."""

from __future__ import annotations

import pytest

from ptxmma.check import check, executions, register_pools

_HEAD = (
    ".version 8.7\n.target {}\n.address_size 64\n.visible .entry kernel(.param .u32 count)\n{}{{\n.reg .f32 %f<9>; .reg .b32 %r<40>; "
    ".reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b8 slot[8];\n"
    "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; ld.param.u32 %r3, [count]; mov.u32 %r4, %cluster_ctarank;\n"
)
_WGMMA = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 1, 1, 1, 0, 0; "
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
)
_ALLOC = "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [slot], 32; ld.shared.b32 %r9, [slot];"
_FREE = "tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r9, 32;"
_MATRIX = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile];"
_POLL = "poll: mbarrier.try_wait.parity.shared.b64 %p5, [slot], 0; @!%p5 bra poll;"
_ELECT = "elect.sync %r5|%p1, -1;"
_FIRST_OF_PAIR = (
    "mbarrier.init.shared.b64 [tile], 1; mov.u32 %r20, tile; and.b32 %r21, %r20, {}; "
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];"
)
#: Blocks of inline assembly that declare registers of one name.
_SCOPES = (
    "{ .reg .pred P; elect.sync _|P, -1; selp.u32 %r6, 1, 0, P; } "
    "{ .reg .pred P; mbarrier.test_wait.parity.shared.b64 P, [slot], 0; selp.u32 %r7, 1, 0, P; } "
)


def messages(*lines: str, target: str = "sm_90a", directive: str = "") -> list[str]:
    """The findings of the rules, as far as they say who executes an instruction."""
    findings = check(_HEAD.format(target, directive) + "\n".join((*lines, "ret;", "}", "")))
    codes = {*executions.RULES, *register_pools.RULES}
    return [each.message.partition("; ")[0].partition(" (PTX")[0] for each in findings if each.rule in codes]


@pytest.mark.parametrize(
    ("condition", "few"),
    [
        ("setp.eq.u32 %p1, %r1, 0;", "1 of the 32 threads of a warp come here, from thread 0 on"),
        ("setp.gt.u32 %p1, %r1, 39;", "24 of the 32 threads of a warp come here, from thread 32 on"),
        (_ELECT, "1 of the 32 threads of a warp come here, from thread 0 on"),
        (f"{_ELECT} setp.eq.u32 %p2, %r2, 1; and.pred %p3, %p1, %p2;", "1 of the 32 threads of a warp come here, from thread 32 on"),
        (
            "setp.gt.u32 %p1, %r1, 15; setp.ne.u32 %p2, %r3, 0; or.pred %p4, %p1, %p2; not.pred %p3, %p4;",
            "16 of the 32 threads of a warp come here, from thread 0 on",
        ),
        ("setp.eq.u32 %p1, %r2, 1;", ""),
        ("setp.lt.u32 %p1, %r1, %r3;", ""),  # it may hold for all
        ("and.b32 %r5, %r1, 31; setp.ne.u32 %p1, %r5, %r3;", ""),
    ],
)
@pytest.mark.parametrize("branch", [True, False])
def test_a_part_of_a_warp(condition: str, few: str, branch: bool) -> None:
    name = "%p3" if "%p3" in condition else "%p1"
    lines = (f"@!{name} bra on;", _MATRIX, "on:") if branch else (f"@{name} {_MATRIX}",)
    assert messages(condition, *lines, _WGMMA) == ([f"no more than {few}"] if few else [])


def test_threads_that_have_returned() -> None:
    first = "setp.lt.u32 %p1, %r1, 16; @%p1 bra on; ret; on:"
    assert messages(first, _WGMMA, _MATRIX)[-1] == "no more than 16 of the 32 threads of a warp come here, from thread 0 on"


def test_a_part_that_may_be_all_of_a_thread_block() -> None:
    hint = "; if a thread block has no more than 40 threads, write .maxntid 40, in CUDA __launch_bounds__(40) (PTX ISA"

    def hinted(condition: str, directive: str = "") -> list[bool]:
        lines = (f"setp.{condition} %p1, %r1, 39;", f"@%p1 {_MATRIX}", _WGMMA, "ret;", "}", "")
        return [hint in each.message for each in check(_HEAD.format("sm_90a", directive) + "\n".join(lines)) if each.rule == "partial-warp"]

    assert hinted("le.u32") == [True]
    assert hinted("gt.u32") == [False]
    assert hinted("le.u32", ".maxntid 40\n") == []


@pytest.mark.parametrize("first", [0, 5])
def test_a_part_of_a_warpgroup(first: int) -> None:
    condition = f"setp.eq.u32 %p1, %r2, {first}; @!%p1 bra on;"
    assert (
        messages(condition, _WGMMA, "on:")
        == [f"no more than 32 of the 128 threads of a warpgroup come here, from thread {first // 4 * 128} on"] * 4
    )


def test_a_whole_warpgroup() -> None:
    assert messages("shr.u32 %r5, %r1, 7; setp.eq.u32 %p1, %r5, 1; @!%p1 bra on;", _WGMMA, "on:") == []


def test_warps_may_change_their_registers_one_by_one() -> None:
    change = "setmaxnreg.dec.sync.aligned.u32 40;"
    roles = [f"setp.eq.u32 %p{warp}, %r2, {warp}; @%p{warp} bra role{warp};" for warp in range(4)]
    bodies = [f"role{warp}: {change} bra on;" for warp in range(4)]
    assert messages(*roles, "bra on;", *bodies, "on:", _WGMMA, directive=".reqntid 256\n") == []
    partial = (*roles[1:], "bra on;", *bodies[1:], "on:", _WGMMA, "ret;", "}", "")
    (finding,) = check(_HEAD.format("sm_90a", ".reqntid 256\n") + "\n".join(partial))
    assert finding.message.startswith("no more than 96 of the 128 threads of a warpgroup come here, from thread 0 on")
    assert "; 2 more like it: line" in finding.message


@pytest.mark.parametrize(
    ("condition", "lone"),
    [
        ("setp.eq.u32 %p1, %r4, 0;", (0, 1)),
        ("and.b32 %r5, %r4, 1; setp.ne.u32 %p1, %r5, 0;", (1, 0)),
        ("setp.lt.u32 %p1, %r4, 2;", ()),
        ("setp.eq.u32 %p1, %r4, %r3;", ()),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_one_thread_block_of_a_pair(condition: str, lone: tuple[int, int], group: int) -> None:
    lines = (condition, "@!%p1 bra on;", _ALLOC.format(group), "on:", _FREE.format(group))
    found = messages(*lines, target="sm_100a", directive=".reqnctapercluster 4\n")
    said = "thread block {} of the cluster executes it, and {} never does: it waits for ever".format(*lone) if lone and group > 1 else ""
    assert found == [said] * bool(said)


def test_both_thread_blocks_in_different_branches() -> None:
    lines = ("setp.eq.u32 %p1, %r4, 0; @%p1 bra other;", _ALLOC.format(2), "bra on; other:", _ALLOC.format(2), "on:", _FREE.format(2))
    assert messages(*lines, target="sm_100a") == []


_TMA = "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r6}], [slot];"
_BULK = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r7], [%rd2], 128, [slot];"
_SELECTED = (
    "mov.b32 %r9, 0; mov.b32 %r10, %r9; {{ .reg .b32 R; .reg .pred P; {}; @P mov.s32 %r10, 1; mov.s32 %r9, R; }} setp.eq.s32 %p1, %r10, 0;"
)
_LANE = "mad.lo.s32 %r7, %r1, 128, %r8;"


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        ((_TMA,), 1),
        ((_ELECT, f"@%p1 {_TMA}"), 0),
        (("setp.eq.u32 %p1, %r1, 0;", "@!%p1 bra on;", _TMA, "on:"), 0),
        (("setp.eq.u32 %p1, %r2, 2;", "@!%p1 bra on;", _TMA, "on:"), 1),
        (("setp.eq.u32 %p1, %r3, 2;", "@!%p1 bra on;", _TMA, "on:"), 1),  # the parameter is the same for all
        (("ld.shared.u32 %r5, [tile];", "setp.eq.u32 %p1, %r5, 2;", "@!%p1 bra on;", _TMA, "on:"), 0),  # it may differ
        (("ld.shared.u32 %r5, [tile];", "setp.eq.u32 %p1, %r5, 2;", "@!%p1 bra on;", "bar.sync 0;", "on:", _TMA), 1),
        # Whole warps come to a barrier, and go on from there.
        (("ld.shared.u32 %r5, [tile];", "setp.eq.u32 %p1, %r5, 2;", "@!%p1 bra on;", "bar.sync 0;", _TMA, "on:"), 1),
        (("ld.shared.u32 %r5, [tile];", "setp.eq.u32 %p1, %r5, 2;", "@!%p1 bra on;", "bar.warp.sync -1;", _TMA, "on:"), 0),
        (("ld.shared.u32 %r5, [tile];", "setp.eq.u32 %p1, %r5, 2;", "@!%p1 bra on;", "bar.sync 0;", f"@%p1 {_TMA}", "on:"), 0),
        # A copy under a predicate selects a number.
        ((_SELECTED.format("elect.sync _|P, -1"), "@%p1 bra on;", _TMA, "on:"), 0),
        ((_SELECTED.format("setp.eq.u32 P, 0, 0"), "@%p1 bra on;", _TMA, "on:"), 1),
        # Lanes read one value from one address, and from one lane.
        (("ld.shared.v2.b64 {%rd1, %rd2}, [tile+16];", _TMA), 1),
        (("mad.lo.s32 %r7, %r1, 16, %r8; ld.shared.v2.b64 {%rd1, %rd2}, [%r7];", _TMA), 0),
        (("shfl.sync.idx.b32 %r6, %r1, 0, 31, -1;", _TMA), 1),
        (("shfl.sync.idx.b32 %r6, %r1, %r1, 31, -1;", _TMA), 0),
        ((_LANE, _BULK), 0),  # each lane copies a row of its own
        (("mov.u32 %r7, tile; ld.param.u64 %rd2, [count];", _BULK), 1),
        (
            (
                _BULK.replace(
                    "shared::cta.global.mbarrier::complete_tx::bytes [%r7], [%rd2], 128, [slot]",
                    "global.shared::cta.bulk_group [%rd2], [tile], 16",
                ),
            ),
            0,
        ),
    ],
)
def test_a_copy_that_a_whole_warp_issues(lines: tuple[str, ...], times: int) -> None:
    assert (
        messages("mov.u32 %r6, 0; ld.param.u64 %rd1, [count]; mov.u32 %r8, tile;", _WGMMA, *lines)
        == ["all 32 threads of a warp execute it, each for itself: one thread does"] * times
    )


def test_a_reduction_in_a_kernel_whose_threads_meet_in_barriers_alone() -> None:
    reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [tile], 16;"
    lines = ("ld.param.u64 %rd1, [count]; setp.gt.u32 %p1, %r1, {};", "bar.sync 0;", f"@!%p1 {reduce}")
    assert messages(lines[0].format(31), *lines[1:]) == ["all 32 threads of a warp execute it, each for itself: one thread does"]
    assert messages(lines[0].format(0), *lines[1:]) == []


@pytest.mark.parametrize("directive", [".maxntid 0", ".reqntid 0, 1, 1", ".reqnctapercluster 4294967296", ".maxclusterrank 99999999999"])
def test_launch_bounds_that_no_chip_has(directive: str) -> None:
    lines = (_ELECT, f"@%p1 bra on; {_ALLOC.format(2)} on:", "setp.gt.u32 %p2, %r1, 31; @%p2 bra off;", _WGMMA, "off:", _POLL)
    assert not {each for each in messages(*lines, directive=f"{directive}\n") if "no more" not in each}


@pytest.mark.parametrize("elected", [True, False])
def test_a_copy_in_a_loop_of_one_role(elected: bool) -> None:
    role = "setp.lt.u32 %p4, %r1, 128; mov.u32 %r6, %ctaid.x; @%p4 bra other;"
    turn = f"turn: {'@%p1 ' * elected}{_TMA} bar.warp.sync -1; add.s32 %r6, %r6, %r3; setp.lt.s32 %p2, %r6, 99; @%p2 bra turn; ret;"
    other = "other: add.s32 %r6, %r6, %r3; setp.lt.s32 %p3, %r6, 99; @%p3 bra other;"  # it counts in the same register
    found = messages("ld.param.u64 %rd1, [count];", _ELECT, role, turn, other, directive=".maxntid 160 ")
    assert len(found) == (not elected)


@pytest.mark.parametrize(("predicate", "times"), [("", 1), ("@%p1", 0)])
def test_a_product_that_a_whole_warp_issues(predicate: str, times: int) -> None:
    product = f"{predicate} tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd1, %rd2, %r8, %p2;"
    found = messages(_ELECT, _ALLOC.format(1), product, _FREE.format(1), target="sm_100a")
    assert found == ["all 32 threads of a warp execute it, each for itself: one thread does"] * times


def roles(less: int, more: int, first: int = 128) -> tuple[str, ...]:
    """Warpgroups that give registers up, and others that take them."""
    less_text = f"setmaxnreg.dec.sync.aligned.u32 {less}; bra on;" if less else "bra on;"
    return (f"setp.ge.u32 %p1, %r1, {first}; @%p1 bra more;", less_text, f"more: setmaxnreg.inc.sync.aligned.u32 {more}; on:", _WGMMA)


@pytest.mark.parametrize(
    ("less", "more", "directive", "wrong"),
    [
        (40, 232, ".maxntid 384\n", ""),
        (80, 224, ".maxntid 384\n", "67,584 registers together, and 384 threads have no more than 168 each at launch, 64,512 in all"),
        (24, 240, ".reqntid 384\n", ""),
        (
            40,
            232,
            ".maxntid 384\n.minnctapersm 2\n",
            "64,512 registers together, and 384 threads have no more than 80 each at launch, 30,720 in all",
        ),
        (
            24,
            104,
            ".maxntid 384\n.maxnreg 72\n",
            "29,696 registers together, and 384 threads have no more than 72 each at launch, 27,648 in all",
        ),
        (80, 224, "", ""),  # the block may have 256 threads
    ],
)
def test_the_registers_of_all_warps(less: int, more: int, directive: str, wrong: str) -> None:
    assert messages(*roles(less, more), directive=directive) == ([f"the warps ask for {wrong}"] if wrong else [])


def test_registers_that_nothing_gives_up() -> None:
    waits = ["it waits for registers, and no setmaxnreg.dec of the kernel gives any up"]
    assert messages(*roles(0, 232)) == messages(*roles(0, 232), directive=".maxntid 384\n") == waits
    assert messages(*roles(0, 256), directive=".maxntid 256\n") == []  # each thread has as many at launch


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (_ELECT, True),  # in both thread blocks
        (f"{_ELECT} and.b32 %r6, %r4, 1; setp.eq.u32 %p2, %r6, 0; and.pred %p1, %p1, %p2;", False),
        ("elect.sync _|%p4, -1; shfl.sync.idx.b32 %r6, %r4, 0, 31, -1; setp.eq.u32 %p2, %r6, 0; and.pred %p1, %p4, %p2;", False),
        ("mov.u32 %r6, %ctaid.x; and.b32 %r6, %r6, 1; setp.eq.u32 %p1, %r6, 0;", False),  # it may be the rank
        ("ld.shared.b32 %r6, [slot]; setp.eq.u32 %p1, %r6, 0;", False),
        (_SCOPES + "setp.ne.u32 %p1, %r6, 0;", True),  # the elected thread of each
        (_SCOPES + "setp.ne.u32 %p1, %r7, 0;", False),
        (".reg .pred P; setp.eq.u32 P, %r4, 0;" + _SCOPES + "selp.u32 %r6, 1, 0, P; setp.ne.u32 %p1, %r6, 0;", False),
    ],
)
def test_a_product_that_both_thread_blocks_issue(condition: str, found: bool) -> None:
    product = "@%p1 tcgen05.mma.cta_group::2.kind::f16 [%r9], %rd0, %rd1, %r1, %p3;"
    lines = messages(_ALLOC.format(2), condition, product, _FREE.format(2), target="sm_100a")
    assert ["both thread blocks of a pair execute it, each for itself"] * found == [line for line in lines if "both" in line]


@pytest.mark.parametrize(
    ("mask", "waiting", "others", "found"),
    [
        ("1", "", "", True),
        ("3", "", "", False),
        ("1", "@%p2", "", False),  # the first thread block alone waits
        ("%h1", "", "", False),  # it may name both
        ("1", "", "@!%p2 mbarrier.arrive.shared.b64 _, [slot];", False),  # the other one arrives itself
        # An arrival on another mbarrier, of the first thread block of the pair: a compiler clears the bits that are 0, too.
        ("1", "", _FIRST_OF_PAIR.format(-16778216), True),
        ("1", "", _FIRST_OF_PAIR.format(-16777217), True),
        ("1", "", _FIRST_OF_PAIR.format(-1001), False),
    ],
)
def test_a_commit_that_does_not_tell_all_who_wait(mask: str, waiting: str, others: str, found: bool) -> None:
    commit = f"tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [slot], {mask};"
    poll = f"@!%p2 bra on; {_POLL} on:" if waiting else _POLL
    issued = f"setp.eq.u32 %p2, %r4, 0; {_ELECT} and.pred %p4, %p1, %p2; @%p4 {commit}"
    lines = (".reg .b16 %h<2>; mbarrier.init.shared.b64 [slot], 1; barrier.cluster.arrive; barrier.cluster.wait;", issued, others, poll)
    text = _HEAD.format("sm_100a", ".reqnctapercluster 2, 1, 1\n") + "\n".join((*lines, "ret;", "}", ""))
    assert [each.rule for each in check(text) if each.severity != "note"] == ["endless-wait"] * found
