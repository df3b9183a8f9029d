"""The rules about operands."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check.rule import Rule

_MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};"
)
_SPARSE = (
    "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
    "    {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 0;"
)
_FP8 = (
    ".version 8.6\n.target sm_100a\n.visible .entry kernel()\n{\n    .reg .b32 %r<6>;\n    .reg .f32 %f<4>;\n"
    "    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32\n"
    "        {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n    ret;\n}\n"
)
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;"
_LOAD = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile];"
_STRIDED = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16\n    {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [rows], 16;"

RULES: Mapping[str, Rule] = {
    "alignment": Rule(
        "The address of a matrix, and of each of its rows or columns, is aligned as the manual requires.",
        "With another address, behaviour is undefined; the hardware may trap.",
        "Declare the variable with the .align that the message names, and keep offsets and strides multiples of it.",
        f".shared .align 8 .b8 narrow[512];\n{_LOAD.replace('tile', 'narrow')}",
        f".shared .align 16 .b8 narrow[512];\n{_LOAD.replace('tile', 'narrow')}",
    ),
    "constant": Rule(
        "A register is a register, and not a constant in its place.",
        "The manual does not have the constant, and not all assemblers generate code for it.",
        "Move the constant into a register first.",
        f"wgmma.fence.sync.aligned;\n{_WGMMA.replace('%rd1', '0x4000004000010040')}",
        f"mov.b64 %rd1, 0x4000004000010040;\nwgmma.fence.sync.aligned;\n{_WGMMA}",
    ),
    "descriptor": Rule(
        "The strides, the base offset and the swizzle of a matrix descriptor agree with each other and with the matrix, and the fixed bits "
        "of descriptors and of column masks are right.",
        "The instruction accepts all 64-bit numbers. With a stride in bytes instead of units of 16, or one of another swizzle, it reads "
        "other elements than were meant.",
        "Let ptxmma descriptor encode make the descriptor from the type, the swizzle and the size of the matrix.",
        f"mov.b64 %rd1, 0x4000040000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{_WGMMA}",
        f"mov.b64 %rd1, 0x4000004000010040;\nmov.b64 %rd2, %rd1;\nwgmma.fence.sync.aligned;\n{_WGMMA}",
    ),
    "immediate": Rule(
        "A constant is in the range that the operand allows.",
        "The assembler refuses it.",
        "Write one of the values that the message lists.",
        _SPARSE.replace("%r4, 0;", "%r4, 4;"),
        _SPARSE,
    ),
    "list": Rule(
        "A list is registers of one type in braces, and a single operand has no braces.",
        "Some assemblers accept other lists for some targets; what they make of them changes from release to release.",
        "Declare the registers of a list with one type.",
        _MMA.replace("%r3}", "%f7}"),
        _MMA,
    ),
    "metadata": Rule(
        "Every field of sparsity metadata is one of the instruction's legal values.",
        "With other fields, behaviour is undefined.",
        "Write one of the fields that the message lists; ptxmma.sparse.compress computes them.",
        f"mov.b32 %r4, 0;\n{_SPARSE}",
        f"mov.b32 %r4, 0x44444444;\n{_SPARSE}",
    ),
    "operand-count": Rule(
        "The instruction has as many operands as its syntax.",
        "The assembler refuses it.",
        "Compare the operands with the syntax that ptxmma show prints.",
        _MMA.replace(", {%r4, %r5}", ""),
        _MMA,
    ),
    "operand-kind": Rule(
        "An operand is a register, a constant, a list or an address, as its syntax says.",
        "The assembler refuses anything else.",
        "Write the kind of operand that the message names.",
        "wgmma.wait_group.sync.aligned %r0;",
        "wgmma.wait_group.sync.aligned 0;",
    ),
    "overwritten": Rule(
        "C has the registers of D at the same places, or none of them, where assemblers overwrite registers of C.",
        "On targets from sm_90 to sm_110, ptxas makes several instructions of an FP8 mma. They write the registers of D in order, and read "
        "those of C one by one: a register of D that is a later one of C has its new value by then. All releases from 12.4 to 13.5 do so.",
        "Use the registers of D for C in the same order, or others.",
        _FP8.replace("{%f0, %f1, %f2, %f3};", "{%f1, %f0, %f3, %f2};"),
        _FP8,
    ),
    "predicate": Rule(
        "The predicate of an instruction is a declared register of type .pred.",
        "The assembler refuses it.",
        "Declare the register, or compute a predicate with setp.",
        f"@%r0 {_MMA}",
        f".reg .pred %p;\nsetp.ne.b32 %p, %r0, 0;\n@%p {_MMA}",
    ),
    "register-count": Rule(
        "A list has as many registers as the operand needs.",
        "The assembler refuses it. The number follows from the shape and the type: each thread has an equal part of the matrix.",
        "Add or remove registers; ptxmma layout shows which element each one has.",
        _MMA.replace("{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2}"),
        _MMA,
    ),
    "register-type": Rule(
        "Registers have one of the types that assemblers accept for the operand.",
        "The assembler refuses other types; it does not convert.",
        "Declare the registers with a type that the message lists, or move the bits with mov.",
        _MMA.replace("{%r4, %r5}", "{%rd1, %rd2}"),
        _MMA,
    ),
    "sink": Rule(
        "The sink _ replaces elements of a result that are not needed, but not all of them, and nothing that is read.",
        "The assembler refuses it elsewhere.",
        "Write a register.",
        _MMA.replace("{%r4, %r5}", "{%r4, _}"),
        _MMA,
    ),
    "state-space": Rule(
        "The variable of an address lies in the state space of the instruction.",
        "The assembler refuses another variable, or the instruction reads other memory.",
        "Name the variable's state space in the instruction, or copy the matrix to shared memory.",
        _LOAD.replace("tile", "weights"),
        _LOAD,
    ),
    "stride": Rule(
        "The rows or columns of a matrix do not overlap.",
        "With a stride that is shorter than a row or column, behaviour is undefined.",
        "Write the distance between the starts of two rows or columns, in elements.",
        f".shared .align 32 .b8 rows[512];\n{_STRIDED.replace(', 16;', ', 8;')}",
        f".shared .align 32 .b8 rows[512];\n{_STRIDED}",
    ),
    "undeclared": Rule(
        "Registers are declared before they are used, in a block that is open.",
        "The assembler refuses others. In inline assembly, the compiler refuses a number without an operand.",
        "Declare the register with .reg, or add the operand.",
        _MMA.replace("%r5", "%r99"),
        _MMA,
    ),
}
