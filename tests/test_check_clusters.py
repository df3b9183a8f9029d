"""Addresses, masks and ranks whose bits the text shows: what does not fit is found, and what may fit is not."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry kernel(.param .align 64 .b8 map[128], .param .u32 count)\n{}{{\n"
    ".reg .b32 %r<40>; .reg .b16 %rs<9>; .reg .b64 %rd<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[8];\n"
    "mov.u32 %r1, tile; mov.u32 %r2, bars; mov.u32 %r3, %tid.x; ld.param.u32 %r4, [count];\n"
)
_TENSOR = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
_OUT = "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r5], 128;"


def messages(*lines: str, directive: str = "") -> list[str]:
    findings = check(_HEAD.format(directive) + "\n".join((*lines, "ret;", "}", "")))
    return [
        each.message.split(" (PTX")[0] for each in findings if each.rule in ("alignment", "outside-cluster") and each.severity != "note"
    ]


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("add.s32 %r5, %r1, 8;", "srcMem must be a multiple of 16 bytes, and bit 3"),
        ("mad.lo.s32 %r5, %r3, 48, %r1; add.s32 %r5, %r5, 16;", ""),
        ("mad.lo.s32 %r6, %r3, 48, %r1; add.s32 %r5, %r6, 4;", "srcMem must be a multiple of 16 bytes, and bit 2"),
        ("mad.lo.s32 %r6, %r3, 24, %r1; add.s32 %r5, %r6, 8;", ""),  # bit 3 depends on the thread
        ("add.s32 %r5, %r4, 8;", ""),
        ("add.s32 %r5, %r2, 8;", ""),  # the variable may happen to lie well
        ("add.s32 %r5, %r2, 4;", "srcMem must be a multiple of 16 bytes, and bit 2"),
    ],
)
def test_an_address_that_is_never_aligned(lines: str, wrong: str) -> None:
    assert messages(lines, _OUT) == ([f"{wrong} of this address is always set: behaviour is undefined"] if wrong else [])


def test_an_offset_adds_to_a_register() -> None:
    copy = f"{_TENSOR} [%r5+64], [%rd1, {{%r6}}], [%r7+4];"
    found = messages("add.s32 %r5, %r1, 64;", "shl.b32 %r8, %r3, 3;", "add.s32 %r7, %r2, %r8;", copy)
    assert found == ["mbar must be a multiple of 8 bytes, and bit 2 of this address is always set: behaviour is undefined"]


@pytest.mark.parametrize("directive", [".reqnctapercluster 2, 2, 1\n", ".maxclusterrank 4\n", ""])
@pytest.mark.parametrize(("mask", "wrong"), [("15", ""), ("16", "4"), ("65", "6"), ("%rs1", "8"), ("%rs2", ""), ("0", "none")])
def test_masks_of_thread_blocks(directive: str, mask: str, wrong: str) -> None:
    lines = "mov.b16 %rs1, 257; cvt.u16.u32 %rs2, %r4;"
    found = messages(lines, f"{_TENSOR}.multicast::cluster [tile], [%rd1, {{%r6}}], [bars], {mask};", directive=directive)
    beyond = [f"ctaMask names thread block {wrong}, but a cluster of this kernel has no more than 4; clear this bit"]
    none = ["ctaMask is 0: it names no thread block; set the bit of each rank that it is for"]
    assert found == (none if wrong == "none" else beyond if wrong and directive else [])


@pytest.mark.parametrize(("rank", "wrong"), [("1", False), ("2", True), ("%r4", False)])
def test_ranks_of_thread_blocks(rank: str, wrong: bool) -> None:  # a parameter of the test
    found = messages(f"mapa.shared::cluster.u32 %r5, %r1, {rank};", directive=".reqnctapercluster 2\n")
    assert found == (["b is 2, but the ranks in this kernel's cluster are 0 to 1; name one of them"] if wrong else [])


_HERE, _THERE = "mov.u32 %r5, %cluster_ctarank;", "mapa.shared::cluster.u32 %r6, %r1, {};"
_GENERIC = "mapa.u64 %rd1, %rd2, 1; cvta.to.shared.u64 %rd3, %rd1; cvt.u32.u64 %r6, %rd3;"


@pytest.mark.parametrize(
    ("made", "access", "wrong"),
    [
        (_GENERIC, "mbarrier.arrive.shared.b64 _, [%r6];", True),
        (_GENERIC, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];", False),
        (_THERE.format(0), "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r6], 0;", True),
        (_THERE.format(1), "add.s32 %r7, %r6, 16; st.volatile.shared.b32 [%r7+4], %r4;", True),
        (_THERE.format(1) + "add.s32 %r7, %r3, %r6;", "st.shared.b32 [%r7], %r4;", True),
        (_THERE.format(1), "st.shared::cluster.b32 [%r6], %r4;", False),
        (_THERE.format(1), "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r6], %r4, [%r6];", False),
        (_HERE + _THERE.format("%r5"), "st.shared.b32 [%r6], %r4;", False),  # the thread block itself
        (_HERE + "xor.b32 %r5, %r5, 1;" + _THERE.format("%r5"), "ld.shared.b32 %r4, [%r6];", True),
        (_THERE.format(1) + "@%p1 mov.u32 %r6, %r1;", "st.shared.b32 [%r6], %r4;", False),  # it may be another address
    ],
)
def test_an_address_in_another_thread_block(made: str, access: str, wrong: bool) -> None:  # a parameter of the test
    found = check(_HEAD.format("") + f".reg .pred %p<2>; {made}\n{access}\nret;\n}}\n")
    said = [each.message for each in found if each.rule == "state-space"]
    assert len(said) == wrong
    assert all(each.startswith("mapa of line 8 gives an address in another thread block") for each in said)


_STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes"
_ADD = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64"


@pytest.mark.parametrize(
    ("stored", "rank", "size", "threads", "brought"),
    [
        (_STORE + ".b32 [%r6], %r4, [%r7];", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 32", 128),
        (_STORE + ".v2.b64 [%r6], {%rd1, %rd2}, [%r7];", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 64", 1024),
        (_STORE + ".f32 [%r6], 1.0, [%r7];" + _STORE + ".f32 [%r6+128], 1.0, [%r7];", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 32", 256),
        ("@%p1 " + _ADD + " [%r6], %rd1, [%r7];", "xor.b32 %r5, %r8, 1;", 2, ".maxntid 128", 8),
        (_STORE + ".b32 [%r6], %r4, [%r7];", "and.b32 %r5, %r3, 3;", 4, ".reqntid 32", 128),  # each lane to another thread block
        (_STORE + ".b32 [%r6], %r4, [%r7];", "mov.u32 %r5, %r4;", 2, ".reqntid 32", None),
        (_STORE + ".b32 [%r6], %r4, [%r7];", "xor.b32 %r5, %r8, 1;", 0, ".reqntid 32", None),
        (_STORE + ".b32 [%r6], %r4, [%r9];", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 32", None),  # on an mbarrier that is not known
        (f"mbarrier.complete_tx.shared.b64 [bars], 8; {_STORE}.b32 [%r6], %r4, [%r7];", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 32", None),
        (f"again: {_STORE}.b32 [%r6], %r4, [%r7]; @%p3 bra again;", "xor.b32 %r5, %r8, 1;", 2, ".reqntid 32", None),
    ],
)
def test_the_bytes_of_stores_that_an_mbarrier_expects(stored: str, rank: str, size: int, threads: str, brought: int | None) -> None:
    met = "barrier.cluster.arrive; barrier.cluster.wait;"
    made = "@%p1 mbarrier.init.shared.b64 [bars], 1; @%p1 fence.mbarrier_init.release.cluster;"
    there = f"mov.u32 %r8, %cluster_ctarank; {rank} mapa.shared::cluster.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r2, %r5;"
    waited = "poll: mbarrier.try_wait.parity.shared.b64 %p2, [bars], 0; @!%p2 bra poll;"
    for expected in (brought or 8, 4, 4096):
        expects = f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bars], {expected};"
        head = _HEAD.format(f"{f'.reqnctapercluster {size}' if size else ''} {threads}\n") + ".reg .pred %p<4>; setp.eq.u32 %p1, %r3, 0;"
        found = check("\n".join((head, made, expects, met, there, stored, waited, met, "ret; }\n")))
        said = [each.message.split("early: ")[1].split(";")[0] for each in found if each.rule == "wrong-byte-count"]
        assert said == ([f"{brought:,} bytes, not {expected:,}"] if brought not in (None, expected) else [])


def test_a_variable_of_shared_memory_stands_for_its_address() -> None:
    """``mapa`` and ``getctarank`` take it with an offset, too; ptxas 13.0 refuses one in another space, and one for the result."""
    head = ".version 8.0 .target sm_90 .address_size 64 .global .align 16 .b8 table[64];"
    text = f"{head} .entry k() {{ .reg .b32 %r0; .reg .b64 %rd0; .shared .align 16 .b8 tile[512]; {{}} ret; }}"
    for line in ("mapa.shared::cluster.u32 %r0, tile, 1;", "mapa.u64 %rd0, tile+8, 1;", "getctarank.u64 %r0, tile;"):
        assert not check(text.replace("{}", line)).findings, line
    for line, rule in (
        ("mapa.u64 %rd0, table, 1;", "state-space"),
        ("mapa.shared::cluster.u32 tile, %r0, 1;", "operand-kind"),
        ("mapa.shared::cluster.u32 %r0, nowhere, 1;", "undeclared"),
    ):
        assert [each.rule for each in check(text.replace("{}", line))] == [rule], line


_COUNTED = (
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel()\n.reqntid 128\n.reqnctapercluster {blocks}\n{{\n"
    ".reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 8 .b64 bar;\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra on;\n"
    "mbarrier.init.shared.b64 [bar], {count}; fence.mbarrier_init.release.cluster;\n"
    "on: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n{arrivals}\n"
    "poll: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0; @!%p4 bra poll;\n"
    "done: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}}\n"
)
_TO = "mapa.shared::cluster.u32 %r9, %r3, {}; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];"
_OTHER = "xor.b32 %r5, %r2, 1;" + _TO.format("%r5")
_IN_FIRST = "setp.ne.u32 %p3, %r2, 0; @%p3 bra done;"
_ROUND = "mov.u32 %r7, 0; loop: {} add.u32 %r7, %r7, 1; setp.lt.u32 %p6, %r7, 2; @%p6 bra loop;"


@pytest.mark.parametrize(
    ("blocks", "arrivals", "number"),
    [
        (2, _OTHER, 128),  # each thread of the other block
        (2, f"{_OTHER} mbarrier.arrive.shared.b64 _, [bar];", 256),
        (4, "@%p1 bra skip;" + "".join(map(_TO.format, range(4))) + "skip:", 4),  # one thread of each block tells all of them
        (4, "setp.ge.u32 %p2, %r1, 4; @%p2 bra skip;" + _TO.format("%r1") + "skip:", 4),  # so do four threads, one block each
        (4, "add.s32 %r5, %r2, 1; and.b32 %r6, %r5, 3;" + _TO.format("%r6"), 128),  # the next block, round the cluster
        (4, _TO.format(0) + _IN_FIRST, 512),
        (4, "setp.eq.u32 %p5, %r2, 0; @%p5 bra skip;" + _TO.format(0) + "skip:" + _IN_FIRST, 384),  # from all but the first
        (2, _TO.format("%r2"), 128),  # the thread block itself
    ],
)
def test_arrivals_from_other_thread_blocks_are_counted(blocks: int, arrivals: str, number: int) -> None:
    def found(count: int) -> list[str]:
        return [each.rule for each in check(_COUNTED.format(blocks=blocks, count=count, arrivals=arrivals))]

    assert found(number) == []
    assert found(number + 1) == ["wrong-arrival-count"]


@pytest.mark.parametrize("arrivals", [_OTHER, "setp.ge.u32 %p2, %r1, 4; @%p2 bra skip;" + _TO.format("%r1") + "skip:"])
def test_more_arrivals_from_other_thread_blocks_than_a_phase_counts(arrivals: str) -> None:
    assert [each.rule for each in check(_COUNTED.format(blocks=4, count=2, arrivals=arrivals))] == ["wrong-arrival-count"]


@pytest.mark.parametrize("arrivals", ["ld.shared.u32 %r7, [bar+4];" + _TO.format("%r7"), _ROUND.format(_TO.format("%r7"))])
def test_arrivals_in_thread_blocks_that_are_not_known(arrivals: str) -> None:
    assert [each.rule for each in check(_COUNTED.format(blocks=2, count=999, arrivals=arrivals))] == ["not-followed"]


_RING = (
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 n)\n.reqntid 64\n.reqnctapercluster 2\n{{\n"
    ".reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 16 .b8 tile[64]; .shared .align 8 .b64 full; "
    ".shared .align 8 .b64 free; .shared .align 8 .b64 end;\n"
    "mov.u32 %r1, %tid.x; ld.param.u32 %r8, [n]; mov.u32 %r3, free; setp.ne.u32 %p1, %r1, 0; @%p1 bra on;\n"
    "mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [free], 2; mbarrier.init.shared.b64 [end], 32;\n"
    "fence.mbarrier_init.release.cluster;\non: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "mov.u32 %r10, 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra read; setp.ne.u32 %p3, %r1, 32; @%p3 bra done;\n"
    "fill: and.b32 %r11, %r10, 1; xor.b32 %r12, %r11, 1;\n"
    "spin: mbarrier.try_wait.parity.shared.b64 %p4, [free], %r12; @!%p4 bra spin;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [full];\n"
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, %r8; @%p5 bra fill;\n{tail}\nbra done;\n"
    "read: and.b32 %r11, %r10, 1;\npoll: mbarrier.try_wait.parity.shared.b64 %p4, [full], %r11; @!%p4 bra poll;\n"
    "ld.shared.b32 %r13, [tile]; setp.ge.u32 %p6, %r1, 2; @%p6 bra next;\n"
    "mapa.shared::cluster.u32 %r9, %r3, %r1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n"
    "next: add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, %r8; @%p5 bra read;\n{after}\ndone: {end} ret;\n}}\n"
)
_LAST = "last: mbarrier.try_wait.parity.shared.b64 %p7, [{}], 0; @!%p7 bra last;"
_SENT = "mov.u32 %r4, end; mov.u32 %r2, %cluster_ctarank; xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r5, %r4, %r6;"
_SENT += "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];"


@pytest.mark.parametrize(
    ("tail", "after", "end", "wrong"),
    [
        ("", "", "", True),
        (_LAST.format("free"), "", "", False),  # what fills the ring waits for the last readers
        ("", "", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", False),
        (_LAST.format("end"), _SENT, "", False),  # a later arrival of the same threads, for which something waits
        ("", "barrier.cluster.arrive; barrier.cluster.wait;", "", False),
    ],
)
def test_the_last_arrivals_in_another_thread_block(tail: str, after: str, end: str, wrong: bool) -> None:  # a parameter of the test
    found = check(_RING.format(tail=tail, after=after, end=end))
    assert [each.rule for each in found if each.severity != "note"] == ["absent-block"] * wrong
