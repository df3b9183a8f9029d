"""Mbarriers that lack an instruction: each need of the spec is found where it is not met, and nothing where it is, or may be."""

from __future__ import annotations

import pytest

from ptxmma.check import check, counterparts

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 count, .param .u64 other)\n{\n.reg .b32 %r<40>; "
    ".reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bars[8];\n"
    "mov.u32 %r1, bars; mbarrier.init.shared.b64 [%r1], 1; mbarrier.init.shared.b64 [%r1+8], 1; bar.sync 0;\n"
)
_EXPECT, _ARRIVE = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;", "mbarrier.arrive.shared.b64 _, [%r1+8];"
_COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 128, [%r1];"
_FULL = "full: mbarrier.try_wait.parity.shared.b64 %p1, [bars], 0; @!%p1 bra full;"
_EMPTY = "empty: mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], %r2; @!%p1 bra empty;"
_KERNEL = (_EMPTY, _EXPECT, _COPY, _FULL, _ARRIVE)
#: An address of an array that goes round a ring of four, and one that comes from elsewhere.
_RING = (
    "mov.u32 %r3, 0; loop: shl.b32 %r4, %r3, 3; add.s32 %r5, %r1, %r4; add.s32 %r6, %r3, 1; setp.eq.s32 %p2, %r6, 4; "
    "selp.b32 %r3, 0, %r6, %p2;"
)
_MASKED = "mov.u32 %r3, 0; loop: add.s32 %r3, %r3, 8; and.b32 %r4, %r3, 24; add.s32 %r5, %r1, %r4;"
#: What a division leaves, as compilers write it: in 32 and in 64 bits, and with its own instruction.
_DIVIDED = (
    "mov.u32 %r3, 0; loop: add.s32 %r3, %r3, 3; {} sub.s32 %r7, %r3, %r6; shl.b32 %r4, %r7, 3; add.s32 %r5, %r1, %r4;",
    "mul.hi.u32 %r10, %r3, 1073741824; mul.lo.s32 %r6, %r10, 4;",
    "mul.wide.u32 %rd1, %r3, 1073741824; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r10, %rd2; mul.lo.s32 %r11, %r10, 4; mov.u32 %r6, %r11;",
    "div.s32 %r10, %r3, 4; mul.lo.s32 %r6, %r10, 4;",
)
_REMAINDER = "mov.u32 %r3, 0; loop: add.s32 %r3, %r3, 3; rem.u32 %r7, %r3, 4; shl.b32 %r4, %r7, 3; add.s32 %r5, %r1, %r4;"
_REMOTE = "mapa.shared::cluster.u32 %r9, %r8, 0; mbarrier.arrive.shared::cluster.b64 _, [%r9];"
_OTHER = "ld.param.u32 %r7, [count];"
_NO_ARRIVAL = (
    "it waits for an mbarrier on which nothing arrives: no phase completes; write mbarrier.arrive or tcgen05.commit for the same address"
)
_NOT_MADE = "it waits for an mbarrier that the kernel does not initialise; write mbarrier.init in one thread, and bar.sync 0 after it"


def messages(*lines: str) -> list[str]:
    findings = check(_HEAD + "\n".join((*lines, "ld.shared.b32 %r0, [tile];", "ret;", "}", "")))
    return [each.message.split(" (PTX")[0] for each in findings if each.rule in counterparts.RULES and each.severity != "note"]


@pytest.mark.parametrize(
    ("without", "message"),
    [
        (_EXPECT, _NO_ARRIVAL),
        (_ARRIVE, _NO_ARRIVAL),
        (_COPY, "its mbarrier expects bytes, and nothing brings any: no phase completes; name it in the copies, or write mbarrier.arrive"),
        (
            _FULL,
            "nothing waits for the mbarrier that counts its bytes; write mbarrier.try_wait for the same address before the data are used",
        ),
    ],
)
def test_what_an_mbarrier_lacks_is_found(without: str, message: str) -> None:
    assert messages(*_KERNEL) == []
    assert message in messages(*(line for line in _KERNEL if line != without))


def test_bytes_that_nothing_expects_are_found() -> None:
    lines = [_EMPTY, "mbarrier.arrive.shared.b64 _, [bars];", _COPY, _FULL, _ARRIVE]
    assert messages(*lines) == ["nothing expects the bytes that its mbarrier counts; write mbarrier.arrive.expect_tx for the same address"]


@pytest.mark.parametrize(
    "other",
    [
        "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [bars], 128;",
        "cp.async.bulk.prefetch.L2.global [%rd3], 128;",
    ],
)
def test_bulk_copies_without_an_mbarrier_are_on_none(other: str) -> None:
    """The last operand in brackets is what they read."""
    assert messages(*_KERNEL, other) == []
    assert len(messages(*(line for line in _KERNEL if line != _COPY), other)) == 1


