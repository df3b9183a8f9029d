"""Tensor memory that a warp frees although others may not have read their last result: waits that tell nothing of these reads."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry kernel(.param .u64 data) .reqntid 192\n{\n"
    ".reg .pred %p<19>; .reg .b32 %r<30>; .reg .b64 %rd<4>; .shared .align 8 .b8 slot[8]; .shared .align 8 .b64 bars[4];\n"
    "ld.param.u64 %rd2, [data]; mov.u32 %r9, %tid.x; shr.u32 %r10, %r9, 5; setp.ne.u32 %p1, %r9, 0; @%p1 bra begun;\n"
    "mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 128; mbarrier.init.shared.b64 [bars+16], 1;\n"
    "mbarrier.init.shared.b64 [bars+24], 128; begun: setp.ne.u32 %p2, %r10, 0;\n"
    "@!%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64; bar.sync 0; ld.shared.b32 %r0, [slot];\n"
    "mov.u32 %r4, 0; mov.u32 %r5, 1; mov.u32 %r6, 0; mov.u32 %r7, 1; setp.eq.u32 %p3, %r10, 4; setp.eq.u32 %p4, %r10, 5;\n"
    "@%p3 bra multiply; @%p4 bra schedule;\n"
)
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;"
_LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd2], %r2;"
_PRODUCT = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bars];"
_TOLD = "mbarrier.arrive.shared.b64 _, [bars+8];"


def wait(name: str, place: int, parity: int) -> str:
    return (
        f"{name}: mbarrier.try_wait.parity.shared.b64 %p5, [bars+{place}], %r{parity}; @!%p5 bra {name}; xor.b32 %r{parity}, %r{parity}, 1;"
    )


def more(loop: str) -> str:
    """Another round, if memory says so."""
    return f"ld.shared.b32 %r11, [slot+4]; setp.ne.u32 %p6, %r11, 0; @%p6 bra {loop};"


#: One warp multiplies, and waits for the readers of a result before it writes the next.
_MULTIPLY = (
    "multiply: elect.sync %r14|%p7, -1; @!%p7 bra done; tile:",
    wait("free", 8, 5),
    f"mov.u32 %r12, 0; part: {_PRODUCT} add.u32 %r12, %r12, 1; setp.lt.u32 %p8, %r12, %r13; @%p8 bra part;",
    _COMMIT,
    more("tile"),
    "done: ret;",
)
#: Another one says which tile comes next, when all readers have heard of the one before.
_SCHEDULE = ("schedule: elect.sync %r14|%p7, -1; @!%p7 bra over; next:", wait("heard", 24, 7), "mbarrier.arrive.shared.b64 _, [bars+16];")


def is_freed_in_use(*lines: str) -> bool:
    scheduler = (*_SCHEDULE, more("next"), "over: ret;", "}", "")
    return any(each.rule == "freed-in-use" for each in check(_HEAD + "\n".join((*lines, "ret;", *_MULTIPLY, *scheduler))))


@pytest.mark.parametrize(
    "rounds",
    [
        ("read:", wait("full", 0, 4), _LOAD, _TOLD, more("read")),
        # The wait for the next tile comes after the reads; its phase needs arrivals that come before them.
        (
            *("read:", wait("full", 0, 4), _LOAD, _TOLD, wait("given", 16, 6)),
            *("mbarrier.arrive.shared.b64 _, [bars+24];", more("read")),
        ),
    ],
)
def test_peers_may_still_read(rounds: tuple[str, ...]) -> None:
    met = "bar.sync 1, 128;"
    assert not is_freed_in_use(*rounds, met, f"@!%p2 {_FREE}")
    assert is_freed_in_use(*rounds, f"@!%p2 {_FREE}")
    assert is_freed_in_use(*rounds, f"@!%p2 {_FREE}", met)


def test_a_wait_that_readers_answer_tells_of_their_reads() -> None:
    """The next tile is given after all have read."""
    told = ("read:", wait("full", 0, 4), _LOAD, _TOLD, "mbarrier.arrive.shared.b64 _, [bars+24];", wait("given", 16, 6), more("read"))
    assert not is_freed_in_use(*told, f"@!%p2 {_FREE}")
