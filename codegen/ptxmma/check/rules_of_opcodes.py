"""The rules about opcodes, and about the order of instructions."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check.rule import Rule

_MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"
)
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;"
_SPARSE = (
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 0;"
)
_ISSUED = f"wgmma.fence.sync.aligned;\n{_WGMMA}\nwgmma.commit_group.sync.aligned;"
_WAIT = "wgmma.wait_group.sync.aligned 0;"
_OLD = ".version 8.4\n.target sm_90a\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n"
_DOUBLE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd3}, {%fd0, %fd1};"
_DEBUG = (
    ".version 8.4\n.target sm_90a, debug\n.visible .entry kernel()\n{\n    .reg .f32 %f<4>;\n    .reg .b64 %rd<4>;\n"
    + "".join(f"    {line}\n" for line in f"{_ISSUED}\n{_WAIT}".splitlines())
    + "    ret;\n}\n"
)

RULES: Mapping[str, Rule] = {
    "debug-build": Rule(
        "A module whose fences and waits are to be checked is compiled with optimisation.",
        "A compiler for debugging copies registers to memory and back between any two instructions. The checker cannot tell these copies "
        "from the author's, and does not follow registers through such a module.",
        "Check the PTX of a build without -G.",
        _DEBUG,
        _DEBUG.replace(", debug", ""),
    ),
    "missing-fence": Rule(
        "A wgmma.fence must come between the last write of a register and the wgmma.mma_async that uses it.",
        "Without it, the instruction may read the register before it is written. ptxas mends some cases and says so: C7519, C7520.",
        "Add wgmma.fence.sync.aligned before the first wgmma.mma_async, and after code that writes its registers.",
        f"{_WGMMA}\nwgmma.commit_group.sync.aligned;\n{_WAIT}",
        f"{_ISSUED}\n{_WAIT}",
    ),
    "missing-proxy-fence": Rule(
        "A fence.proxy.async is between ordinary stores to shared memory and what reads it through the async proxy.",
        "Wgmma and bulk copies read shared memory through another proxy than st, stmatrix and cp.async write it. Without the fence, they "
        "may read what was there before. A barrier does not order the two.",
        "Execute fence.proxy.async.shared::cta in every thread that stored, before the barrier that the reader waits for.",
        f"st.shared.b32 [tile], %r0;\nbar.sync 0;\n{_ISSUED}\n{_WAIT}",
        f"st.shared.b32 [tile], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{_ISSUED}\n{_WAIT}",
    ),
    "missing-wait": Rule(
        "A wgmma.wait_group must come between a wgmma.mma_async and the first use of its accumulator.",
        "Until then the instruction may write the accumulator and read the registers of A. ptxas mends some cases: C7514, C7517, C7518.",
        "Add wgmma.commit_group behind the instructions and wgmma.wait_group before their result is used.",
        f"{_ISSUED}\nst.global.f32 [%rd0], %f0;",
        f"{_ISSUED}\n{_WAIT}\nst.global.f32 [%rd0], %f0;",
    ),
    "spelling": Rule(
        "An opcode is spelt as the manual spells it: every modifier, in the manual's order.",
        "Assemblers accept other spellings, but a reader who searches for the instruction does not find them.",
        "Write the canonical spelling, which the message shows.",
        f".reg .f64 %fd<4>;\n{_DOUBLE}",
        f".reg .f64 %fd<4>;\n{_DOUBLE.replace('.f64 {', '.f64.rn {')}",
    ),
    "syntax": Rule(
        "An instruction has at most one predicate, commas between its operands, braces around lists, and a semicolon at its end.",
        "Assemblers stop at such a slip, often with a message about the next line.",
        "Write what the message says is missing.",
        _MMA.replace("%r3},", "%r3}"),
        _MMA,
    ),
    "target": Rule(
        "The target of the module supports the instruction.",
        "The assembler refuses the module. Targets with a letter, such as sm_90a, are not included in later ones.",
        "Use the instruction that the message proposes, or change .target.",
        ".version 8.0\n.target sm_90\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n",
        ".version 8.0\n.target sm_90a\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n",
    ),
    "too-many": Rule(
        "The checker lists at most 65,536 findings of one function.",
        "A function with more has one cause that repeats.",
        "Repair what is listed first.",
    ),
    "undocumented": Rule(
        "The manual has the form of the instruction that is written.",
        "Assemblers accept some forms that it does not have; a later release may refuse them, or read them otherwise.",
        "Write the form of the manual that the message proposes.",
        "wgmma.fence.sync.aligned.b8x16;",
        "wgmma.fence.sync.aligned;",
    ),
    "unknown-instruction": Rule(
        "The opcode with its modifiers is an instruction.",
        "The assembler refuses it.",
        "Write the instruction that the message names as the closest, or look it up with ptxmma list.",
        _MMA.replace("m16n8k16", "m16n8k32"),
        _MMA,
    ),
    "unordered-metadata": Rule(
        "mma.sp has ordered metadata.",
        "Without it, the instruction may be much slower on recent targets.",
        "Write mma.sp::ordered_metadata if the indices of each group ascend; ptxmma.sparse.compress makes such metadata.",
        _SPARSE,
        _SPARSE.replace("mma.sp.", "mma.sp::ordered_metadata."),
    ),
    "version": Rule(
        "The PTX ISA version of the module exists and has the instruction for the target.",
        "The assembler refuses the module.",
        "Raise .version to the one in the message.",
        _OLD.replace("8.4", "7.8"),
        _OLD,
    ),
}
