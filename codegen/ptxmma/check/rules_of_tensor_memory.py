"""The rules about kernels that use tensor memory."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check.rule import Rule, tensor_kernel

_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"
_FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;"
_MMA = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
_POLL = "poll:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra poll;"
_AFTER = "tcgen05.fence::after_thread_sync;"
_STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {%r3};"
_LOAD, _WAIT = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r0];", "tcgen05.wait::ld.sync.aligned;"

RULES: Mapping[str, Rule] = {
    "instruction-descriptor": Rule(
        "An instruction descriptor is one of its opcode: it has a legal M and N, types of its kind, and no bits that must be 0.",
        "Assemblers do not see what the descriptor holds. With another, behaviour is undefined.",
        "Let ptxmma.descriptors.of_product make it; ptxmma descriptor instruction f16 0x8400490 shows the fields of one.",
        tensor_kernel("mov.b32 %r1, 0x8420490;", _MMA, _COMMIT),
        tensor_kernel("mov.b32 %r1, 0x8400490;", _MMA, _COMMIT),
    ),
    "missing-thread-fence": Rule(
        "A kernel that waits for an mbarrier of tcgen05.commit fences before it loads the result.",
        "tcgen05.ld is asynchronous: without the fence nothing orders it after the wait (PTX ISA 9.7.16.6.4.2). Some libraries leave the "
        "fence out, and chips may forgive it; the manual does not.",
        "Write tcgen05.fence::after_thread_sync behind the wait.",
        tensor_kernel(_MMA, _COMMIT, _POLL, _LOAD, _WAIT),
        tensor_kernel(_MMA, _COMMIT, _POLL, _AFTER, _LOAD, _WAIT),
    ),
    "mixed-cta-groups": Rule(
        "All tcgen05 instructions of a kernel have the same .cta_group.",
        "From CUDA 13.0 on, ptxas refuses such a kernel, whatever its .version; 12.8 and 12.9 accept it, and its behaviour is undefined: "
        "tcgen05.commit.cta_group::1 does not track operations of .cta_group::2, so that its mbarrier says nothing of them. The first "
        "instruction that differs is reported.",
        "Write the .cta_group of the kernel's tcgen05.alloc everywhere.",
        tensor_kernel(_MMA, _COMMIT.replace("cta_group::1", "cta_group::2")),
        tensor_kernel(_MMA, _COMMIT),
    ),
    "tensor-memory-columns": Rule(
        "A kernel frees as many columns of tensor memory as it has allocated, and their number is a legal one in a register, too.",
        "Assemblers look at constants alone, and at each by itself. An allocation of which a part is freed is not one that the manual has.",
        "Write the same number into tcgen05.alloc and tcgen05.dealloc: a power of two from 32 to 512.",
        tensor_kernel(_ALLOC.replace(" 32;", " 64;"), "ld.shared.b32 %r0, [slot];", _FREE),
        tensor_kernel(_ALLOC, "ld.shared.b32 %r0, [slot];", _FREE),
    ),
    "tensor-memory-kept": Rule(
        "A kernel frees the tensor memory that it has allocated.",
        "Columns that a kernel keeps are lost to the kernels that run after it on the multiprocessor. Behaviour is undefined.",
        "Write tcgen05.dealloc in the warp that allocated, after the last access and before the kernel exits.",
        tensor_kernel(_ALLOC),
        tensor_kernel(_ALLOC, "ld.shared.b32 %r0, [slot];", _FREE),
    ),
    "untracked-product": Rule(
        "A kernel that loads the result of a tcgen05 product commits the product and waits for the mbarrier.",
        "tcgen05.mma is asynchronous, and only an mbarrier of tcgen05.commit says that it is complete. A load that does not wait may read "
        "what was in tensor memory before.",
        "Write tcgen05.commit behind the products, and wait for the phase of its mbarrier before the first load.",
        tensor_kernel(_MMA, _LOAD, _WAIT),
        tensor_kernel(_MMA, _COMMIT, _POLL, _AFTER, _LOAD, _WAIT),
    ),
    "unwaited-tensor-load": Rule(
        "A kernel waits for its loads from tensor memory.",
        "tcgen05.ld is asynchronous. An instruction that reads a loaded register waits for that register, and orders nothing else (PTX ISA "
        "9.7.16.6.4.5). A tcgen05 product, copy, shift or store behind the load may change the cells before the load has read them. If one "
        "follows in the text of the kernel, the finding is a warning, otherwise a note. A store that is computed from all loaded registers "
        "cannot come too early. st.global and other uses of the registers, and tcgen05.dealloc, make no difference.",
        "Write tcgen05.wait::ld.sync.aligned behind the last load, before the registers are used.",
        tensor_kernel(_LOAD, _STORE),
        tensor_kernel(_LOAD, _WAIT, _STORE),
    ),
}
