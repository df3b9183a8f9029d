"""Products into tensor memory: their opcodes, the operands that do not depend on the instruction descriptor, and their hints."""

from __future__ import annotations

import pytest

import ptxmma
from ptxmma.catalog.instructions import Catalog
from ptxmma.check import check

_DENSE = "tcgen05.mma.cta_group::1.kind::{} [%r0], "
_PAIR = "tcgen05.mma.cta_group::2.kind::f16 [%r0], "
_SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], "
_FOUR, _EIGHT = "{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
_F16, _I8, _MXF8 = _DENSE.format("f16"), _DENSE.format("i8"), "tcgen05.mma.cta_group::1.kind::mxf8f6f4{} [%r0], "
_TABLE = "tcgen05.mma.cta_group::1.kind::f8f6f4.decompress::lut::b [%r0], "
_STATIONARY = "tcgen05.mma.ws.cta_group::1.kind::tf32{} [%r0], "


def findings(line: str, target: str = "sm_100a", version: str = "9.4") -> list[ptxmma.check.Finding]:
    """What `ptxmma check` reports about a line of a kernel."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry kernel() {{\n"
    registers = ".reg .pred %p<2>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n"
    return list(check(f"{head}{registers}{line}\nret;\n}}\n", follow=False))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f"{_F16}%rd0, %rd1, %r1, %p0;", []),
        (f"{_F16}[%r2 + 16], %rd1, %r1, !%p0;", []),
        (f"{_F16}%rd0, %rd1, %r1, %p0, 15;", []),
        (f"{_F16}%rd0, %rd1, %r1, %p0, 16;", ["immediate"]),
        (f"{_F16}%rd0, %rd1, %r1, {_FOUR}, %p0, 0;", []),
        (f"{_F16}%rd0, %rd1, %r1, {_EIGHT}, %p0;", ["register-count"]),
        (f"{_PAIR}%rd0, %rd1, %r1, {_EIGHT}, %p0;", []),
        (f"{_PAIR}%rd0, %rd1, %r1, {_FOUR}, %p0;", ["register-count"]),
        (f"{_F16}%rd0, %rd1, %r1;", ["operand-count"]),
        (f"{_F16}%rd0, %rd1, %h1, %p0;", ["register-type"]),
        (f"{_F16}%r2, %rd1, %r1, %p0;", ["register-type"]),
        ("tcgen05.mma.cta_group::1.kind::f16 [%u0], %rd0, %rd1, %r1, %p0;", ["register-type"]),
        ("tcgen05.mma.cta_group::3.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;", ["unknown-instruction"]),
        (f"{_SPARSE}%rd0, %rd1, [%r3], %r1, %p0;", []),
        (f"{_SPARSE}%rd0, %rd1, %r1, %p0;", ["operand-count"]),
        (f"{_MXF8.format('.block_scale')}%rd0, %rd1, %r1, [%r2], [%r3], %p0;", []),
        (f"{_MXF8.format('.block_scale')}%rd0, %rd1, %r1, [%r2], [%r3], %p0, 1;", ["operand-count"]),
        (f"{_MXF8.format('')}%rd0, %rd1, %r1, [%r2], [%r3], %p0;", ["unknown-instruction"]),
        (f"{_MXF8.format('.block_scale.block16')}%rd0, %rd1, %r1, [%r2], [%r3], %p0;", ["unknown-instruction"]),
        (f"{_STATIONARY.format('')}%rd0, %rd1, %r1, %p0;", []),
        (f"{_STATIONARY.format('')}%rd0, %rd1, %r1, %p0, %rd2;", []),
        (f"{_STATIONARY.format('')}%rd0, %rd1, %r1, {_FOUR}, %p0;", ["list", "register-type"]),
        ("tcgen05.mma.ws.cta_group::2.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;", ["unknown-instruction"]),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%r0], %rd0, %rd1, %r1, %p0;", ["operand-kind"]),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%r0], [%r2], %rd1, %r1, %p0;", []),
        (f"{_TABLE}%rd0, %rd1, [%r3], %r1, %p0;", ["target"]),
    ],
)
def test_lines_are_judged_as_assemblers_do(line: str, wanted: list[str]) -> None:
    assert [each.rule for each in findings(line)] == wanted


@pytest.mark.parametrize(
    ("hints", "wanted"),
    [
        ("collector::a::fill", []),
        ("collector::a::use", []),
        ("ashift.collector::a::lastuse", []),
        ("ashift.collector::a::use", ["unknown-instruction"]),
        ("collector::a::fill.collector::a::use", ["unknown-instruction"]),
        ("collector::b0::fill", ["unknown-instruction"]),
        ("collector::b::fill", ["target"]),
    ],
)
def test_collectors_are_judged_as_assemblers_do(hints: str, wanted: list[str]) -> None:
    line = f"tcgen05.mma.cta_group::1.kind::f16.{hints} [%r0], [%r2], %rd1, %r1, %p0;"
    assert [each.rule for each in findings(line)] == wanted
    if hints == "collector::b::fill":
        assert not findings(line, "sm_107f")


def test_a_wrong_kind_is_not_blamed_on_the_collector() -> None:
    (finding,) = findings("tcgen05.mma.cta_group::1.kind::f17.collector::a::fill [%r0], %rd0, %rd1, %r1, %p0;")
    assert "'.kind::f17' should be '.kind::f16'" in finding.message
    assert "collector::a::fill" not in finding.message.partition(";")[0]
    with pytest.raises(LookupError, match=r"'\.collector::a::fill' does not belong"):
        ptxmma.instruction("tcgen05.mma.ws.cta_group::1.kind::f16.collector::a::fill")


def test_an_input_scale_needs_more_than_its_instruction() -> None:
    """Chips of sm_110 have the instruction without it."""
    line = f"{_F16}%rd0, %rd1, %r1, %p0, 3;"
    assert not findings(line, "sm_103f")
    assert [each.rule for each in findings(line, "sm_110a")] == ["target"]
    instruction = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16")
    scaled = [form for form in instruction.forms if "scale-input-d" in form.syntax]
    assert len(scaled) == len(instruction.forms) // 2
    assert all("sm_110a" in instruction.accepted_by() and "sm_110a" not in instruction.accepted_by(form=form) for form in scaled)


@pytest.mark.parametrize(
    ("spelling", "accepting", "refusing"),
    [
        (
            "tcgen05.mma.cta_group::1.kind::f16",
            {"sm_100a": "8.6", "sm_100f": "8.8", "sm_110f": "9.0", "sm_107f": "9.4"},
            {"sm_100", "sm_120a"},
        ),
        ("tcgen05.mma.cta_group::1.kind::i8", {"sm_100a": "8.6", "sm_110a": "9.0"}, {"sm_100f", "sm_103a", "sm_107a"}),
        ("tcgen05.mma.cta_group::2.kind::ti16", {"sm_107f": "9.4"}, {"sm_100a", "sm_103a", "sm_110a"}),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale", {"sm_100a": "8.6", "sm_100f": "8.8"}, {"sm_100"}),
        ("tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale", {"sm_100a": "8.6", "sm_107a": "9.4"}, {"sm_100f", "sm_110f"}),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", {"sm_100a": "8.7"}, {"sm_100f", "sm_103f"}),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", {"sm_100a": "8.8", "sm_100f": "8.8"}, {"sm_120a"}),
        ("tcgen05.mma.ws.sp.cta_group::1.kind::f8f6f4", {"sm_100f": "8.8"}, {"sm_100"}),
    ],
)
def test_targets_and_versions(spelling: str, accepting: dict[str, str], refusing: set[str]) -> None:
    accepted = ptxmma.instruction(spelling).accepted_by()
    assert accepted.items() >= accepting.items()
    assert refusing.isdisjoint(accepted)


def test_hints_have_no_variants_of_their_own(catalog: Catalog) -> None:
    spellings = [each.canonical for each in catalog.all() if "collector" in each.canonical]
    assert not spellings
    plain = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16")
    hinted = ptxmma.instruction("tcgen05.mma.collector::b::use.cta_group::1.collector::a::fill.kind::f16")
    assert hinted.canonical == "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill.collector::b::use"
    assert hinted.hints == {"collector_a": "collector::a::fill", "collector_b": "collector::b::use"}
    assert (hinted.identifier, hinted.forms) == (plain.identifier, plain.forms)
    assert (plain.hints, len(list(plain.hinted()))) == ({}, 5 * 5 - 1)
    assert set(hinted.accepted_by()) == {"sm_107f", "sm_107a"}
    stationary = ptxmma.instruction("tcgen05.mma.ws.cta_group::1.kind::f16")
    assert len(list(stationary.hinted())) == 4 * 4


def test_the_mask_of_lanes_has_a_bit_for_each_lane_of_each_block() -> None:
    masks = [ptxmma.instruction(f"tcgen05.mma.cta_group::{ctas}.kind::f16").operand("disable-output-lane") for ctas in (1, 2)]
    assert [32 * mask.registers for mask in masks] == [128, 256]


def test_a_lies_in_shared_memory_or_in_tensor_memory() -> None:
    instruction = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16")
    places = {tuple(operand.kind for operand in form.operands if operand.of == "a") for form in instruction.forms}
    assert places == {("shared-descriptor",), ("tensor-matrix",)}
    assert instruction.operand("d-tmem").writes
    assert not instruction.operand("a-tmem").writes
    shifted = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16.ashift")
    assert {operand.kind for operand in shifted.operands if operand.of == "a"} == {"tensor-matrix"}
