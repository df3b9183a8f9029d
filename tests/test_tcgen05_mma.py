"""Products into tensor memory: their opcodes, and the operands that do not depend on the instruction descriptor."""

from __future__ import annotations

import pytest

import ptxmma
from ptxmma.check import check

_DENSE = "tcgen05.mma.cta_group::1.kind::f16 [%r0], "
_PAIR = "tcgen05.mma.cta_group::2.kind::f16 [%r0], "
_FOUR, _EIGHT = "{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"


def rules(line: str, target: str = "sm_100a", version: str = "9.4") -> list[str]:
    """What `ptxmma check` reports about a line of a kernel."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry kernel() {{\n"
    registers = ".reg .pred %p<2>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n"
    return [each.rule for each in check(f"{head}{registers}{line}\nret;\n}}\n", follow=False)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f"{_DENSE}%rd0, %rd1, %r1, %p0;", []),
        (f"{_DENSE}[%r2 + 16], %rd1, %r1, !%p0;", []),
        (f"{_DENSE}%rd0, %rd1, %r1, {_FOUR}, %p0;", []),
        (f"{_DENSE}%rd0, %rd1, %r1, {_EIGHT}, %p0;", ["register-count"]),
        (f"{_PAIR}%rd0, %rd1, %r1, {_EIGHT}, %p0;", []),
        (f"{_PAIR}%rd0, %rd1, %r1, {_FOUR}, %p0;", ["register-count"]),
        (f"{_DENSE}%rd0, %rd1, %r1;", ["operand-count"]),
        (f"{_DENSE}%rd0, %rd1, %h1, %p0;", ["register-type"]),
        (f"{_DENSE}%r2, %rd1, %r1, %p0;", ["register-type"]),
        ("tcgen05.mma.cta_group::1.kind::f16 [%u0], %rd0, %rd1, %r1, %p0;", ["register-type"]),
        ("tcgen05.mma.cta_group::3.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;", ["unknown-instruction"]),
    ],
)
def test_lines_are_judged_as_assemblers_do(line: str, wanted: list[str]) -> None:
    assert rules(line) == wanted


def test_the_mask_of_lanes_has_a_bit_for_each_lane_of_each_block() -> None:
    masks = [ptxmma.instruction(f"tcgen05.mma.cta_group::{ctas}.kind::f16").operand("disable-output-lane") for ctas in (1, 2)]
    assert [32 * mask.registers for mask in masks] == [128, 256]


def test_a_lies_in_shared_memory_or_in_tensor_memory() -> None:
    instruction = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16")
    places = {tuple(operand.kind for operand in form.operands if operand.of == "a") for form in instruction.forms}
    assert places == {("shared-descriptor",), ("tensor-matrix",)}
    assert instruction.operand("d-tmem").writes
    assert not instruction.operand("a-tmem").writes