def test_an_mbarrier_that_is_not_initialised_is_found() -> None:
    wait = "mbarrier.arrive.shared.b64 _, [bars+16]; last: mbarrier.try_wait.parity.shared.b64 %p1, [bars+16], 0; @!%p1 bra last;"
    assert messages(*_KERNEL, wait) == [_NOT_MADE]


@pytest.mark.parametrize(
    "lines",
    [
        # Places of a ring of two.
        (
            _RING.replace("%r6, 4", "%r6, 2"),
            "mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0;",
            _EXPECT,
            _COPY,
            _ARRIVE,
            "@%p1 bra loop;",
        ),
        # An index that is taken away: the place may be before the constant of the address.
        (
            "mov.u32 %r3, 0; loop: shl.b32 %r4, %r3, 3; sub.s32 %r5, %r1, %r4; add.s32 %r6, %r5, 16; add.s32 %r3, %r3, 1;",
            "mbarrier.try_wait.parity.shared.b64 %p1, [%r6], 0;",
            _EXPECT,
            _COPY,
            _ARRIVE,
            "@%p1 bra loop;",
        ),
        # An address that is not followed may be the one.
        (_OTHER, _EMPTY, _EXPECT, _COPY, _FULL, "mbarrier.arrive.shared.b64 _, [%r7];"),
        # The same place in another thread block.
        (
            _EMPTY,
            _EXPECT,
            _COPY,
            _FULL,
            "add.s32 %r8, %r1, 8; mapa.shared::cluster.u32 %r9, %r8, 0; mbarrier.arrive.shared::cluster.b64 _, [%r9];",
        ),
        # A wait for the phase before the first ends at once.
        (_EXPECT, _COPY, _FULL, "mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 1;"),
        (_EMPTY, _EXPECT, "call.uni fill;"),
        # Nothing waits for the mbarrier, and so does no harm: CUTLASS has such arrivals.
        (_EXPECT, _COPY, _FULL, _ARRIVE),
    ],
)
def test_where_nothing_is_known(lines: tuple[str, ...]) -> None:
    assert messages(*lines) == []


@pytest.mark.parametrize("ring", [_RING, _MASKED, _REMAINDER, *(_DIVIDED[0].format(each) for each in _DIVIDED[1:])])
def test_the_places_of_a_ring_are_apart_from_the_next_array(ring: str) -> None:
    """Four places from the start of the variable: the fifth belongs to another array, on which nothing arrives."""
    more = "mbarrier.init.shared.b64 [bars+16], 1; mbarrier.init.shared.b64 [bars+24], 1;"
    first = f"{more} mbarrier.init.shared.b64 [bars+32], 1;"
    used = (ring, "mbarrier.arrive.shared.b64 _, [%r5];", "mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0;", "@%p1 bra loop;")
    wait = "last: mbarrier.try_wait.parity.shared.b64 %p1, [bars+{}], 0; @!%p1 bra last;"
    assert messages(first, *used, wait.format(8)) == []
    assert messages(first, *used, wait.format(32)) == [_NO_ARRIVAL]
    uninitialised = first.replace("mbarrier.init.shared.b64 [bars+16], 1;", "")
    assert messages(uninitialised, *used, wait.format(8)) == [_NOT_MADE]


def test_a_register_that_holds_the_first_place_of_an_array_or_another() -> None:
    peeled = ("mov.u32 %r8, 0; mov.u32 %r9, bars; loop: shl.b32 %r10, %r8, 3; add.s32 %r9, %r1, %r10; add.s32 %r11, %r8, 1;",)
    ring = (*peeled, "setp.eq.s32 %p2, %r11, 2; selp.b32 %r8, 0, %r11, %p2;")
    wait = "mbarrier.try_wait.parity.shared.b64 %p1, [%r9], 0; @!%p1 bra loop;"
    assert messages(*ring, "mbarrier.arrive.shared.b64 _, [%r9];", wait) == []
    assert messages(*ring, wait) == [_NO_ARRIVAL]


