"""Rings of mbarriers: arrivals are counted, parities change, and stages are filled after their readers are done."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_PARITY = "xor.b32 %r4, %r4, 1;"
_ARRIVE = "mbarrier.arrive.shared.b64 _, [bars+8];"
_FREE = "free: mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], %r6; @!%p2 bra free;"
_OWN = "own: mbarrier.try_wait.parity.shared.b64 %p2, [bars], %r14; @!%p2 bra own; xor.b32 %r14, %r14, 1;"
_EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;"
_COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 128, [bars];"
_PRODUCTS = (
    "wgmma.fence.sync.aligned;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 1, 1, 1, 0, 0;",
    "wgmma.commit_group.sync.aligned;",
)
_WAIT = "wgmma.wait_group.sync.aligned 0;"
_STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 128;"
_SENT, _SOURCE_READ = "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"
_TENSOR_PRODUCT = "tcgen05.mma.cta_group::1.kind::f16 [%r21], %rd0, %rd1, %r22, %p8;"
#: Memory says which of many products comes first.
_CHOICE = "ld.shared.b32 %r14, [tile+{0}]; setp.eq.u32 %p12, %r14, 0; @%p12 bra past{0}; {1} past{0}:"
_CHOICES = (*(_CHOICE.format(4 * number, _TENSOR_PRODUCT) for number in range(300)), _TENSOR_PRODUCT)
_ELECT = "elect.sync %r12|%p12, -1; @%p12"
_TENSOR_COPY = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r21], %rd0;"
_FREED, _RESULT = (f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bars+{place}];" for place in (8, 16))
_OTHERS = "setp.gt.u32 %p1, %r2, 127;"
_OF_WARPS = (
    "shr.u32 %r16, %r2, 5; shfl.sync.idx.b32 %r17, %r16, 0, 31, -1; mov.u32 %r18, bars; mad.lo.u32 %r19, %r17, 8, %r18; "
    "mbarrier.arrive.shared.b64 _, [%r19+8];"
)
_LEADER = "and.b32 %r9, %r2, 31; setp.eq.u32 %p4, %r9, 0; @%p4 "


def ring(
    count: str = "128",
    limit: str = ".maxntid 160, 1, 1",
    read: tuple[str, ...] = (_ARRIVE, _PARITY),
    fill: tuple[str, ...] = (_FREE, _EXPECT, _COPY, "xor.b32 %r6, %r6, 1;"),
    waited: str = "%r4",
    others: str = _OTHERS,
) -> list[str]:
    """The rules that a kernel breaks: 128 threads read what thread 128 copies, in as many rounds as a parameter says."""
    lines = (
        *(".version 8.7", ".target sm_90a", ".address_size 64", f".visible .entry kernel(.param .u32 count) {limit}", "{"),
        ".reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<20>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[2];",
        f"mov.u32 %r2, %tid.x; {others} setp.ne.u32 %p5, %r2, 0; ld.param.u32 %r3, [count];",
        "mov.u32 %r5, 0; @%p5 bra made;",
        f"mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], {count};",
        "made: bar.sync 0; @%p1 bra filling; mov.u32 %r4, 0;",
        f"read: full: mbarrier.try_wait.parity.shared.b64 %p2, [bars], {waited}; @!%p2 bra full; ld.shared.b32 %r10, [tile];",
        *(*read, "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra read; st.global.b32 [%rd3], %r10; ret;"),
        "filling: setp.ne.u32 %p6, %r2, 128; @%p6 bra done; mov.u32 %r6, 1;",
        *("again:", *fill, "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;", "done: ret;", "}"),
    )
    return [each.rule for each in check("\n".join((*lines, ""))) if each.severity != "note"]


_THERE = "mapa.shared::cluster.u32 %r9, %r1, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9+8];"


def test_a_right_ring_breaks_no_rule() -> None:
    assert ring() == []


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ((*_PRODUCTS, _WAIT, _ARRIVE), []),
        ((*_PRODUCTS, _ARRIVE, _WAIT), ["refilled-stage"]),
        ((*_PRODUCTS[:2], _WAIT, _ARRIVE, _PRODUCTS[2], _WAIT), ["refilled-stage"]),  # the wait covers groups alone
        ((*_PRODUCTS, _PRODUCTS[1], _WAIT, _ARRIVE, _PRODUCTS[2], _WAIT), ["refilled-stage"]),
        ((*_PRODUCTS, _ARRIVE.replace("bars+8", "%r2"), _WAIT), []),  # it may be on another mbarrier
        ((*_PRODUCTS, "wgmma.wait_group.sync.aligned 1;", _ARRIVE, _WAIT), []),  # the stage of the round before may be meant
    ],
)
def test_a_stage_is_free_after_the_products_that_read_it(read: tuple[str, ...], found: list[str]) -> None:
    assert ring(read=(*read, _PARITY), others=f".reg .f32 %f<4>; {_OTHERS}") == found


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ((_STORE, _SENT, _SOURCE_READ, _ARRIVE), []),
        ((_STORE, _SENT, _ARRIVE, _SOURCE_READ), ["refilled-stage"]),
        ((_STORE, _ARRIVE, _SENT, _SOURCE_READ), ["refilled-stage"]),
        ((_STORE, _SOURCE_READ, _SENT, _ARRIVE), ["refilled-stage"]),  # the copy belongs to no group before the wait
        ((_STORE.replace("[tile]", "[tile+2048]"), _SENT, _ARRIVE, _SOURCE_READ), []),  # another buffer
        ((_STORE, _SENT, _ARRIVE.replace("bars+8", "%r2"), _SOURCE_READ), []),  # it may be on another mbarrier
    ],
)
def test_a_stage_is_free_after_the_bulk_copies_that_read_it(read: tuple[str, ...], found: list[str]) -> None:
    assert ring(read=(*read, _PARITY)) == found


@pytest.mark.parametrize(
    ("issue", "found"),
    [
        ((_TENSOR_PRODUCT, _FREED, _RESULT), []),
        ((_FREED, _TENSOR_PRODUCT, _RESULT), ["refilled-stage"]),
        ((_TENSOR_PRODUCT, _FREED, _FREED, _RESULT), []),  # a commit tracks all products before
        ((*_CHOICES, _FREED, _RESULT), []),  # it makes no difference which product came first
        ((_FREED, *_CHOICES, _RESULT), ["refilled-stage"]),
        ((_FREED.replace("bars+8", "%r2"), _TENSOR_PRODUCT, _RESULT), []),  # it may be on another mbarrier
        ((_TENSOR_COPY, _TENSOR_PRODUCT, _FREED, _RESULT), []),
        ((_TENSOR_COPY, _FREED, _TENSOR_PRODUCT, _RESULT), ["refilled-stage"]),  # it tracks the copy alone
        ((f"{_ELECT} {_TENSOR_COPY}", f"{_ELECT} {_FREED}", f"@%p12 {_TENSOR_PRODUCT}", _RESULT), ["refilled-stage"]),
        ((f"{_ELECT} {_TENSOR_COPY}", f"{_ELECT} {_TENSOR_PRODUCT}", f"@%p12 {_FREED}", _RESULT), []),
        ((_RESULT, _TENSOR_PRODUCT, _FREED), ["untracked-product"]),
        ((_RESULT, _TENSOR_PRODUCT, _FREED, f"@%p7 {_RESULT}"), []),  # the last round may decide
        ((_RESULT, _TENSOR_PRODUCT, _RESULT.replace("bars+16", "%r2")), []),
    ],
)
def test_a_commit_comes_after_the_products_of_its_stage(issue: tuple[str, ...], found: list[str]) -> None:
    lines = (
        *(".version 8.7", ".target sm_100a", ".address_size 64", ".visible .entry kernel(.param .u32 count) .maxntid 160, 1, 1", "{"),
        ".reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<20>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[3];",
        f"mov.u32 %r2, %tid.x; {_OTHERS} setp.ne.u32 %p5, %r2, 0; ld.param.u32 %r3, [count]; mov.u32 %r5, 0; @%p5 bra made;",
        "mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 1; mbarrier.init.shared.b64 [bars+16], 1;",
        "made: bar.sync 0; @%p1 bra filling; @%p5 bra read; mov.u32 %r4, 0; ld.shared.u32 %r11, [tile+4000]; setp.eq.u32 %p7, %r11, 0;",
        "issue: full: mbarrier.try_wait.parity.shared.b64 %p2, [bars], %r4; @!%p2 bra full;",
        *(*issue, _PARITY, "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra issue; bra done;"),
        "read: setp.lt.u32 %p9, %r2, 32; @%p9 bra done;",
        "ready: mbarrier.try_wait.parity.shared.b64 %p2, [bars+16], 0; @!%p2 bra ready; tcgen05.fence::after_thread_sync;",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r21]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd3], %r20; bra done;",
        "filling: setp.ne.u32 %p6, %r2, 128; @%p6 bra done; mov.u32 %r6, 1;",
        *("again:", _FREE, _EXPECT, _COPY, "xor.b32 %r6, %r6, 1;"),
        *("add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;", "done: ret;", "}"),
    )
    assert [each.rule for each in check("\n".join((*lines, ""))) if each.severity != "note"] == found


_TAKEN = "taken: mbarrier.try_wait.parity.shared.b64 %p2, [bars+24], %r15; @!%p2 bra taken; xor.b32 %r15, %r15, 1;"
_TELL = "mbarrier.arrive.shared.b64 _, [bars+24];"


@pytest.mark.parametrize(
    ("begin", "told", "found"),
    [
        (_TAKEN, _TELL, []),
        ("", _TELL, ["refilled-stage"]),
        ("", "", ["refilled-stage"]),
        ("", "bar.sync 1, 64;", ["refilled-stage"]),  # of the threads that read alone
        ("bar.sync 1, 96;", "bar.sync 1, 96;", []),
        ("", "cp.async.bulk.wait_group.read 0;", ["refilled-stage"]),  # it tells no other thread
        ("", _TELL.replace("bars+24", "%r2"), []),  # it may be on another mbarrier
        ("setp.gt.u32 %p10, %r5, 1; @%p10 bra done;", "", []),  # no more rounds than results, perhaps
    ],
)
def test_a_result_is_written_again_after_its_readers(begin: str, told: str, found: list[str]) -> None:
    """Thread 32 copies, thread 0 multiplies in rounds, and warps 2 and 3 read the results."""
    again = "xor.b32 %r4, %r4, 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3;"
    lines = (
        *(".version 8.7", ".target sm_100a", ".address_size 64", ".visible .entry kernel(.param .u32 count) .maxntid 128, 1, 1", "{"),
        ".reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<20>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[4];",
        "mov.u32 %r2, %tid.x; setp.ne.u32 %p5, %r2, 0; ld.param.u32 %r3, [count]; mov.u32 %r5, 0; mov.u32 %r4, 0; mov.u32 %r15, 1;",
        "@%p5 bra made; mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 1; mbarrier.init.shared.b64 [bars+16], 1;",
        "mbarrier.init.shared.b64 [bars+24], 64; made: bar.sync 0; setp.gt.u32 %p1, %r2, 63; @%p1 bra read; @%p5 bra filling;",
        f"issue: {begin} full: mbarrier.try_wait.parity.shared.b64 %p2, [bars], %r4; @!%p2 bra full;",
        *(_TENSOR_PRODUCT, _FREED, _RESULT, again, "@%p3 bra issue; bra done;"),
        "read: ready: mbarrier.try_wait.parity.shared.b64 %p2, [bars+16], %r4; @!%p2 bra ready; tcgen05.fence::after_thread_sync;",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r21]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd3], %r20;",
        f"{told} {again} @%p3 bra read; bra done;",
        "filling: setp.ne.u32 %p6, %r2, 32; @%p6 bra done; mov.u32 %r6, 1;",
        *("again:", _FREE, _EXPECT, _COPY, "xor.b32 %r6, %r6, 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;"),
        *("done: ret;", "}"),
    )
    assert [each.rule for each in check("\n".join((*lines, ""))) if each.severity != "note"] == found


@pytest.mark.parametrize(
    ("count", "limit", "arrive", "found"),
    [
        ("4", ".maxntid 160, 1, 1", _LEADER + _ARRIVE, []),
        ("128", ".maxntid 160, 1, 1", _LEADER + _ARRIVE, ["wrong-arrival-count"]),  # 4 come
        ("4", ".maxntid 160, 1, 1", _ARRIVE, ["wrong-arrival-count"]),  # 128 come
        ("127", ".maxntid 160, 1, 1", _ARRIVE.replace("_,", "%rd4,"), ["wrong-arrival-count"]),  # without thread 128 nothing is copied
        ("256", ".reqntid 160, 1, 1", _ARRIVE, ["wrong-arrival-count"]),
        ("256", ".reqntid 160, 1, 1", _ARRIVE.replace("]", "], 2"), []),
        ("256", "", _ARRIVE, []),  # nothing says how many threads there are
        ("%r3", ".reqntid 160, 1, 1", _ARRIVE, []),  # nor how many arrivals
        ("256", ".reqntid 160, 1, 1", _THERE + _ARRIVE, []),  # another thread block may arrive, too
        ("256", ".reqntid 160, 1, 1", _THERE.partition(";")[0] + ";" + _ARRIVE, ["wrong-arrival-count"]),  # it does not
        ("128", ".maxntid 160, 1, 1", f"setp.eq.u32 %p4, %r3, 7; @%p4 {_ARRIVE}", []),
        ("32", ".maxntid 160, 1, 1", _OF_WARPS, []),  # each warp names another mbarrier, perhaps
    ],
)
def test_arrivals_are_counted_where_the_text_says_who_arrives(count: str, limit: str, arrive: str, found: list[str]) -> None:
    assert ring(count, limit, (arrive, _PARITY)) == found


@pytest.mark.parametrize(("count", "found"), [("128", []), ("129", ["wrong-arrival-count"]), ("127", ["wrong-arrival-count"])])
def test_a_warp_is_known_by_the_high_bits_of_its_threads(count: str, found: list[str]) -> None:
    """Compilers write ``threadIdx.x / 32 == 4`` with a mask."""
    assert ring(count, others="and.b32 %r16, %r2, -32; setp.eq.s32 %p1, %r16, 128;") == found


@pytest.mark.parametrize(("count", "found"), [("1", False), ("2", True)])
def test_arrivals_on_an_mbarrier_that_is_initialised_again_are_counted_apart(count: str, found: bool) -> None:
    """One thread expects bytes on two new mbarriers, and on one of them again in each round after the wait for it."""
    ring = "and.b32 %r9, %r5, 1; shl.b32 %r10, %r9, 3; mov.u32 %r11, bars; add.u32 %r12, %r11, %r10;"
    ring += "shr.u32 %r13, %r5, 1; and.b32 %r4, %r13, 1;"
    fill = f"@%p1 {_EXPECT} @%p1 {_COPY}"
    lines = (
        *(".version 8.7", ".target sm_90a", ".address_size 64", ".visible .entry kernel(.param .u32 count) .reqntid 128", "{"),
        ".reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<20>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[2];",
        "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; ld.param.u32 %r3, [count]; mov.u32 %r6, 0;",
        f"life: mov.u32 %r5, 0; @%p1 mbarrier.init.shared.b64 [bars], {count}; @%p1 mbarrier.init.shared.b64 [bars+8], 1; bar.sync 0;",
        fill + fill.replace("bars]", "bars+8]"),
        f"again: {ring} full: mbarrier.try_wait.parity.shared.b64 %p2, [%r12], %r4; @!%p2 bra full; bar.sync 0;",
        fill.replace("bars]", "%r12]") + "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;",
        "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [bars]; @%p1 mbarrier.inval.shared.b64 [bars+8];",
        "add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, %r3; @%p4 bra life; ret;",
        "}\n",
    )
    assert ("wrong-arrival-count" in {each.rule for each in check("\n".join(lines))}) == found


def test_arrivals_of_several_rounds_may_complete_a_phase() -> None:
    """A loop inside the loop, in which nothing waits: it may be executed twice for each phase."""
    inner = ("mov.u32 %r11, 0;", "twice:", _ARRIVE, "add.u32 %r11, %r11, 1; setp.lt.u32 %p7, %r11, 2; @%p7 bra twice;", _PARITY)
    assert ring("256", read=inner) == []


_COUNTED = "setp.gt.u32 %p7, %r11, 7; @%p7 bra on;"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", ["wrong-arrival-count"]),
        ("and.b32 %r9, %r2, 1; add.u32 %r11, %r11, %r9;", "", []),  # threads count differently
        ("and.b32 %r9, %r2, 1; setp.eq.u32 %p4, %r9, 0; @%p4 add.u32 %r11, %r11, 1;", "", []),
        ("and.b32 %r9, %r2, 1; setp.eq.u32 %p4, %r9, 0; @%p4 bra even; add.u32 %r11, %r11, 1; even: ", "", []),
        ("", "ld.shared.u32 %r9, [tile+64]; setp.eq.u32 %p4, %r9, 0; @%p4 add.u32 %r11, %r11, 1;", []),
    ],
)
def test_threads_that_count_alike_arrive_together(before: str, after: str, found: list[str]) -> None:
    """A counter that changes is the same in all threads if all that come to a branch on it have come to what writes it."""
    read = (before + _COUNTED, _ARRIVE, "on: add.u32 %r11, %r11, 1;" + after, _PARITY)
    assert ring("4", read=read, others="mov.u32 %r11, 0;" + _OTHERS) == found


@pytest.mark.parametrize("arrivals", ["127", "128"])
def test_one_thread_may_arrive_for_others(arrivals: str) -> None:
    arrive = "setp.eq.u32 %p4, %r2, 0; @%p4 " + _ARRIVE.replace("]", f"], {arrivals}")
    fill = (_FREE.replace("%r6", "1"), _EXPECT, _COPY)
    assert ring(read=(arrive, _PARITY), fill=fill) == ["unchanged-parity" if arrivals == "128" else "wrong-arrival-count"]


@pytest.mark.parametrize("parity", ["0", "%r4"])
def test_a_parity_that_never_changes_is_found(parity: str) -> None:
    assert ring(read=(_ARRIVE,), waited=parity) == ["unchanged-parity"]


def test_a_round_that_an_index_chooses_need_not_come_again() -> None:
    assert ring(read=(_ARRIVE, "parts: .branchtargets one, two; brx.idx %r12, parts; one: mov.u32 %r13, 1; two:"), waited="0") == []


def test_a_parity_of_the_producer_that_never_changes_is_found() -> None:
    assert ring(fill=(_FREE, _EXPECT, _COPY)) == ["unchanged-parity"]


def test_an_mbarrier_that_is_used_once_may_be_waited_for_in_a_loop() -> None:
    """Each round waits for the copies that began before the loops."""
    once = f"{_EXPECT} {_COPY}"
    text = f"setp.ne.u32 %p7, %r5, 0; @%p7 bra done; {once}"
    assert ring(read=(_ARRIVE,), fill=(_FREE, text, "bra done;")) == []


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ((_EXPECT, _COPY), ["refilled-stage"]),
        ((_EXPECT, _COPY, "bar.sync 1, 32;"), ["refilled-stage"]),  # of the threads that copy alone
        ((_EXPECT, _COPY, "bar.sync 2, 160;"), []),
        ((_EXPECT, _COPY, _OWN), ["refilled-stage"]),  # for its own bytes alone
        ((_EXPECT, _COPY, _OWN, "mbarrier.arrive.shared.b64 _, [bars];"), []),
        ((_EXPECT, _COPY, "ld.acquire.gpu.global.b32 %r12, [%rd3];"), []),
        (("setp.lt.u32 %p8, %r5, 1; @%p8 bra on;", _FREE, "on:", _EXPECT, _COPY, "xor.b32 %r6, %r6, 1;"), []),
        ((_EXPECT, _COPY.replace("[tile]", "[%r13]"), "add.u32 %r13, %r13, 128;"), []),  # another stage in each round
        ((_EXPECT, "mov.pred %p8, 0; @%p8 " + _COPY), []),  # no thread copies
        (("mov.u32 %r14, tile; sub.u32 %r13, %r14, %r12;", _EXPECT, _COPY.replace("[tile]", "[%r13]")), ["refilled-stage"]),
        (
            ("@%p1 bra fill; own: mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], %r6; @!%p2 bra own; fill:", _EXPECT, _COPY),
            ["refilled-stage"],
        ),
    ],
)
def test_a_stage_is_filled_again_after_its_readers_are_done(fill: tuple[str, ...], found: list[str]) -> None:
    read = ("bar.sync 2, 160;", _ARRIVE, _PARITY)
    assert ring(read=read, fill=fill) == found


@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        (("", "%r3"), ["refilled-stage"]),
        (("", "3"), []),
        (("", "64"), ["refilled-stage"]),
        (("min.u32 %r15, %r3, 3;", "%r3"), ["refilled-stage"]),  # those after a prologue
        (("min.u32 %r19, %r3, 3;", "%r19"), []),
        (("and.b32 %r19, %r3, 3;", "%r19"), []),  # those that a compiler did not unroll
        (("and.b32 %r20, %r3, 3; sub.u32 %r19, %r3, %r20;", "%r19"), ["refilled-stage"]),
        (("setp.gt.u32 %p8, %r3, 9; add.u32 %r20, %r3, 1; selp.b32 %r19, %r3, %r20, %p8;", "%r19"), ["refilled-stage"]),
        (("setp.gt.u32 %p8, %r3, 9; selp.b32 %r19, 2, 3, %p8;", "%r19"), []),
        (
            ("", "%r3; selp.b32 %r19, 1, 0, %p9; setp.ne.u32 %p10, %r19, 0; @%p10 bra turn; bra done"),
            ["refilled-stage"],
        ),  # by way of a flag
        (("", "3; selp.b32 %r19, 1, 0, %p9; setp.ne.u32 %p10, %r19, 0; @%p10 bra turn; bra done"), []),
    ],
)
@pytest.mark.parametrize(
    "step",
    [
        "add.u32 %r18, %r14, 1; setp.eq.u32 %p7, %r18, 3; selp.b32 %r14, 0, %r18, %p7;",
        "add.u32 %r18, %r14, 1; setp.eq.u32 %p7, %r14, 2; selp.b32 %r14, 0, %r18, %p7;",
        "add.u32 %r18, %r14, 1; add.u32 %r21, %r14, -2; setp.ne.u32 %p7, %r14, 2; selp.b32 %r14, %r18, %r21, %p7;",
        "add.u32 %r18, %r14, 1; add.u32 %r21, %r14, -2; setp.gt.u32 %p7, %r18, 2; selp.b32 %r14, %r21, %r18, %p7;",
    ],
)
def test_a_loop_has_more_rounds_than_its_ring_has_places(step: str, rounds: tuple[str, str], found: list[str]) -> None:
    """Compilers copy the register that has the 0 already; the ring's length does not limit the rounds."""
    first, last = rounds
    begin = f"mov.u32 %r14, 0; mov.u32 %r15, %r14; {first} mov.u32 %r17, tile; turn: shl.b32 %r16, %r14, 7; add.u32 %r13, %r17, %r16;"
    copy = f"{_EXPECT} {_COPY.replace('[tile]', '[%r13]')}"
    end = f"{step} add.u32 %r15, %r15, 1; setp.lt.u32 %p9, %r15, {last}; @%p9 bra turn; bra done;"
    assert ring(fill=(begin, copy, end)) == found


