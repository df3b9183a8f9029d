"""The rules about the operands of ``asm`` statements."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmma.check.rule import Rule

_ASM = """\
__device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""

RULES: Mapping[str, Rule] = {
    "repeated-operand": Rule(
        "A value takes one place of a fragment.",
        "The compiler accepts the same expression twice. The instruction then multiplies with one element in two places and leaves out "
        "another; of a result, one element is lost.",
        "Write the expression that belongs to the place.",
        _ASM.replace('"r"(a[2])', '"r"(a[1])'),
        _ASM,
    ),
    "uninitialised-operand": Rule(
        'An operand that the instruction reads is an input, or an output with "+".',
        'The compiler does not pass the value of an output with "=". The register holds anything when the instruction reads it.',
        'Write "+f" for an accumulator that is read and written.',
        _ASM.replace("+f", "=f"),
        _ASM,
    ),
    "unused-operand": Rule(
        "Every register that is an operand of an asm statement occurs in its text.",
        "The compiler accepts operands that nobody uses. Behind one that is left over, all numbers are off by one.",
        "Remove the operand, or correct the numbers in the text.",
        _ASM.replace('"r"(a[0])', '"l"(d), "r"(a[0])').replace("{%4, %5, %6, %7}, {%8, %9}", "{%5, %6, %7, %8}, {%9, %10}"),
        _ASM,
    ),
}