def test_a_kernel_says_once_what_is_not_followed() -> None:
    computed = (
        "ld.param.u32 %r7, [count]; add.s32 %r8, %r1, %r7; mbarrier.arrive.shared.b64 _, [%r8]; mbarrier.arrive.shared.b64 _, [%r8+8];"
    )
    found = check(_HEAD + "\n".join((*_KERNEL, computed, "ret;", "}", "")))
    assert [(each.rule, each.severity, each.message) for each in found] == [
        ("not-followed", "note", "2 instructions of this kernel name mbarriers by an address that is computed: they are not followed")
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (_REMOTE, "arrivals in thread blocks that are not known"),
        ("mov.u32 %r7, %tid.y;", "%tid.y"),
        (
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bars+8], %rs1;",
            "cta_group::2, arrivals in thread blocks that are not known",
        ),
    ],
)
def test_a_kernel_says_once_which_arrivals_are_not_counted(line: str, why: str) -> None:
    found = check(_HEAD.replace("sm_90a", "sm_100a") + "\n".join((*_KERNEL, line, "ret;", "}", "")))
    said = [each.message for each in found if each.message.startswith("not counted")]
    assert said == [f"not counted: arrivals (2 mbarriers are initialised), as the kernel has {why}"]


def test_a_kernel_says_once_that_the_bytes_of_tensor_copies_are_not_counted() -> None:
    copy = _COPY.replace("bulk", "bulk.tensor.1d").replace("[%rd3], 128", "[%rd3, {%r3}]")
    found = check(_HEAD + "\n".join((_EMPTY, _EXPECT, copy, copy, _FULL, _ARRIVE, "ret;", "}", "")))
    assert [each.message for each in found] == ["not counted: the bytes of tensor copies (2), which a tensor map gives"]


def test_paths_that_are_not_followed_are_named_once() -> None:
    copy = "cp.async.cg.shared.global [tile], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
    found = check(_HEAD + "\n".join((*_KERNEL, copy, "@%p2 bra nowhere;", "ld.shared.b32 %r0, [tile];", "ret;", "}", "")))
    (said,) = [each.message for each in found if each.rule == "not-followed"]
    assert said.startswith("too many paths of this kernel differ, or a label is missing; not followed: ")


_TWO = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 64, [%r1];\n"


@pytest.mark.parametrize(
    ("expect", "copies", "said"),
    [
        ("256", _COPY, "128 bytes, not 256"),
        ("64", _COPY, "128 bytes, not 64"),
        ("128", _TWO * 2, ""),
        ("128", _TWO, "64 bytes, not 128"),
        ("128", _TWO * 3, "192 bytes, not 128"),
        ("%r20", _COPY, ""),  # not a constant
        ("256", _COPY.replace("128", "%r20"), ""),
        ("256", f"@%p2 {_COPY}", ""),  # not always executed with it
        ("256", f"more: {_COPY}", ""),
        ("256", _COPY.replace("[%r1]", "[%r1+8]"), ""),  # to another mbarrier
        ("256", _COPY.replace("bytes", "bytes.multicast::cluster").replace("[%r1]", "[%r1], %rs1"), ""),
        ("256", f"{_COPY}\nmapa.shared::cluster.u32 %r9, %r1, 0;", ""),  # another thread block may bring the rest
    ],
)
def test_bytes_that_are_miscounted_are_found(expect: str, copies: str, said: str) -> None:
    found = messages(_EMPTY, _EXPECT.replace("128", expect), copies, _FULL, _ARRIVE)
    mended = f"{said}; expect the sum of their sizes"
    assert [each.rpartition("early: ")[2] for each in found if "bring as many bytes" in each] == [mended] * bool(said)


def test_bytes_are_the_same_in_a_register() -> None:
    assert not messages("mov.b32 %r20, 128;", _EMPTY, _EXPECT.replace("128", "%r20"), _COPY, _FULL, _ARRIVE)
    assert messages("mov.b32 %r20, 256;", _EMPTY, _EXPECT.replace("128", "%r20"), _COPY, _FULL, _ARRIVE)


@pytest.mark.parametrize(("expect", "found"), [("128", 0), ("192", 1)])
def test_bytes_of_an_unrolled_loop_are_counted_round_by_round(expect: str, found: int) -> None:
    expects, full = _EXPECT.replace("128", expect), _FULL.replace("full", "again")
    rounds = messages(_EMPTY, expects, _COPY, _FULL, expects, _COPY, full, _ARRIVE)
    mended = ": 128 bytes, not 192; expect the sum of their sizes; 1 more like it: line "
    assert [each.rstrip("0123456789").endswith(mended) for each in rounds] == [True] * found
    assert messages(_EMPTY, expects, _COPY, _FULL, expects, full, _COPY, _ARRIVE) == []  # a copy of another round


def test_the_bytes_of_an_answer_are_expected() -> None:
    """A cancelled launch is answered with 16 bytes, as its type says."""
    ask = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [%r1];"
    found = [messages(_EXPECT.replace("128", bytes_), ask, _FULL) for bytes_ in ("16", "8")]
    assert [len(each) for each in found] == [0, 1]
    assert "16 bytes, not 8" in found[1][0]
