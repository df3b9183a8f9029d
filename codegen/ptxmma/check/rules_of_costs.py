"""The rules about code that is right but slow."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check.rule import Rule

_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;"
_FENCE, _COMMIT, _WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
_AGAIN = _WGMMA.replace("{%f0, %f1, %f2, %f3}", "{%f4, %f5, %f6, %f7}")
_COPY = "\n".join(f"mov.b32 %f{number + 4}, %f{number};" for number in range(4))
_STEPS = f"{_FENCE}\n{_WGMMA}\n{_COMMIT}"
_FP8 = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"
)
_NATIVE = f"{_FENCE}\n{_WGMMA.replace('k16.f32.f16.f16', 'k32.f32.e4m3.e4m3').replace(', 0, 0;', ';')}\n{_COMMIT}\n{_WAIT}"
_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];"


def _loop(*lines: str) -> str:
    return "\n".join([".reg .pred %p;", "setp.ne.b32 %p, %r1, 0;", *lines, "@%p bra loop;"])


RULES: Mapping[str, Rule] = {
    "copied-accumulator": Rule(
        "A wgmma.mma_async does not write a copy of an accumulator that another one may still write.",
        "The copy reads the accumulator, so that the assembler lets the instructions run one after the other. It says so with C7514.",
        "Use one accumulator for the whole group, or copy behind wgmma.wait_group.",
        f"{_STEPS}\n{_COPY}\n{_FENCE}\n{_AGAIN}\n{_COMMIT}\n{_WAIT}",
        f"{_STEPS}\n{_WAIT}\n{_COPY}\n{_FENCE}\n{_AGAIN}\n{_COMMIT}\n{_WAIT}",
    ),
    "emulated": Rule(
        "The target has the instruction.",
        "Some targets accept instructions that they do not have, and the assembler makes several of each. On sm_90, FP8 mma runs as "
        "f16, and 4-bit mma as 8-bit.",
        "Write the instruction that the message names, or convert to a type that the target has.",
        _FP8,
        _NATIVE,
    ),
    "fence-outside-loop": Rule(
        "A loop that issues wgmma.mma_async has its wgmma.fence inside.",
        "The registers of one round are those of the next. Some assemblers see an access between the two and add a fence themselves: "
        "ptxas 12.9 says so with C7519.",
        "Write wgmma.fence.sync.aligned before the first wgmma.mma_async of each round. It costs next to nothing.",
        _loop(_FENCE, "loop:", _WGMMA, _COMMIT, _WAIT),
        _loop("loop:", _FENCE, _WGMMA, _COMMIT, _WAIT),
    ),
    "release-in-loop": Rule(
        "An arrival in a loop of wgmma.mma_async does not release the whole cluster.",
        "Of .release.cluster, ptxas makes MEMBAR.ALL.GPU, which waits for every memory access of the thread. In a matrix product that may "
        "cost a quarter of the time. An arrival that says that wgmma has read its operands has no stores to order.",
        "Leave out .release.cluster: mbarrier.arrive.shared::cluster.b64.",
        _loop("loop:", _FENCE, _WGMMA, _COMMIT, _WAIT, _ARRIVE),
        _loop("loop:", _FENCE, _WGMMA, _COMMIT, _WAIT, _ARRIVE.replace(".release.cluster", "")),
    ),
}
