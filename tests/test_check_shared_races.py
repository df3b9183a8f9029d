"""Accesses of different threads to one place in shared memory: a barrier between them is found missing, and nothing else."""

from __future__ import annotations

import pytest

from ptxmma.check import check, shared_races

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 count) .reqntid 128\n{\n.reg .b32 %r<40>; "
    ".reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 128 .b8 tile[8192]; ld.param.u32 %r8, [count]; mov.u32 %r9, %tid.x;\n"
    "setp.ne.u32 %p1, %r9, 0; mov.u32 %r1, tile; shl.b32 %r2, %r9, 4; add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, 512; "
    "add.u32 %r5, %r1, %r4;\n"
)
_STORE, _FENCE, _BAR = "st.shared.b32 [%r3], %r9;", "fence.proxy.async.shared::cta;", "bar.sync 0;"
_SENT = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
_OUT = f"@%p1 bra on; cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 2048; {_SENT} on:"
_OWN = f"cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r3], 16; {_SENT}"
_COPY, _WAIT = "cp.async.cg.shared.global [%r3], [%rd3], 16; cp.async.commit_group;", "cp.async.wait_group 0;"
_READ = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r5];"
_LOAD, _NEXT = "ld.shared.b32 %r20, [%r5];", "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, %r8; @%p2 bra again;"
_ROUNDS = "mov.u32 %r10, 0; again:"
#: The place in a ring of three that a round reads, and the one that it copies to, which the round before has read.
_RING = (
    "mov.u32 %r10, 0; again: rem.u32 %r11, %r10, 3; shl.b32 %r12, %r11, 11; add.u32 %r13, %r5, %r12; add.u32 %r14, %r10, 2;"
    "rem.u32 %r15, %r14, 3; shl.b32 %r16, %r15, 11; add.u32 %r17, %r3, %r16;"
)
_BEGUN = (_COPY, _COPY.replace("[%r3]", "[%r3+2048]"))
_IN_RING, _READ_RING = _COPY.replace("%r3", "%r17"), _READ.replace("%r5", "%r13")


def rules(*lines: str) -> list[str]:
    return [each.rule for each in check(_HEAD + "\n".join((*lines, "ret;", "}", ""))) if each.severity != "note"]


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        ("unordered-access", (_STORE, _FENCE, _OUT), (_STORE, _FENCE, _BAR, _OUT)),
        ("unordered-access", (_ROUNDS, _STORE, _FENCE, _OUT, _BAR, _NEXT), (_ROUNDS, _STORE, _FENCE, _BAR, _OUT, _BAR, _NEXT)),
        ("refilled-stage", (_ROUNDS, _COPY, _WAIT, _BAR, _READ, _NEXT), (_ROUNDS, _COPY, _WAIT, _BAR, _READ, _BAR, _NEXT)),
        (
            "refilled-stage",
            (*_BEGUN, _RING, "cp.async.wait_group 1;", _IN_RING, _BAR, _READ_RING, _NEXT),
            (*_BEGUN, _RING, "cp.async.wait_group 1;", _BAR, _IN_RING, _READ_RING, _NEXT),
        ),
        ("unwaited-copy", (_ROUNDS, _COPY, _WAIT, _LOAD, _BAR, _NEXT), (_ROUNDS, _COPY, _WAIT, _BAR, _LOAD, _BAR, _NEXT)),
    ],
)
def test_a_barrier_orders_the_accesses(rule: str, wrong: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert rules(*wrong) == [rule]
    assert rules(*right) == []


@pytest.mark.parametrize(
    "lines",
    [
        (_STORE, _FENCE, _OWN),  # each thread copies what it has stored
        (_STORE.replace("[%r3]", "[%r3+4096]"), _FENCE, _OUT),
        (f"@!%p1 {_STORE}", _FENCE, _OUT),  # one thread stores
        (_STORE, _FENCE, "setp.eq.u32 %p3, %r8, 0; @%p3 bra off; bar.sync 0; off:", _OUT),  # perhaps a parameter says that nothing comes
        (_STORE, _FENCE, "elect.sync %r30|%p4, -1;", _OUT),
        (_ROUNDS, _COPY, _WAIT, _LOAD.replace("%r5", "%r3"), _BAR, _NEXT),  # what the thread has copied
        (_ROUNDS, _COPY, _WAIT, _BAR, _READ.replace("%r5", "%r3"), _NEXT),  # rows of its warp
    ],
)
def test_nothing_is_found_where_no_other_thread_or_way_is_known(lines: tuple[str, ...]) -> None:
    assert rules(*lines) == []


@pytest.mark.parametrize("name", shared_races.RULES)
def test_the_examples_of_a_rule_break_it_and_mend_it(name: str) -> None:
    rule = shared_races.RULES[name]
    head = (
        ".version 8.5\n.target sm_90a\n.visible .entry kernel()\n{\n.reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .align 128 .b8 tile[4096];\n"
    )
    assert [each.rule for each in check(f"{head}{rule.bad}\nret;\n}}\n") if each.severity != "note"] == [name]
    assert not check(f"{head}{rule.good}\nret;\n}}\n").findings
