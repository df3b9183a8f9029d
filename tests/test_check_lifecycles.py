"""Tensor memory that is allocated, used and freed in another order than a path may have: what is wrong is found, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ptxmma.check import check

_HEAD = (
    ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry kernel(.param .u32 count)\n{\n.reg .pred %p<9>; .reg .b32 %r<20>; "
    ".reg .b64 %rd<4>; .shared .align 8 .b8 slot[8]; .shared .align 8 .b8 bar[8];\n"
)
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;"
_READ = "ld.shared.b32 %r0, [slot];"
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;"
_RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_LOAD, _WAIT_LOADS = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"
_STORE, _WAIT_STORES = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r3};", "tcgen05.wait::st.sync.aligned;"
_PRODUCT = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"
_COPY = "tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
_POLL = "poll: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra poll; tcgen05.fence::after_thread_sync;"
_COUNT = "ld.param.u32 %r8, [count]; setp.eq.u32 %p2, %r8, 0;"
_NEXT = "add.u32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, 4; @%p4 bra again;"
_WARP = "mov.u32 %r9, %tid.x; shr.u32 %r10, %r9, 5; setp.ne.u32 %p3, %r10, 0;"
_ODD = "and.b32 %r12, %r11, 1; setp.eq.u32 %p5, %r12, 0; @%p5 bra on;"
_USE = "st.global.b32 [%rd2], %r2;"
_FENCE = "fence.proxy.async.shared::cta;"


def columns(line: str, number: int) -> str:
    return line.replace(" 64;", f" {number};")


class Kernel(NamedTuple):
    """A kernel with one fault, and the same without it."""

    rule: str
    wrong: tuple[str, ...]
    right: tuple[str, ...]


_LOADED = (_LOAD, _WAIT_LOADS, _USE)
_ONE_WARP = (_WARP, "@%p3 bra on;", _ALLOC, "on: bar.sync 0;", _READ)
_COUNTED_WARP = (_COUNT, *_ONE_WARP)
_COMPUTED = (_PRODUCT, _COMMIT, _POLL)
_AGAIN = (_PRODUCT, _COMMIT, _POLL.replace("poll", "again"))
_AGAIN_ONE_WARP = "mov.u32 %r12, %tid.x; shr.u32 %r13, %r12, 5; setp.eq.u32 %p5, %r13, 0;"
_ISSUER = "@%p3 bra load; elect.sync %r14|%p6, -1; @!%p6 bra on1;"
_BY_OTHERS = ("bra on1; load:", _POLL, *_LOADED, "on1: bar.sync 0; setp.ne.u32 %p5, %r10, 1; @%p5 bra done;", _FREE, "done:")
_TELLING = ("bra on1; load: setp.eq.u32 %p7, %r10, 1; @%p7 bra on1;", _POLL, *_LOADED, "mbarrier.arrive.shared.b64 _, [bar+8];")
_TOLD_ITSELF = ("mbarrier.arrive.shared.b64 _, [bar];", _POLL)
#: Warp 2 goes another way, on which it changes the predicate under which warps 0 and 1 go round.
_ROLE = (
    "setp.ne.u32 %p7, %r10, 2; setp.ne.u32 %p8, %r8, 7; @%p7 bra on2;",
    "setp.ne.u32 %p8, %r8, %r8; bar.sync 2, 32; on2: @!%p7 bra done;",
)
_ROUNDS = ("@!%p8 bra out; again: bar.sync 1, 64;", *_LOADED, "add.u32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, %r8; @%p4 bra again; out:")
_NOTHING = "ld.shared.u32 %r12, [slot+4]; setp.eq.u32 %p5, %r12, 0;"
_WRITE = "st.shared.b32 [slot+4], %r0;"
#: One fault of order, or of columns, each.
KERNELS = {
    "never freed": Kernel("tensor-memory-kept", (_ALLOC, _READ, *_LOADED), (_ALLOC, _READ, *_LOADED, _FREE)),
    "an early return": Kernel(
        "tensor-memory-kept",
        (_COUNT, _ALLOC, _READ, "@%p2 ret;", *_LOADED, _FREE),
        (_COUNT, "@%p2 ret;", _ALLOC, _READ, *_LOADED, _FREE),
    ),
    "an early return of the warp that allocated": Kernel(
        "tensor-memory-kept",
        (*_COUNTED_WARP, "@%p2 bra done;", *_LOADED, "bar.sync 0; @%p3 bra done;", _FREE, "done:"),
        (*_COUNTED_WARP, "@%p2 bra free;", *_LOADED, "free: bar.sync 0; @%p3 bra done;", _FREE, "done:"),
    ),
    "freed on one of two branches": Kernel(
        "tensor-memory-kept",
        (_COUNT, _ALLOC, _READ, "@%p2 bra other;", *_LOADED, _FREE, "bra done;", "other:", _USE, "done:"),
        (_COUNT, _ALLOC, _READ, "@%p2 bra other;", *_LOADED, _FREE, "bra done;", "other:", _FREE, "done:"),
    ),
    "freed before the next allocation only": Kernel(
        "tensor-memory-kept",
        (_ALLOC, _READ, *_LOADED, _FREE, _ALLOC, _READ, *_LOADED),
        (_ALLOC, _READ, *_LOADED, _FREE, _ALLOC, _READ, *_LOADED, _FREE),
    ),
    "one of two allocations freed": Kernel(
        "tensor-memory-kept", (_ALLOC, _READ, _ALLOC, *_LOADED, _FREE), (_ALLOC, _READ, _ALLOC, *_LOADED, _FREE, _FREE)
    ),
    "loaded after it is freed": Kernel("tensor-memory-freed", (_ALLOC, _READ, _FREE, *_LOADED), (_ALLOC, _READ, *_LOADED, _FREE)),
    "loaded after it is freed, on a branch": Kernel(
        "tensor-memory-freed",
        (_COUNT, _ALLOC, _READ, "@%p2 bra on;", _FREE, "on:", *_LOADED, "@!%p2 bra done;", _FREE, "done:"),
        (_COUNT, _ALLOC, _READ, "@%p2 bra on;", _FREE, "bra done;", "on:", *_LOADED, _FREE, "done:"),
    ),
    "loaded after it is freed, in the next round": Kernel(
        "tensor-memory-freed",
        (
            _ALLOC,
            _READ,
            "mov.u32 %r11, 0;",
            "again:",
            *_LOADED,
            _FREE,
            "add.u32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, 4;",
            "@%p4 bra again;",
        ),
        (
            _ALLOC,
            _READ,
            "mov.u32 %r11, 0;",
            "again:",
            *_LOADED,
            "add.u32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, 4;",
            "@%p4 bra again;",
            _FREE,
        ),
    ),
    "stored after it is freed": Kernel(
        "tensor-memory-freed", (_ALLOC, _READ, _FREE, _STORE, _WAIT_STORES), (_ALLOC, _READ, _STORE, _WAIT_STORES, _FREE)
    ),
    "multiplied after it is freed": Kernel("tensor-memory-freed", (_ALLOC, _READ, _FREE, *_COMPUTED), (_ALLOC, _READ, *_COMPUTED, _FREE)),
    "copied after it is freed": Kernel(
        "tensor-memory-freed", (_ALLOC, _READ, _FREE, _COPY, _COMMIT, _POLL), (_ALLOC, _READ, _COPY, _COMMIT, _POLL, _FREE)
    ),
    "freed twice": Kernel("tensor-memory-freed", (_ALLOC, _READ, *_LOADED, _FREE, _FREE), (_ALLOC, _READ, *_LOADED, _FREE)),
    "freed before the load is waited for": Kernel(
        "freed-in-use", (_ALLOC, _READ, _LOAD, _FREE, _WAIT_LOADS, _USE), (_ALLOC, _READ, _LOAD, _WAIT_LOADS, _FREE, _USE)
    ),
    "freed before the store is waited for": Kernel(
        "freed-in-use", (_ALLOC, _READ, _STORE, _FREE, _WAIT_STORES), (_ALLOC, _READ, _STORE, _WAIT_STORES, _FREE)
    ),
    "freed before the commit": Kernel("freed-in-use", (_ALLOC, _READ, _PRODUCT, _FREE, _COMMIT, _POLL), (_ALLOC, _READ, *_COMPUTED, _FREE)),
    "freed before the product is waited for": Kernel(
        "freed-in-use", (_ALLOC, _READ, _PRODUCT, _COMMIT, _FREE, _POLL), (_ALLOC, _READ, *_COMPUTED, _FREE)
    ),
    "freed before other warps have loaded": Kernel(
        "freed-in-use",
        (*_ONE_WARP, *_LOADED, "@%p3 bra done;", _FREE, "done:"),
        (*_ONE_WARP, *_LOADED, "bar.sync 0; @%p3 bra done;", _FREE, "done:"),
    ),
    "freed before other warps have stored": Kernel(
        "freed-in-use",
        (*_ONE_WARP, "bar.sync 0;", _STORE, _WAIT_STORES, "bar.warp.sync -1; @%p3 bra done;", _FREE, "done:"),
        (*_ONE_WARP, _STORE, _WAIT_STORES, "bar.sync 0; @%p3 bra done;", _FREE, "done:"),
    ),
    "freed by a warp that has not met the others since": Kernel(
        "freed-in-use",
        (*_ONE_WARP, _ISSUER, _PRODUCT, _COMMIT, *_TELLING, "on1: setp.ne.u32 %p5, %r10, 1; @%p5 bra done;", _FREE, "done: bar.sync 0;"),
        (*_ONE_WARP, _ISSUER, _PRODUCT, _COMMIT, *_TELLING, "on1: bar.sync 0; setp.ne.u32 %p5, %r10, 1; @%p5 bra done;", _FREE, "done:"),
    ),
    "freed by one of the warps that load": Kernel(
        "freed-in-use",
        (*_ONE_WARP, *_LOADED, "@%p3 bra done;", _FREE, "done: bar.sync 0;"),
        (*_ONE_WARP, *_LOADED, "bar.arrive 1, 64; @%p3 bra done; bar.sync 1, 64;", _FREE, "done: bar.sync 0;"),
    ),
    "freed by one of the warps that load in rounds": Kernel(
        "freed-in-use",
        (*_ONE_WARP, "mov.u32 %r11, 0; again: bar.sync 0;", *_LOADED, _NEXT, "@%p3 bra done;", _FREE, "done: bar.sync 0;"),
        (*_ONE_WARP, "mov.u32 %r11, 0; again:", *_LOADED, "bar.sync 0;", _NEXT, "@%p3 bra done;", _FREE, "done: bar.sync 0;"),
    ),
    "committed before the product, in another warp": Kernel(
        "untracked-product",
        (*_ONE_WARP, _ISSUER, _COMMIT, _PRODUCT, *_BY_OTHERS),
        (*_ONE_WARP, _ISSUER, _PRODUCT, _COMMIT, *_BY_OTHERS),
    ),
    "freed after a wait for its own warp": Kernel(
        "freed-in-use",
        (*_ONE_WARP, *_LOADED, "@%p3 bra done;", *_TOLD_ITSELF, _FREE, "done: bar.sync 0;"),
        (*_ONE_WARP, *_LOADED, "mbarrier.arrive.shared.b64 _, [bar];", "@%p3 bra done;", *_TOLD_ITSELF, _FREE, "done: bar.sync 0;"),
    ),
    "freed by one of the warps that load what they do not wait for": Kernel(
        "freed-in-use",
        (*_ONE_WARP, _LOAD, _USE, "@%p3 bra done;", _FREE, "done: bar.sync 0;"),
        (*_ONE_WARP, _LOAD, _USE, "bar.sync 0; @%p3 bra done;", _FREE, "done: bar.sync 0;"),
    ),
    "freed by one of the warps that load, after a register that another role changes": Kernel(
        "freed-in-use",
        (*_COUNTED_WARP, *_ROLE, *_ROUNDS, "@%p3 bra done;", _FREE, "done: bar.sync 0;"),
        (*_COUNTED_WARP, *_ROLE, *_ROUNDS, "bar.sync 1, 64; @%p3 bra done;", _FREE, "done: bar.sync 0;"),
    ),
    "a commit before all products": Kernel(
        "untracked-product",
        (*_ONE_WARP, _ISSUER, _COMMIT, _PRODUCT, _COMMIT, *_BY_OTHERS),
        (*_ONE_WARP, _ISSUER, _PRODUCT, _COMMIT, _COMMIT, *_BY_OTHERS),
    ),
    "loaded before the commit": Kernel(
        "untracked-product", (_ALLOC, _READ, _PRODUCT, *_LOADED, _COMMIT, _POLL, _FREE), (_ALLOC, _READ, *_COMPUTED, *_LOADED, _FREE)
    ),
    "loaded before the product is waited for": Kernel(
        "untracked-product", (_ALLOC, _READ, _PRODUCT, _COMMIT, *_LOADED, _POLL, _FREE), (_ALLOC, _READ, *_COMPUTED, *_LOADED, _FREE)
    ),
    "products of a loop that nothing tracks": Kernel(
        "untracked-product",
        (_ALLOC, _READ, *_COMPUTED, "again:", _ODD, _PRODUCT, "on:", _NEXT, *_LOADED, _FREE),
        (_ALLOC, _READ, *_COMPUTED, "again:", _ODD, _PRODUCT, _COMMIT, _POLL.replace("poll", "poll2"), "on:", _NEXT, *_LOADED, _FREE),
    ),
    "a wait for the product on one path": Kernel(
        "untracked-product",
        (_COUNT, _ALLOC, _READ, _PRODUCT, _COMMIT, "@%p2 bra on;", _POLL, "on:", *_LOADED, "bar.sync 0;", _FREE),
        (_COUNT, _ALLOC, _READ, _PRODUCT, _COMMIT, "@%p2 bra on;", _POLL, *_LOADED, "on: bar.sync 0;", _FREE),
    ),
    "multiplied before the load is waited for": Kernel(
        "unwaited-tensor-load",
        (_ALLOC, _READ, *_COMPUTED, _LOAD, *_AGAIN, _WAIT_LOADS, _USE, _FREE),
        (_ALLOC, _READ, *_COMPUTED, _LOAD, _WAIT_LOADS, *_AGAIN, _USE, _FREE),
    ),
    "stored before the load is waited for": Kernel(
        "unwaited-tensor-load",
        (_ALLOC, _READ, _LOAD, _STORE, _WAIT_LOADS, _USE, _WAIT_STORES, _FREE),
        (_ALLOC, _READ, _LOAD, _WAIT_LOADS, _STORE, _USE, _WAIT_STORES, _FREE),
    ),
    "a product without a fence after the stores, on one path": Kernel(
        "missing-proxy-fence",
        (_COUNT, _ALLOC, _READ, _WRITE, "@%p2 bra on;", _FENCE, "on: bar.sync 0;", *_COMPUTED, _FREE),
        (_COUNT, _ALLOC, _READ, "@%p2 bra on;", _WRITE, _FENCE, "on: bar.sync 0;", *_COMPUTED, _FREE),
    ),
    "a copy whose fence is before the stores": Kernel(
        "missing-proxy-fence",
        (_ALLOC, _READ, _FENCE, _WRITE, "bar.sync 0;", _COPY, _COMMIT, _POLL, _FREE),
        (_ALLOC, _READ, _WRITE, _FENCE, "bar.sync 0;", _COPY, _COMMIT, _POLL, _FREE),
    ),
    "allocated after the permit": Kernel(
        "relinquished-permit", (_RELINQUISH, _ALLOC, _READ, *_LOADED, _FREE), (_ALLOC, _RELINQUISH, _READ, *_LOADED, _FREE)
    ),
    "allocated after the permit, on a branch": Kernel(
        "relinquished-permit",
        (_COUNT, "@%p2 bra on;", _RELINQUISH, "on:", _ALLOC, _READ, *_LOADED, _FREE),
        (_COUNT, "@%p2 bra on;", _ALLOC, _RELINQUISH, _READ, *_LOADED, _FREE, "on:"),
    ),
    "more columns than there are": Kernel(
        "tensor-memory-exhausted",
        (columns(_ALLOC, 512), _READ, columns(_ALLOC, 256), *_LOADED, columns(_FREE, 256), columns(_FREE, 512)),
        (columns(_ALLOC, 256), _READ, columns(_ALLOC, 256), *_LOADED, columns(_FREE, 256), columns(_FREE, 256)),
    ),
    "fewer columns freed": Kernel("tensor-memory-columns", (_ALLOC, _READ, *_LOADED, columns(_FREE, 32)), (_ALLOC, _READ, *_LOADED, _FREE)),
    "columns beyond the allocation": Kernel(
        "tensor-memory-bounds",
        (_ALLOC, _READ, _LOAD.replace("[%r0]", "[%r0+64]"), _WAIT_LOADS, _USE, _FREE),
        (_ALLOC, _READ, _LOAD.replace("[%r0]", "[%r0+63]"), _WAIT_LOADS, _USE, _FREE),
    ),
}


def rules(*lines: str, kind: str = ".visible .entry") -> list[str]:
    text = _HEAD.replace(".visible .entry", kind) + "\n".join((*lines, "ret;", "}", ""))
    return [each.rule for each in check(text) if each.severity != "note"]


@pytest.mark.parametrize("name", KERNELS)
def test_each_fault_is_found(name: str) -> None:
    kernel = KERNELS[name]
    assert rules(*kernel.wrong) == [kernel.rule]
    assert rules(*kernel.right) == []


@pytest.mark.parametrize(
    "lines",
    [
        # The warp that allocates frees: the same comparison, once more, or another warp.
        (*_ONE_WARP, *_LOADED, "bar.sync 0; @%p3 bra done;", _FREE, "done:"),
        (*_ONE_WARP, *_LOADED, "bar.sync 0;", _AGAIN_ONE_WARP, "@!%p5 bra done;", _FREE, "done:"),
        (*_ONE_WARP, *_LOADED, "bar.sync 0; setp.ne.u32 %p5, %r10, 2; @%p5 bra done;", _FREE, "done:"),
        (*_ONE_WARP, "setp.ne.u32 %p5, %r10, 1; @%p5 bra part;", *_LOADED, "part: bar.sync 0; @%p3 bra done;", _FREE, "done:"),
        # An arrival tells it, or the thread that has loaded frees.
        (*_ONE_WARP, *_LOADED, "@%p3 bra told;", _POLL, _FREE, "ret; told: mbarrier.arrive.shared.b64 _, [bar];"),
        (*_ONE_WARP, "@%p3 bra done;", *_LOADED, _FREE, "done:"),
        # What threads return early is not known to be the warp that frees.
        (_ALLOC, _READ, "ld.shared.u32 %r12, [slot+4]; setp.eq.u32 %p5, %r12, 0; @%p5 ret;", *_LOADED, _FREE),
        # One warp frees what another one allocates in the next round.
        (
            *(_WARP, "mov.u32 %r11, 0;", "again: @%p3 bra on;", _ALLOC, "on: bar.sync 0;", _READ, *_LOADED),
            *("bar.sync 0; setp.ne.u32 %p5, %r10, 2; @%p5 bra kept;", _FREE, "kept: bar.sync 0;"),
            _NEXT,
        ),
        # Another value of memory than the one that the other warps ask may say that there is nothing to do.
        (
            *_ONE_WARP,
            _NOTHING,
            "@%p3 bra load; @%p5 bra free; bar.sync 0; bra free; load: @%p5 bra done;",
            *_LOADED,
            "bar.sync 0; bra done;",
            "free:",
            _FREE,
            "done:",
        ),
        # Predicates instead of branches.
        (_WARP, f"@!%p3 {_ALLOC}", "bar.sync 0;", _READ, *_LOADED, "bar.sync 0;", f"@!%p3 {_FREE}"),
        # The elected thread issues and commits.
        (_ALLOC, _READ, "elect.sync %r14|%p6, 0xffffffff; @!%p6 bra on;", _PRODUCT, _COMMIT, "on:", _POLL, *_LOADED, _FREE),
        (_ALLOC, _READ, f"elect.sync %r14|%p6, -1; @%p6 {_PRODUCT} elect.sync %r15|%p7, -1; @%p7 {_COMMIT}", _POLL, *_LOADED, _FREE),
        # Another thread waits.
        (
            *_ONE_WARP,
            "@%p3 bra wait;",
            f"elect.sync %r14|%p6, -1; @%p6 {_PRODUCT} @%p6 {_COMMIT}",
            "bra on1;",
            "wait:",
            _POLL,
            *_LOADED,
            "on1: bar.sync 0; @%p3 bra done;",
            _FREE,
            "done:",
        ),
        # Reading the registers waits for the load.
        (_ALLOC, _READ, _LOAD, _WAIT_LOADS, _USE, _LOAD, _USE, _FREE),
        # Products and loads of other columns; the loaded registers are read before the next product.
        (_ALLOC, _READ, "add.u32 %r14, %r0, 32;", _PRODUCT, *(line.replace("[%r0]", "[%r14]") for line in _LOADED), _COMMIT, _POLL, _FREE),
        (_ALLOC, _READ, *_COMPUTED, _LOAD, _USE, *_AGAIN, _WAIT_LOADS, _FREE),
        (_ALLOC, _READ, _PRODUCT, "add.u32 %r0, %r0, 32;", *_LOADED, _COMMIT, _POLL, _FREE),
        # The last round commits, and the counter that says so ends the loop.
        (
            *(_ALLOC, _READ, "mov.u32 %r11, 14;", "again:", _PRODUCT, "setp.ne.s32 %p5, %r11, 0; @%p5 bra on;", _COMMIT),
            *("on: add.s32 %r11, %r11, -2; setp.ne.s32 %p4, %r11, -2; @%p4 bra again;", _POLL, *_LOADED, _FREE),
        ),
        # A kernel that traps need not free.
        (_COUNT, _ALLOC, _READ, "@%p2 bra bad;", *_LOADED, _FREE, "ret; bad: trap;"),
    ],
)
def test_what_is_right_is_passed(lines: tuple[str, ...]) -> None:
    assert rules(*lines) == []


_BROADCAST = "mov.u32 %r9, %tid.x; shr.u32 %r12, %r9, 5; shfl.sync.idx.b32 %r10, %r12, 0, 31, -1; setp.ne.b32 %p3, %r10, 0;"
_BY_INDEX = "mov.u32 %r9, %tid.x; setp.gt.u32 %p3, %r9, 31;"
_LATER = "bar.sync 0; setp.ge.u32 %p5, %r9, 32; @%p5 bra done;"


@pytest.mark.parametrize("warp", [_WARP, _BROADCAST, _BY_INDEX])
def test_one_warp_is_followed_however_it_is_chosen(warp: str) -> None:
    """Comparisons of several values that depend on the thread alone hold together if they do so in one thread."""
    one_warp = (warp, *_ONE_WARP[1:])
    assert rules(*one_warp, *_LOADED, _LATER, _FREE, "done:") == []
    assert rules(*one_warp, *_LOADED, _LATER, _FREE, _FREE, "done:") == ["tensor-memory-freed"]
    assert rules(*one_warp, *_LOADED, _LATER, _FREE, *_LOADED, "done:") == ["tensor-memory-freed"]
    assert rules(*one_warp, *_LOADED, _LATER, _STORE, _FREE, "done:") == ["freed-in-use"]
    assert rules(warp, "@%p3 bra on;", _ALLOC, "ret; on: bar.sync 0, 64;", _READ, *_LOADED, _LATER, _FREE, "done:") == [
        "tensor-memory-kept"
    ]
    large, freed = columns(_ALLOC, 512), columns(_FREE, 512)
    held = (warp, "@%p3 bra on;", large, large, "on: bar.sync 0;", _READ, *_LOADED)
    assert rules(*held, _LATER, freed, freed, "done:") == ["tensor-memory-exhausted"]


def test_threads_that_a_block_does_not_have_do_not_count() -> None:
    waited = f"mov.u32 %r12, %tid.x; setp.lt.u32 %p5, %r12, 128; @%p5 {_WAIT_LOADS}"
    whole = (_ALLOC, _READ, _LOAD, waited, _FREE)
    assert rules(*whole) == ["freed-in-use"]
    text = _HEAD.replace("\n{", "\n.reqntid 128, 1, 1\n{") + "\n".join((*whole, "ret;", "}", ""))
    assert not check(text).findings


def test_what_is_wrong_on_every_path_needs_no_condition() -> None:
    """Two values from memory may depend on each other; a load after the free is wrong whatever they are."""
    unknown = "ld.shared.u32 %r12, [slot+4]; setp.eq.u32 %p5, %r12, 0; ld.shared.u32 %r13, [slot]; setp.eq.u32 %p6, %r13, 7;"
    around = ("@%p5 bra one;", *_LOADED, "one: @%p6 bra two;", *_LOADED, "two:")
    assert rules(_ALLOC, _READ, unknown, *around, _FREE) == []
    assert rules(_ALLOC, _READ, unknown, "@%p5 bra one;", *_LOADED, "one:", _FREE, "@%p6 bra two;", _USE, "two:", *_LOADED) == [
        "tensor-memory-freed"
    ]


def test_dimensions_are_values_of_their_own() -> None:
    """The block returns early, whichever warp allocates: %ctaid.x says nothing of %tid.x."""
    early = "mov.u32 %r12, %ctaid.x; setp.gt.u32 %p5, %r12, 7; @%p5 ret;"
    assert rules(*_ONE_WARP, early, *_LOADED, "bar.sync 0; @%p3 bra done;", _FREE, "done:") == ["tensor-memory-kept"]


def test_the_index_of_a_loop_is_what_it_begins_with_before_the_loop() -> None:
    """Compilers keep the first tile in the register that counts the tiles."""
    first, early = "mov.u32 %r12, %ctaid.x;", "setp.gt.u32 %p5, %r12, 7; @%p5 ret;"
    tiles = "again: add.u32 %r12, %r12, 1; setp.lt.u32 %p4, %r12, 8; @%p4 bra again;"
    rest = (*_LOADED, tiles, "bar.sync 0; @%p3 bra done;", _FREE, "done:")
    assert rules(*_ONE_WARP, first, early, *rest) == ["tensor-memory-kept"]
    assert rules(*_ONE_WARP, first, "other:", early, *rest) == []  # a branch may come with another tile
    assert rules(*_ONE_WARP, "@%p3", first, early, *rest) == []


def test_only_whole_kernels_are_followed() -> None:
    wrong = KERNELS["loaded after it is freed"].wrong
    assert rules(*wrong, "call.uni other;") == []
    assert rules(*wrong, kind=".visible .func") == []
    assert rules(*wrong, "bra nowhere;") == []


def test_a_finding_names_the_path() -> None:
    text = _HEAD + "\n".join((*KERNELS["an early return"].wrong, "ret;", "}", ""))
    (finding,) = check(text)
    assert (finding.line, finding.column, finding.source[finding.caret :]) == (10, 1, "@%p2 ret;")
    said, _, where = finding.message.partition(": ")
    assert said == "the kernel ends with columns that it has allocated and not freed"
    mend = "write tcgen05.dealloc on this path, too (PTX ISA 9.7.16.7.1 [9.4: 9.7.18.7.1])"
    assert where == f"tcgen05.alloc of line 8, if %p2 is true in line 10; {mend}"