def unrolled(
    stages: int, parity: str = "and.b32 %r{0}, %r{1}, 1;", free: str = _FREE, count: int = 128, *, by_threads: bool = False
) -> tuple[list[str], int]:
    """The rules that a kernel breaks whose stages a compiler computes, with the number of notes that something is not followed.

    Readers do two rounds at once.  What they divide by the number of stages, they multiply by a reciprocal, and they step the address of an
    mbarrier by the bytes of two: so it leaves the ring, and what is taken away brings it back.  One thread, or one for each stage,
    initialises the mbarriers.
    """
    shift = (stages - 1).bit_length() - 1
    factor = -(-(1 << 32 + shift) // stages)
    ring = 8 * stages
    divide = f"mul.wide.u32 %rd{{0}}, %r{{1}}, {factor}; shr.u64 %rd1{{0}}, %rd{{0}}, {32 + shift}; cvt.u32.u64 %r{{0}}, %rd1{{0}};"
    wait = "poll{0}: mbarrier.try_wait.parity.shared.b64 %p2, [{1}], {2}; @!%p2 bra poll{0};"

    def read(number: int) -> str:
        """One of the two rounds; the register of its number is 5 or 15."""
        at, quotient = 20 + 10 * number, 21 + 10 * number
        parities = parity.format(at + 2, quotient, 5 + 10 * number)
        return (
            f"{divide.format(quotient, 5 + 10 * number)} mad.lo.s32 %r{at}, %r{quotient}, {-ring}, %r19; {parities}"
            f"add.s32 %r{at + 3}, %r{at}, {8 * number}; {wait.format(number, f'%r{at + 3}', f'%r{at + 2}')} ld.shared.b32 %r10, [tile];"
            f"mbarrier.arrive.shared.b64 _, [%r{at + 3}+{ring}];"
        )

    single = [f"mbarrier.init.shared.b64 [bars+{8 * each}], {count if each >= stages else 1};" for each in range(2 * stages)]
    inits = [f"mbarrier.init.shared.b64 [%r52], 1; mbarrier.init.shared.b64 [%r52+{ring}], {count};"]
    chosen = "shl.b32 %r50, %r2, 3; mov.u32 %r51, bars; add.u32 %r52, %r51, %r50;"
    chosen += f"setp.{f'ge.u32 %p5, %r2, {stages}' if by_threads else 'ne.u32 %p5, %r2, 0'};"
    lines = (
        *(".version 8.7", ".target sm_90a", ".address_size 64", ".visible .entry kernel(.param .u32 count) .maxntid 160, 1, 1", "{"),
        ".reg .b32 %r<500>; .reg .b64 %rd<200>; .reg .pred %p<9>; .shared .align 128 .b8 tile[8192];",
        f".shared .align 8 .b64 bars[{2 * stages}];",
        f"mov.u32 %r2, %tid.x; setp.gt.u32 %p1, %r2, 127; {chosen} ld.param.u32 %r3, [count]; @%p5 bra made;",
        *(inits if by_threads else single),
        "made: bar.sync 0; mov.u32 %r5, 0; @%p1 bra filling; mov.u32 %r15, 1; mov.u32 %r19, bars;",
        f"read: {read(0)} {read(1)} add.u32 %r15, %r15, 2; add.u32 %r19, %r19, 16;",
        "add.u32 %r5, %r5, 2; setp.lt.u32 %p3, %r5, %r3; @%p3 bra read; st.global.b32 [%rd3], %r10; ret;",
        "filling: setp.ne.u32 %p6, %r2, 128; @%p6 bra done; mov.u32 %r9, bars; mov.u32 %r8, tile;",
        f"again: {divide.format(40, 5)} mul.lo.s32 %r41, %r40, {stages}; sub.s32 %r42, %r5, %r41; shl.b32 %r43, %r42, 3;",
        f"add.s32 %r44, %r9, %r43; shl.b32 %r45, %r42, 7; add.s32 %r46, %r8, %r45; {parity.format(47, 40, 5)} xor.b32 %r48, %r47, 1;",
        free and wait.format(2, f"%r44+{ring}", "%r48"),
        _EXPECT.replace("bars", "%r44") + _COPY.replace("tile", "%r46").replace("bars", "%r44"),
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;",
        *("done: ret;", "}"),
    )
    found = check("\n".join((*lines, "")))
    return sorted({each.rule for each in found if each.severity != "note"}), sum(each.rule == "not-followed" for each in found)


@pytest.mark.parametrize("stages", [2, 3, 4, 5, 6, 7, 9, 12])
def test_stages_that_a_compiler_computes_are_followed(stages: int) -> None:
    assert unrolled(stages) == ([], 0)
    assert unrolled(stages, parity="mov.b32 %r{0}, 0;") == (["unchanged-parity"], 0)
    assert unrolled(stages, free="") == (["refilled-stage"], 0)
    assert unrolled(stages, count=129) == (["wrong-arrival-count"], 0)
    assert unrolled(stages, count=127) == (["wrong-arrival-count"], 0)
    assert unrolled(stages, count=127, by_threads=True) == (["wrong-arrival-count"], 0)
    assert unrolled(stages, by_threads=True) == ([], 0)


@pytest.mark.parametrize(
    ("stages", "places", "found"),
    [(4, 2, []), (5, 2, ["unchanged-parity"]), (6, 2, ["unchanged-parity"]), (2, 2, []), (3, 0, [])],
)
def test_a_parity_changes_when_its_ring_begins_again(stages: int, places: int, found: list[str]) -> None:
    """The round divided by a power of two in place of the number of stages; twice that number may be meant, where a phase takes two turns.

    A parity that changes in each round does so in each use of a ring of three, too.
    """
    assert unrolled(stages, parity=f"shr.u32 %r{{0}}1, %r{{2}}, {places}; and.b32 %r{{0}}, %r{{0}}1, 1;") == (found, 0)


def test_copies_of_a_thread_arrive_once() -> None:
    noinc = "cp.async.mbarrier.arrive.noinc.shared.b64 [bars+8];"
    assert ring(read=(noinc, _PARITY)) == []
    assert ring("129", read=(noinc, _PARITY)) == ["wrong-arrival-count"]
    assert ring(read=(noinc.replace(".noinc", ""), _PARITY)) == ["wrong-arrival-count"]


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_parity_may_be_computed_in_the_round(first: int) -> None:
    """Triton counts before it waits, and negates parities: the lowest bit counts, and what the round writes last."""
    parity = f"xor.b32 %r6, %r6, 1; xor.b32 %r16, %r6, {first}; neg.s32 %r17, %r16;"
    found = ring(fill=(parity + _FREE.replace("%r6", "%r17"), _EXPECT, _COPY))
    assert found == ([] if first else ["endless-wait"])


_TRACKED = (
    ".reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[2];",
    "mov.u32 %r2, %tid.x; setp.ne.u32 %p5, %r2, 0; ld.param.u32 %r3, [count]; mov.u32 %r5, 0; mov.u32 %r4, 0; mov.u32 %r6, 1;",
    "@%p5 bra made; mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 1; made: bar.sync 0;",
    "again: @%p5 bra on;",
    "{0}" + _EXPECT + _COPY,
    "on: full: mbarrier.try_wait.parity.shared.b64 %p2, [bars], %r4; @!%p2 bra full; xor.b32 %r4, %r4, 1; @%p5 bra off;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r7], %rd1, %rd2, %r8, %p6;",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bars+8];",
    "off: bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r3; @%p3 bra again;",
    "last: mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], %r4; @!%p2 bra last;",
)


@pytest.mark.parametrize(("free", "found"), [(_FREE + "xor.b32 %r6, %r6, 1;", False), ("", True)])
def test_a_barrier_does_not_say_that_products_have_read_a_stage(free: str, found: bool) -> None:
    """tcgen05.mma reads asynchronously: only the mbarrier of its commit tells that it has."""
    head = (".version 8.7", ".target sm_100a", ".address_size 64", ".visible .entry kernel(.param .u32 count) .maxntid 128, 1, 1", "{")
    text = "\n".join((*head, *(line.replace("{0}", free) for line in _TRACKED), "ret;", "}", ""))
    assert ("refilled-stage" in {each.rule for each in check(text)}) == found
