"""Pieces of PTX that the examples of rules share."""

from __future__ import annotations

#: The module around the examples of rules.
_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.global .align 16 .b8 weights[512];

.visible .entry kernel()
{
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[512];
"""
#: The head and the variables of a kernel that uses tensor memory.
_TENSOR_KERNEL = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel()
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    .shared .align 8 .b8 slot[8];
    .shared .align 8 .b8 bar[8];
"""

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"
SPARSE = (
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 0;"
)
ORDERED_SPARSE = SPARSE.replace("mma.sp.", "mma.sp::ordered_metadata.")
LOAD = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile];"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;"
FENCE, COMMIT, WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
ISSUED = f"{FENCE}\n{WGMMA}\n{COMMIT}"
TENSOR_ALLOCATION = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"
TENSOR_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;"
TENSOR_PRODUCT = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"
TENSOR_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
_RING_MADE = ".reg .pred %p;\nmbarrier.init.shared.b64 [tile], 1;\nmbarrier.init.shared.b64 [tile+8], 1;\nbar.sync 0;"
_RING_FILLED = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [tile], 128;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+16], [%rd1], 128, [tile];"
)
_RING_READ = "mbarrier.arrive.shared.b64 _, [tile+8];"


def tensor_kernel(*lines: str) -> str:
    """An example as a module for a chip that has tensor memory."""
    return _TENSOR_KERNEL + "".join(f"    {row}\n" for line in (*lines, "ret;") for row in line.split("\n")) + "}\n"


def cluster_kernel(*lines: str) -> str:
    """An example as a module whose kernel runs in clusters of two thread blocks."""
    frame = _FRAME.replace("kernel()", "kernel()\n    .reqnctapercluster 2, 1, 1")
    frame = frame.replace("tile[512];", "tile[512];\n    .shared .align 8 .b8 bar[8];")
    return frame + "".join(f"    {line}\n" for line in (*lines, "ret;")) + "}\n"


def ring(free: int, full: int = 0) -> str:
    """A copy, and a read of what it brings, with the parities of the waits for the readers of the stage and for its bytes."""
    return f"{_RING_MADE}\n{_poll('free', 'tile+8', free)}\n{_RING_FILLED}\n{_poll('full', 'tile', full)}\n{_RING_READ}"


def arrivals(count: int) -> str:
    """A kernel of 32 threads, all of which arrive on an mbarrier that counts a number of arrivals."""
    made = f".reg .pred %p;\nmbarrier.init.shared.b64 [tile], {count};\nbar.sync 0;"
    lines = (made, "mbarrier.arrive.shared.b64 _, [tile];", _poll("full", "tile", 0), "ret;")
    return _FRAME.replace("kernel()", "kernel()\n    .reqntid 32, 1, 1") + "".join(f"    {line}\n" for line in lines) + "}\n"


def rounds(change: int) -> str:
    """A loop that copies and waits for the bytes, and adds a number to the parity."""
    return _round(f"{_poll('full', 'tile', '%parity')}\nbar.sync 0;\nxor.b32 %parity, %parity, {change};")


def refills(order: str) -> str:
    """A loop that copies and waits for the bytes, with an instruction at the end of each round."""
    return _round(f"{_poll('full', 'tile', '%parity')}\nxor.b32 %parity, %parity, 1;\n{order}")


def _round(rest: str) -> str:
    first = ".reg .b32 %n, %parity, %i;\n.reg .pred %q;\nmov.u32 %n, %tid.x;\nsetp.eq.u32 %q, %n, 0;"
    filled = "\n".join(f"@%q {line}" for line in _RING_FILLED.split("\n"))
    counted = "add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 8;\n@%p bra again;"
    begun = ".reg .b32 %parity, %i;\nmov.u32 %parity, 0;\nmov.u32 %i, 0;"
    return f"{_RING_MADE}\n{first}\n{begun}\nagain:\n{filled}\n{rest}\n{counted}"


def _poll(label: str, place: str, parity: int | str) -> str:
    return f"{label}:\nmbarrier.try_wait.parity.shared.b64 %p, [{place}], {parity};\n@!%p bra {label};"


def module(example: str) -> str:
    """An example as a module that can be checked."""
    if example.startswith((".version", "__device__")):
        return example
    return _FRAME + "".join(f"    {line}\n" for line in example.splitlines()) + "    ret;\n}\n"
