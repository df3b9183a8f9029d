"""Registers of C that assemblers overwrite before they have read them."""

from __future__ import annotations

import pytest

from ptxmma.check import check

_FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32"
_AB, _D = "{%r0, %r1, %r2, %r3}, {%r4, %r5}", "{%f0, %f1, %f2, %f3}"


def _reported(lines: str, target: str = "sm_90") -> list[str]:
    text = f".version 8.7\n.target {target}\n.entry k()\n{{\n.reg .b32 %r<12>;\n.reg .f32 %f<8>;\n{lines}\nret;\n}}\n"
    return [finding.message for finding in check(text) if finding.rule == "overwritten"]


@pytest.mark.parametrize(
    ("c", "message"),
    [
        ("{%f3, %f2, %f1, %f0}", "%f1 is element 2 of c and element 1 of the result"),
        ("{%f4, %f5, %f6, %f2}", "%f2 is element 3 of c and element 2 of the result"),
        ("{%f0, %f0, %f0, %f0}", "%f0 is element 1 of c and element 0 of the result"),
        (_D, ""),
        ("{%f1, %f2, %f3, %f4}", ""),  # each is read before it is written
        ("{%f4, %f4, %f4, %f4}", ""),
    ],
)
def test_a_later_register_of_c(c: str, message: str) -> None:
    messages = _reported(f"{_FP8} {_D}, {_AB}, {c};")
    assert [text.partition(":")[0] for text in messages] == ([message] if message else [])
    sparse = _reported(f"{_SPARSE} {_D}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5, %r6, %r7}}, {c}, %r8, 0;")
    assert [text.partition(":")[0] for text in sparse] == ([message] if message else [])


@pytest.mark.parametrize("target", ["sm_89", "sm_120a"])
def test_targets_that_have_the_instruction(target: str) -> None:
    assert not _reported(f"{_FP8} {_D}, {_AB}, {{%f3, %f2, %f1, %f0}};", target)


def test_other_types() -> None:
    assert not _reported(f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {_D}, {_AB}, {{%f3, %f2, %f1, %f0}};")


def test_each_of_several_alike() -> None:
    assert len(_reported(f"{_FP8} {_D}, {_AB}, {{%f3, %f2, %f1, %f0}};\n" * 3)) == 3


def test_sources() -> None:
    """Which registers a compiler takes for operands is not known, unless they are the same operand."""
    text = 'asm("%s {%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%s};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])'
    text += ' : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));'
    for c, rules in (("%0, %1, %2, %3", []), ("%1, %0, %3, %2", ["overwritten"])):
        assert [each.rule for each in check(text % (_FP8, c), "sm_90", file="a.cu") if each.severity == "warning"] == rules
