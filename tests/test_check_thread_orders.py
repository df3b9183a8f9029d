"""Copies, mbarriers and proxies along the paths of a thread: what comes at a wrong time is found, and nothing else."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u32 count)\n{\n.reg .f32 %f<40>; .reg .b32 %r<40>; "
    ".reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;\n"
)
_COPY, _COMMIT = "cp.async.cg.shared.global [tile], [%rd3], 16;", "cp.async.commit_group;"
_NEXT, _WAIT = _COPY.replace("[tile]", "[tile+16]"), "cp.async.wait_group 0;"
_WANTED = tuple(f"{{.reg .pred wanted; setp.gt.u32 wanted, %r8, {number}; @wanted {copy}}}" for number, copy in enumerate((_COPY, _NEXT)))
_READ = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile];"
_STORE, _FENCE = "st.shared.v4.b32 [tile], {%r0, %r1, %r2, %r3};", "fence.proxy.async.shared::cta;"
_WGMMA = "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 1, 1, 1, 0, 0;"
_DONE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
_OUT = "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 128;"
_MATRIX = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile], {%r0};"
_CHANGE = "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;"
_RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
_ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
_TENSOR = "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r0}];"
_IN_ORDER = (_CHANGE, _RELEASE, _ACQUIRE, _TENSOR)
_COUNT = "ld.param.u32 %r8, [count]; setp.eq.u32 %p2, %r8, 0;"
_FIRST = "mov.u32 %r9, %tid.x; setp.ne.u32 %p3, %r9, 0;"
_PARTS = "mov.u32 %r9, %tid.x; setp.gt.s32 %p3, %r9, 1023; setp.gt.s32 %p4, %r9, -1;"  # no thread, and every one
_TWICE = (_COUNT, _PARTS, "@%p3 bra on;", _COPY, "on: @%p4 bra next;", _NEXT, "next:", _COMMIT, "@%p3 bra all;", _COPY, "all:", _COMMIT)
_INIT, _ARRIVE = "mbarrier.init.shared.b64 [bar], 1;", "mbarrier.arrive.shared.b64 %rd4, [bar];"
_ELECT = "setp.lt.u32 %p4, %r9, 32; elect.sync %r10|%p6, -1; and.pred %p5, %p4, %p6;"
_INVALIDATED = "@%p5 mbarrier.inval.shared.b64 [bar];"
_POLL = "poll: mbarrier.try_wait.parity.shared.b64 %p7, [bar], 0; @!%p7 bra poll;"
_LOADED = "ld.global.u32 %r8, [%rd1]; setp.eq.u32 %p2, %r8, 0; and.b32 %r7, %r8, 1; setp.eq.u32 %p4, %r7, 0;"
_ODD = "and.b32 %r7, %r8, 1; setp.eq.u32 %p4, %r7, 0;"
_PUBLISH = "fence.mbarrier_init.release.cluster;"
_MET = "barrier.cluster.arrive; barrier.cluster.wait;"
_CLUSTER = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
_SENT, _OTHER = (_STORE, _FENCE, _OUT, "cp.async.bulk.commit_group;"), _OUT.replace("[tile]", "[tile+128]")
_READ_ALL, _SENT_OTHER = "cp.async.bulk.wait_group.read 0;", (_STORE, _FENCE, _OTHER, "cp.async.bulk.commit_group;")
_ENTERED = "mov.u32 %r12, tile; mapa.shared::cluster.u32 %r11, %r12, 1;"
_THERE = "st.shared::cluster.b32 [%r11], %r0;"
_SIZE = "mov.u32 %r5, %cluster_nctaid.x; mov.u32 %r6, %cluster_nctaid.y; mul.lo.u32 %r7, %r5, %r6; setp.lt.u32 %p4, %r7, 2;"
_LOADED_AGAIN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd3], 128, [bar];"
_READ_FIRST = "cp.async.bulk.wait_group.read 1;"
_RING = "mov.u32 %r10, 0; loop: and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 7; mov.u32 %r13, tile; add.u32 %r14, %r13, %r12;"
_SENT_IN_TURN = (_STORE, _FENCE, _OUT.replace("tile", "%r14"), "cp.async.bulk.commit_group; add.u32 %r10, %r10, 1;")
_OWN_INIT = "@!%p4 mbarrier.init.shared.b64 [%r12], 1;"
_OWN = f"{_FIRST} setp.gt.u32 %p4, %r9, 3; mov.u32 %r10, tile; shl.b32 %r11, %r9, 3; add.u32 %r12, %r10, %r11; {_OWN_INIT} {_INIT}"
#: Three stages, of which fewer are copied where a product has fewer steps than that.
_FILL = (
    f"first: setp.ge.u32 %p3, %r9, %r8; @%p3 bra none; {_COPY} none: {_COMMIT} "
    "add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 2; @%p4 bra first;"
)
_STEP = f"add.u32 %r11, %r10, 2; setp.ge.u32 %p5, %r11, %r8; @%p5 bra last; {_COPY} last: {_COMMIT} {_READ} add.u32 %r10, %r10, 1;"
_AGAIN = "setp.lt.u32 %p6, %r10, %r8; @%p6 bra loop;"
#: A rule whose findings are notes.
_NOTE = "unfinished-copy"
#: The rule that each fault breaks, the kernel with the fault, and the same kernel without it.
KERNELS = {
    "a read without a wait": ("unwaited-copy", (_COPY, _COMMIT, _READ, _WAIT), (_COPY, _COMMIT, _WAIT, "bar.sync 0;", _READ)),
    "copies that may run, without a wait": (
        "unwaited-copy",
        (_COUNT, *_WANTED, "@%p2 bra on;", _COMMIT, _READ, "on:"),
        (_COUNT, *_WANTED, "@%p2 bra on;", _COMMIT, _WAIT, "bar.sync 0;", _READ, "on:"),
    ),
    "copies that may run, in no group": (
        "unwaited-copy",
        (_COUNT, *_WANTED, "@%p2 bra on;", _WAIT, _READ, "on:"),
        (_COUNT, *_WANTED, _COMMIT, "@%p2 bra on;", _WAIT, "bar.sync 0;", _READ, "on:"),
    ),
    "copies that may run, and a wait that lets them go on": (
        "unwaited-copy",
        (_COUNT, *_WANTED, _COMMIT, "@%p2 bra on;", "cp.async.wait_group 1;", _READ, "on:"),
        (
            _COUNT,
            *_WANTED,
            _COMMIT,
            "setp.gt.u32 %p4, %r8, 7; @!%p4 bra on;",
            _WAIT,
            "on: bar.sync 0;",
            _READ,
        ),  # who copies may be who waits
    ),
    "a wait on one path": (
        "unwaited-copy",
        (_COUNT, _COPY, _COMMIT, "@%p2 bra on;", _WAIT, "on: bar.sync 0;", _READ),
        (_COUNT, _COPY, _COMMIT, "@%p2 bra on;", _WAIT, "bra read; on: cp.async.wait_all; read: bar.sync 0;", _READ),
    ),
    "a wait that lets both groups go on": (
        "unwaited-copy",
        (_COPY, _COMMIT, _NEXT, _COMMIT, "cp.async.wait_group 2;", _READ),
        (_COPY, _COMMIT, _NEXT, _COMMIT, "cp.async.wait_group 1; bar.sync 0;", _READ),
    ),
    "a wait that covers an empty group alone": (
        "unwaited-copy",
        (_COMMIT, _COPY, _COMMIT, "cp.async.wait_group 1; bar.sync 0;", _READ),
        (_COPY, _COMMIT, _COMMIT, "cp.async.wait_group 1; bar.sync 0;", _READ),
    ),
    "a wait in a loop that is too weak at first": (
        "unwaited-copy",
        (_COUNT, _COPY, _COMMIT, "loop:", "cp.async.wait_group 1;", _READ, "@%p2 bra loop;"),
        (_COUNT, _COPY, _COMMIT, "loop:", _WAIT, "bar.sync 0;", _READ, "@%p2 bra loop;"),
    ),
    "a loop to which every thread comes, as a branch says twice": (
        "unwaited-copy",
        (*_TWICE, "loop:", _READ, "@%p2 bra loop;"),
        (*_TWICE, _WAIT, "bar.sync 0; loop:", _READ, "@%p2 bra loop;"),
    ),
    "a read of what other threads copy": (
        "unwaited-copy",
        (_COPY, _COMMIT, "bar.sync 0;", _WAIT, _READ),
        (_COPY, _COMMIT, _WAIT, "bar.sync 0;", _READ),
    ),
    "a wait without a group": ("unwaited-copy", (_COPY, _WAIT, _READ), (_COPY, "cp.async.wait_all; bar.sync 0;", _READ)),
    "a product of copies that nothing waits for": (
        "unwaited-copy",
        (_COPY, _COMMIT, _WGMMA, _DONE, _FENCE, _WAIT),
        (_COPY, _COMMIT, _WAIT, _FENCE, "bar.sync 0;", _WGMMA, _DONE),
    ),
    "a product of what other threads copy": (
        "unwaited-copy",
        (_COPY, _COMMIT, "bar.sync 0;", _WAIT, _FENCE, _WGMMA, _DONE),
        (_COPY, _COMMIT, _WAIT, _FENCE, "bar.sync 0;", _WGMMA, _DONE),
    ),
    "copies beside stores that nothing waits for": (
        "unwaited-copy",
        (_STORE, _COPY, _COMMIT, "bar.sync 0;"),
        (_STORE, _COPY, _COMMIT, _WAIT, "bar.sync 0;"),
    ),
    "copies beside stores in no group": (
        "unwaited-copy",
        (_COPY, _STORE, _WAIT, "bar.sync 0;"),
        (_COPY, _STORE, "cp.async.wait_all; bar.sync 0;"),
    ),
    "copies beside stores, and no barrier after the wait": (
        "unwaited-copy",
        (_STORE, _COUNT, "bar.sync 0; loop:", _COPY, _COMMIT, _WAIT, _READ, "@%p2 bra loop;"),
        (_STORE, _COUNT, "bar.sync 0; loop:", _COPY, _COMMIT, _WAIT, "bar.sync 0;", _READ, "@%p2 bra loop;"),
    ),
    "a product without a fence on one path": (
        "missing-proxy-fence",
        (_COUNT, _STORE, "@%p2 bra on;", _FENCE, "on: bar.sync 0;", _WGMMA, _DONE),
        (_COUNT, _STORE, "@%p2 bra on;", _FENCE, "bra go; on:", _FENCE, "go: bar.sync 0;", _WGMMA, _DONE),
    ),
    "a product of copies that are fenced too early": (
        "missing-proxy-fence",
        (_COPY, _COMMIT, _FENCE, _WAIT, "bar.sync 0;", _WGMMA, _DONE),
        (_COPY, _COMMIT, _WAIT, _FENCE, "bar.sync 0;", _WGMMA, _DONE),
    ),
    "a bulk copy without a fence after the stores": ("missing-proxy-fence", (_FENCE, _STORE, _OUT, _READ), (_STORE, _FENCE, _OUT, _READ)),
    "a fence of another space": (
        "missing-proxy-fence",
        (_STORE, "fence.proxy.async.global;", _OUT, _READ),
        (_STORE, "fence.proxy.async;", _OUT, _READ),
    ),
    "a tensor map that is not acquired": (
        "stale-tensor-map",
        (_CHANGE, _RELEASE, _TENSOR, _ACQUIRE),
        (_CHANGE, _RELEASE, _ACQUIRE, _TENSOR),
    ),
    "a tensor map that is not published": ("stale-tensor-map", (_CHANGE, _ACQUIRE, _TENSOR), _IN_ORDER),
    "a tensor map that is published on one path": (
        "stale-tensor-map",
        (_COUNT, _CHANGE, "@%p2 bra on;", _RELEASE, _ACQUIRE, "on:", _TENSOR),
        (_COUNT, "@%p2 bra on;", _CHANGE, _RELEASE, _ACQUIRE, "on:", _TENSOR),
    ),
    "an mbarrier before it is initialised": (
        "unpublished-barrier",
        (_FIRST, f"@!%p3 {_INIT}", f"@%p3 {_ARRIVE}", "bar.sync 0;"),
        (_FIRST, f"@!%p3 {_INIT}", "bar.sync 0;", f"@%p3 {_ARRIVE}"),
    ),
    "an mbarrier before it is initialised, in the other warps": (
        "unpublished-barrier",
        (_FIRST, _ELECT, f"@%p5 {_INIT}", f"@%p4 {_ARRIVE}", _POLL, "bar.sync 0;"),
        (_FIRST, _ELECT, f"@%p5 {_INIT}", "bar.sync 0;", f"@%p4 {_ARRIVE}", _POLL),
    ),
    "an mbarrier that a branch leaves uninitialised": (
        "unpublished-barrier",
        (_FIRST, "@%p3 bra on;", _INIT, _PUBLISH, _ARRIVE, "on:", _POLL, "bar.sync 0;"),
        (_FIRST, "@%p3 bra on;", _INIT, _PUBLISH, _ARRIVE, "on: bar.sync 0;", _POLL),
    ),
    "an mbarrier after a barrier that comes before its initialisation": (
        "unpublished-barrier",
        (_FIRST, "bar.sync 0;", f"@!%p3 {_INIT}", f"@%p3 {_ARRIVE}", "bar.sync 0;"),
        (_FIRST, "bar.sync 0;", f"@!%p3 {_INIT}", "bar.sync 0;", f"@%p3 {_ARRIVE}"),
    ),
    "an mbarrier that is initialised twice": (
        "initialised-twice",
        (_FIRST, f"@!%p3 {_INIT}", "bar.sync 0;", f"@!%p3 {_INIT}"),
        (_FIRST, f"@!%p3 {_INIT}", "bar.sync 0; @!%p3 mbarrier.inval.shared.b64 [bar];", f"@!%p3 {_INIT}"),
    ),
    "an mbarrier that an elected thread initialises twice, and invalidates at the end": (
        "initialised-twice",
        (_FIRST, _ELECT, f"@%p5 {_INIT}", "bar.sync 0;", f"@%p5 {_INIT}", "bar.sync 0;", _INVALIDATED, _INIT),
        (_FIRST, _ELECT, f"@%p5 {_INIT}", "bar.sync 0;", _INVALIDATED, f"@%p5 {_INIT}"),
    ),
    "an mbarrier that each round of a loop initialises": (
        "initialised-twice",
        (_COUNT, f"loop: {_INIT}", "bar.sync 0;", "@%p2 bra loop;"),
        (_COUNT, f"loop: {_INIT}", "bar.sync 0; mbarrier.inval.shared.b64 [bar];", "@%p2 bra loop;", _INIT),
    ),
    "mbarriers that the threads initialise twice, each its own": (
        "initialised-twice",
        (_OWN, "bar.sync 0;", _OWN_INIT),
        (_OWN, "bar.sync 0;", _OWN_INIT.replace("init", "inval").replace(", 1", ""), _OWN_INIT),
    ),
    "a source that the next round writes": (
        "reused-source",
        (_COUNT, "loop:", *_SENT, "@%p2 bra loop;", _READ_ALL),
        (_COUNT, "loop:", _READ_ALL, *_SENT, "@%p2 bra loop;"),
    ),
    "a source whose wait is on one path": (
        "reused-source",
        (_COUNT, *_SENT, f"@%p2 {_READ_ALL}", *_SENT),
        (_COUNT, *_SENT, "@%p2 bra on;", _READ_ALL, *_SENT, "on:"),
    ),
    "two buffers, and a wait that lets both copies go on": (
        "reused-source",
        (_COUNT, "loop:", *_SENT, "cp.async.bulk.wait_group.read 2;", *_SENT_OTHER, _READ_FIRST, "@%p2 bra loop;"),
        (_COUNT, "loop:", *_SENT, _READ_FIRST, *_SENT_OTHER, _READ_FIRST, "@%p2 bra loop;"),
    ),
    "a ring of two buffers, and no wait in the loop": (
        "reused-source",
        (_COUNT, _RING, *_SENT_IN_TURN, "@%p2 bra loop;", _READ_ALL),
        (_COUNT, _RING, _READ_FIRST, *_SENT_IN_TURN, "@%p2 bra loop;", _READ_ALL),
    ),
    "a ring of two buffers, and a wait that lets both copies go on": (
        "reused-source",
        (_COUNT, _RING, "cp.async.bulk.wait_group.read 2;", *_SENT_IN_TURN, "@%p2 bra loop;", _READ_ALL),
        (_COUNT, _RING, *_SENT_IN_TURN, _READ_ALL, "@%p2 bra loop;"),
    ),
    "a ring of two buffers, some of whose groups are empty": (
        "reused-source",
        (_COUNT, _RING, *_SENT_IN_TURN, "@%p2 bra loop;", _READ_ALL),
        (_COUNT, _RING, *_SENT_IN_TURN[:2], f"@%p5 {_SENT_IN_TURN[2]}", _SENT_IN_TURN[3], "@%p2 bra loop;", _READ_ALL),
    ),
    "a source whose copies belong to no group": (
        "reused-source",
        (*_SENT[:3], _READ_ALL, *_SENT, _READ_ALL),
        (*_SENT, _READ_ALL, *_SENT, _READ_ALL),
    ),
    "a load into a source that a copy may still read": (
        "reused-source",
        (*_SENT, _LOADED_AGAIN, _READ_ALL),
        (*_SENT, _READ_ALL, _LOADED_AGAIN),
    ),
    "a bulk copy that belongs to no group": ("unfinished-copy", (*_SENT[:3], _READ_ALL, "ret;"), (*_SENT, _READ_ALL, "ret;")),
    "a bulk copy that is waited for on one path": (
        "unfinished-copy",
        (_COUNT, *_SENT, "@%p2 bra on;", _READ_ALL, "on: ret;"),
        (_COUNT, "@%p2 bra on;", *_SENT, _READ_ALL, "on: ret;"),
    ),
    "a wait at the end that lets one copy go on": (
        "unfinished-copy",
        (*_SENT, *_SENT_OTHER, _READ_FIRST, "ret;"),
        (*_SENT, *_SENT_OTHER, _READ_FIRST, _READ_ALL, "ret;"),
    ),
    "a flag after the source is free": (
        "incomplete-result",
        (*_SENT, _READ_ALL, "fence.acq_rel.gpu;", "red.relaxed.gpu.global.add.u32 [%rd3], 1;"),
        (*_SENT, "cp.async.bulk.wait_group 0;", "fence.acq_rel.gpu;", "red.relaxed.gpu.global.add.u32 [%rd3], 1;"),
    ),
    "a flag of the device in an unfinished round": (
        "incomplete-result",
        (_COUNT, "loop:", *_SENT, _READ_ALL, "st.release.gpu.global.u32 [%rd3], 1;", "@%p2 bra loop;"),
        (_COUNT, "loop:", *_SENT, _READ_ALL, "st.release.cluster.global.u32 [%rd3], 1;", "@%p2 bra loop;"),
    ),
    "a store to a block that may not have started": ("absent-block", (_ENTERED, _THERE, _MET), (_ENTERED, _MET, _THERE, _MET)),
    "a store to a block of a cluster of several": (
        "absent-block",
        (_SIZE, f"@!%p4 bra on; {_MET} on:", _ENTERED, _THERE, _MET),
        (_SIZE, f"@%p4 bra on; {_MET} on:", _ENTERED, _THERE, _MET),
    ),
    "a generic store to a block that may not have started": (
        "absent-block",
        ("mov.u64 %rd2, tile; mapa.u64 %rd3, %rd2, 1;", "st.b32 [%rd3], %r0;", _MET),
        ("mov.u64 %rd2, tile; mapa.u64 %rd3, %rd2, 1;", _MET, "st.b32 [%rd3], %r0;", _MET),
    ),
    "a load from a block that may have ended": (
        "absent-block",
        (_COUNT, _MET, _ENTERED, "ld.shared::cluster.b32 %r0, [%r11];", f"@!%p2 {_MET}"),
        (_COUNT, _MET, _ENTERED, "@!%p2 ld.shared::cluster.b32 %r0, [%r11];", _MET),
    ),
    "an arrival at a block after a barrier of its own": (
        "absent-block",
        (_ENTERED, "bar.sync 0;", "mbarrier.arrive.shared::cluster.b64 _, [%r11];", _MET),
        (_ENTERED, _MET, "mbarrier.arrive.shared::cluster.b64 _, [%r11];"),
    ),
    "an mbarrier that the cluster does not see": (
        "unpublished-barrier",
        (_FIRST, "@%p3 bra on;", _INIT, "on:", _CLUSTER, _ARRIVE),
        (_FIRST, "@%p3 bra on;", _INIT, _PUBLISH, "on:", _CLUSTER, _ARRIVE),
    ),
    "a wait in every round, under conditions that are not known to hold together": (
        "unpublished-barrier",
        (_FIRST, f"@!%p3 {_INIT}", _LOADED, "@!%p3 bra on; @%p2 bra on; @%p4 bra on;", _POLL, "on:"),
        (_FIRST, f"@!%p3 {_INIT}", "bar.sync 0;", _LOADED, "@!%p3 bra on; @%p2 bra on; @%p4 bra on;", _POLL, "on:"),
    ),
    "a fence for odd counts alone": (
        "missing-proxy-fence",
        (_COUNT, "@%p2 bra end;", _STORE, _ODD, "@%p4 bra on;", _FENCE, "on:", _OUT, "end:"),
        (_COUNT, "@%p2 bra end;", _STORE, _FENCE, _ODD, "@%p4 bra end;", _OUT, "end:"),
    ),
}


def rules(*lines: str, directive: str = "") -> list[str]:
    """The rules that a kernel breaks; its mbarriers are used at its end, and its bulk copies are waited for."""
    used = ("bar.sync 0;", _ARRIVE, _POLL.replace("poll", "last")) if any("mbarrier.init" in line for line in lines) else ()
    ended = ("cp.async.bulk.commit_group;", _READ_ALL) if any("bulk_group" in line for line in lines) else ()
    return [
        each.rule
        for each in check(
            _HEAD.replace(")\n{", f")\n{directive}\n{{") + "\n".join((*lines, *used, *ended, "bar.sync 0;", _READ, "ret;", "}", ""))
        )
        if each.severity != "note" or each.rule == _NOTE
    ]


@pytest.mark.parametrize("name", KERNELS)
def test_each_fault_is_found(name: str) -> None:
    rule, wrong, right = KERNELS[name]
    assert rules(*wrong) == [rule]
    assert rules(*right) == []


@pytest.mark.parametrize(
    ("directive", "barriers", "wrong"),
    [
        ("", ("@%p5 bra on; bar.sync 1, 128;",), True),  # of warps 4 to 7 alone
        ("", ("@!%p5 bra on; bar.sync 1, 128;",), False),  # the first warp is among them
        ("", ("bar.sync 0; @%p5 bra on; bar.sync 1, 128;",), False),
        ("", ("@%p5 bra first; bar.sync 1, 256; bra.uni next; first: bar.arrive 1, 256; bra.uni on; next:",), False),
        ("", ("@%p5 bra first; bar.sync 1, 256; bra.uni next; first: bar.sync 2, 128; bar.arrive 1, 256; bra.uni on; next:",), False),
        ("", ("@%p5 bra first; bar.sync 1, 128; bra.uni next; first: bar.sync 2, 128; bra.uni on; next:",), True),
        ("", ("@%p5 bra on; bar.sync %r8, 128;",), False),  # it may be any barrier
        (".reqntid 256", ("bar.sync 1, 128;",), True),  # of the first 128 threads that come
        (".reqntid 256", ("bar.sync 1, 256;",), False),
        (".reqntid 256", ("bar.sync 0; bar.sync 1, 128;",), False),
        (".maxntid 256", ("bar.sync 1, 128;",), False),  # a block may have 128 threads
    ],
)
def test_a_barrier_of_some_threads(directive: str, barriers: tuple[str, ...], wrong: bool) -> None:  # a parameter of the test
    roles = f"{_FIRST} setp.lt.u32 %p5, %r9, 128; @%p3 bra wait; {_INIT} wait:"
    found = rules(roles, *barriers, _ARRIVE, _POLL, "on:", directive=directive)
    assert found.count("unpublished-barrier") == wrong


@pytest.mark.parametrize(
    "lines",
    [
        (_COPY, _COMMIT, _STORE, _READ, _WAIT, "bar.sync 0;"),  # the read may be of what was stored
        (_COPY, _COMMIT, _STORE, _WAIT, _READ, "bar.sync 0;"),
        (_COPY, _COMMIT, _WAIT, "bar.sync 0;", _COPY, _COMMIT, _READ),  # the next stage is copied meanwhile
        (_COUNT, "mov.u32 %r9, 0;", _FILL, "mov.u32 %r10, 0; loop: cp.async.wait_group 1; bar.sync 0;", _STEP, _AGAIN, _WAIT),
        (_COPY, "cp.async.mbarrier.arrive.shared.b64 [tile];", _READ),
        (_FIRST, f"@!%p3 {_INIT}", f"@!%p3 {_ARRIVE}"),  # the same thread
        (_ARRIVE,),  # another kernel may have initialised it
        (_FIRST, f"@!%p3 {_INIT}", "bar.warp.sync 0xffffffff;", _ARRIVE),
        (_INIT, "bar.sync 0; mbarrier.inval.shared.b64 [%r11];", _INIT),  # the address may be the same
        (_OWN, "bar.sync 0; @%p4 mbarrier.inval.shared.b64 [tile+8];", _OWN_INIT),  # one of theirs
        (_STORE, _FENCE, _OUT, "st.global.b32 [%rd3], %r0;", _OUT),
        (*_SENT, _OUT, "cp.async.bulk.commit_group;"),  # the same data once more
        (*_SENT, *_SENT_OTHER),
        (_COUNT, "loop:", "add.u32 %r11, %r11, 128;", _STORE, _FENCE, _OUT.replace("[tile]", "[%r11]"), _SENT[3], "@%p2 bra loop;"),
        (_STORE, "bar.sync 0;", _FENCE, _OUT),  # the thread that copies may have stored alone
        (_MATRIX, "bar.sync 0;", _FENCE, "bar.sync 0;", _OUT),
        (_COPY, _COMMIT, _READ, "call.uni wait;"),
        (*_SENT, _READ_ALL, "st.global.b32 [%rd3], %r0;", "fence.acq_rel.gpu;"),  # it may tell of what it has stored
        (_ENTERED, _THERE),  # the kernel may run without clusters
        (_ENTERED, "cvta.shared.u64 %rd2, %rd3; st.b32 [%rd2], %r0;", _MET),  # a generic address is not what mapa made
        # A flag says that the loop has gone round.
        ("mov.pred %p4, -1; loop:", _STORE, "mov.pred %p4, 0;", _COUNT, "@%p2 bra loop; @%p4 bra on;", _FENCE, "on:", _OUT),
        (_COUNT, _STORE, "@%p2 bra on;", _FENCE, "on:", _ODD, "@%p4 bra end;", _OUT, "end:"),  # 0 is not odd
        (_STORE, "mov.u32 %r9, %tid.x; max.u32 %r7, %r9, 2000; setp.ne.u32 %p3, %r7, 2000; @%p3 bra on;", _FENCE, "on:", _OUT),  # no thread
        (_MET, _ENTERED, _THERE, "st.release.cluster.shared::cluster.b32 [%r11], 1;"),  # the other block may wait for it
    ],
)
def test_where_nothing_is_known(lines: tuple[str, ...]) -> None:
    assert rules(*lines) == []


@pytest.mark.parametrize("stored", [_MATRIX, _STORE])
def test_a_fence_after_the_barrier_is_a_note(stored: str) -> None:
    late = (_FIRST, stored, "bar.sync 0;", "@%p3 bra on;", _FENCE, _OUT, _SENT[3], _READ_ALL, "on: ret;")
    early = (_FIRST, stored, _FENCE, "bar.sync 0;", "@%p3 bra on;", _OUT, _SENT[3], _READ_ALL, "on: ret;")
    alone = (_FIRST, f"@!%p3 {_STORE}", *late[2:])
    found = [
        [each for each in check(_HEAD + "\n".join((*lines, "}", ""))) if each.rule == "missing-proxy-fence"]
        for lines in (late, early, alone)
    ]
    assert [[each.severity for each in each_kernel] for each_kernel in found] == [["note"], [], []]


def test_a_finding_names_the_path() -> None:
    text = _HEAD + "\n".join((*KERNELS["a wait on one path"][1], "ret;", "}", ""))
    (finding,) = [each for each in check(text) if each.severity != "note"]
    what, _, why = finding.message.partition(": ")
    assert (
        what
        == "it reads shared memory that only copies can have written, and neither cp.async.wait_group nor cp.async.wait_all comes before"
    )
    assert why.startswith("cp.async of line 9, if %p2 is true")


def test_a_finding_names_a_wait_that_is_too_weak() -> None:
    groups = (_COPY, _COMMIT, _NEXT, _COMMIT, "cp.async.wait_group 2;", "bar.sync 0;", _READ)
    (finding,) = check(_HEAD + "\n".join((*groups, "ret;", "}", ""))).findings
    assert "the cp.async.wait_group before it lets all of their groups go on" in finding.message


def test_the_copies_that_an_unrolled_loop_has_of_an_instruction_are_one_finding() -> None:
    round_ = (*_SENT, _LOADED_AGAIN)
    found = check(_HEAD + "\n".join((*round_, *round_, _READ_ALL, "ret;", "}", ""))).findings
    (finding,) = [each for each in found if each.rule == "reused-source"]
    assert (finding.line, finding.message.rpartition("; ")[2]) == (11, "1 more like it: line 16 (PTX ISA 9.7.9.27.2.2)")


def test_a_comment_that_ignores_one_copy_of_an_instruction_leaves_the_others() -> None:
    first = (*_SENT, f"{_LOADED_AGAIN} // ptxmma: ignore[reused-source]")
    found = check(_HEAD + "\n".join((*first, *_SENT, _LOADED_AGAIN, _READ_ALL, "ret;", "}", ""))).findings
    assert [(each.line, each.ignored) for each in found if each.rule == "reused-source"] == [(11, ("reused-source",)), (16, ())]


@pytest.mark.parametrize(("barrier", "wrong"), [("", True), ("bar.sync 0;", False)])
def test_rounds_that_begin_at_either_of_two_waits(barrier: str, wrong: bool) -> None:
    """Each wait is right after the other, if that was: not both can be."""
    polls = (_POLL.replace("poll", f"poll{number}") for number in (1, 2))
    entered, repeated = (
        "@!%p3 bra on; @%p2 bra on; @%p4 bra two; one:",
        "ld.global.u32 %r8, [%rd1]; setp.eq.u32 %p5, %r8, 0; @%p5 bra one; on:",
    )
    rounds = (entered, next(polls), "two:", next(polls), repeated)
    assert ("unpublished-barrier" in rules(_FIRST, f"@!%p3 {_INIT}", barrier, _LOADED, *rounds)) == wrong


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("unwaited-copy", (_COPY, _COMMIT, _WAIT, _ARRIVE), (_NEXT, _COMMIT, _WAIT, _ARRIVE)),
        (
            "refilled-stage",
            (_OUT, "cp.async.bulk.commit_group;", _READ_ALL, _ARRIVE),
            (_OTHER, "cp.async.bulk.commit_group;", _READ_ALL, _ARRIVE),
        ),
    ],
)
def test_a_warp_that_only_copies_waits_before_each_arrival(rule: str, first: tuple[str, ...], second: tuple[str, ...]) -> None:
    """Other warps read; a warp that begins the next copies before it arrives is not followed."""

    def found(*lines: str, roles: str = "setp.gt.u32 %p3, %r9, 31; @%p3 bra on;") -> bool:
        return rule in rules(_INIT, "bar.sync 0; mov.u32 %r9, %tid.x;", roles, *lines, "ret; on:" if roles else "")

    assert not found(*first, *second)
    assert found(*first, *second[:2], second[3])
    assert found(*first[:2], first[3], *second)
    assert not found(*first[:3], *second[:2], first[3], second[2], second[3])
    assert not found(*first, *second[:2], second[3], roles="")
