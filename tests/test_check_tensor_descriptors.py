"""Descriptors of instructions of tensor memory whose bits are known: what of them is reported."""

from __future__ import annotations

from typing import Any

import pytest

import ptxmma
from ptxmma.check import check
from ptxmma.matrices.descriptors import instruction_descriptor, of_product

_F16 = "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;"
_PAIR = _F16.replace("group::1", "group::2")
_TENSOR_A = _F16.replace("%rd0", "[%r2]")
_BF16 = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
#: Of a K-major tile with the 128-byte swizzle: SBO is 1,024 bytes, and the version is 1.
_RIGHT = 0x4000404000010040


def reported(*lines: str, target: str = "sm_100a", severity: str = "warning") -> list[tuple[str, str]]:
    """The rules and messages about the descriptors of a kernel, whatever else is wrong with it."""
    head = f".version 9.4\n.target {target}\n.visible .entry kernel()\n{{\n"
    head += ".reg .b16 %rs<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<2>;"
    findings = [each for each in check("\n".join([head, *lines, "ret;", "}"])) if each.rule in ("descriptor", "instruction-descriptor")]
    assert {each.severity for each in findings} <= {severity}
    return [(each.rule, each.message) for each in findings]


def about_product(bits: int, line: str = _F16, target: str = "sm_100a") -> str:
    """What is said of an instruction descriptor; empty where nothing is."""
    messages = reported(f"mov.b32 %r1, {bits:#x};", line, target=target)
    assert [rule for rule, _ in messages] in ([], ["instruction-descriptor"])
    return "".join(message for _, message in messages)


def about_b(bits: int, product: int, line: str = _F16) -> str:
    """What is said of the descriptor of B in a product."""
    messages = reported(f"mov.b32 %r1, {product:#x};", f"mov.b64 %rd1, {bits:#x};", line)
    assert [rule for rule, _ in messages] in ([], ["descriptor"])
    return "".join(message for _, message in messages)


@pytest.mark.parametrize(
    ("line", "kind", "fields", "said"),
    [
        (_F16, "f16", {"m": 128, "n": 256, **_BF16}, ""),
        (_F16, "f16", {"m": 128, "n": 264, **_BF16}, "does not allow m = 128 with n = 264; legal: m = 64 or 128 with n = 8, 16, … 256"),
        (_F16, "f16", {"m": 256, "n": 128, **_BF16}, "does not allow m = 256 with n = 128"),
        (_PAIR, "f16", {"m": 256, "n": 128, **_BF16}, ""),
        (_PAIR, "f16", {"m": 256, "n": 8, **_BF16}, "does not allow m = 256 with n = 8"),
        (_F16, "f16", {"m": 128, "n": 256, "dtype": "f16", "atype": "bf16", "btype": "f16"}, "takes no dtype = f16, atype = bf16"),
        (_F16, "f16", {"m": 128, "n": 256, "sparse": 1, **_BF16}, "sparse is 1, but the opcode multiplies dense matrices"),
        (
            _F16.replace("mma.", "mma.sp.").replace("%r1,", "[%r3], %r1,"),
            "f16",
            {"m": 128, "n": 256, **_BF16},
            "sparse is 0, but the opcode",
        ),
        (_F16.replace("f16", "i8"), "i8", {"m": 128, "n": 24, "atype": "s8", "btype": "u8"}, ""),
        (
            _F16.replace("f16", "i8"),
            "i8",
            {"m": 128, "n": 24, "atype": "s8", "btype": "u8", "b_majorness": "MN"},
            "b_majorness = MN does not allow n = 24",
        ),
        (_F16.replace("mma.", "mma.ws."), "f16", {"m": 32, "n": 64, **_BF16}, ""),
        (_F16.replace("mma.", "mma.ws."), "f16", {"m": 32, "n": 96, **_BF16}, "does not allow m = 32 with n = 96"),
    ],
)
def test_a_descriptor_chooses_a_product_of_its_opcode(line: str, kind: str, fields: dict[str, Any], said: str) -> None:
    message = about_product(instruction_descriptor(kind, **fields), line)
    assert said in message
    assert bool(said) == bool(message)


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        (0x8400490 | 1 << 6, "bit 6 must be 0"),
        (0x8400490 | 1 << 3, "saturate holds 1; allowed: 0"),
        (0x8400490 | 3 << 4, "dtype holds 3; allowed: 0 (f16), 1 (f32)"),
        (0x8400490 | 2 << 7, "atype holds 3; allowed: 0 (f16), 1 (bf16)"),
        (0x8400490 | 3 << 13 | 3 << 15, ""),  # negated and MN-major
        (0x8400490 | 2 << 30, "max_shift is 16, but only .ws reads it"),
    ],
)
def test_fields_of_an_instruction_descriptor(bits: int, said: str) -> None:
    assert said in about_product(bits)
    assert bool(said) == bool(about_product(bits))


@pytest.mark.parametrize(
    ("vector", "m", "fields", "said"),
    [
        ("4X", 128, {"scale_type": "ue4m3", "scale_a_id": 2}, "scale_a_id = 2 is not legal for scale-A-tmem of tcgen05.mma.cta_group::1"),
        ("4X", 128, {"scale_type": "ue4m3", "scale_b_id": 2}, "scale_b_id = 2 is not legal for scale-B-tmem of tcgen05.mma.cta_group::1"),
        ("4X", 128, {"scale_type": "ue4m3"}, ""),
        ("2X", 128, {"scale_type": "ue8m0", "scale_a_id": 2, "scale_b_id": 2}, ""),
    ],
)
def test_scale_factors_begin_where_all_of_them_fit(vector: str, m: int, fields: dict[str, Any], said: str) -> None:
    opcode = f"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::{vector}"
    bits = instruction_descriptor("mxf4nvf4", m=m, n=64, atype="e2m1", btype="e2m1", **fields)
    message = about_product(bits, f"{opcode} [%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;")
    assert said in message
    assert ("; legal: 0 (PTX ISA" in message) == bool(message) == bool(said)


@pytest.mark.parametrize(
    ("bits", "said"),
    [(0x0003028100000000, ""), (1 << 63, "in the column mask, bits 63:62 must be 0 (PTX ISA 9.7.16.10.9.3 [9.4: 9.7.18.10.10.3])")],
)
def test_masks_of_columns(bits: int, said: str) -> None:
    messages = reported(f"mov.b64 %rd2, {bits:#x};", _F16.replace("mma.", "mma.ws.").replace("%p0;", "%p0, %rd2;"))
    assert messages == ([("descriptor", said)] if said else [])


@pytest.mark.parametrize(("bits", "said"), [(0x08100010, ""), (0x04100010, "ashift does not allow m = 64; legal: 128 or 256")])
def test_a_shifted_a_has_128_rows(bits: int, said: str) -> None:
    message = about_product(bits, "tcgen05.mma.cta_group::1.kind::f16.ashift [%r0], [%r2], %rd1, %r1, %p0;")
    assert said in message
    assert message.count("(PTX ISA") == bool(said), "a limit is cited once"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"btype": "e4m3"}, ""),
        ({"btype": "e5m2"}, "takes no btype = e5m2"),
        ({"btype": "e4m3", "b_majorness": "MN"}, "decompress::lut::b does not allow b_majorness = MN; legal: K"),
    ],
)
def test_a_table_has_e4m3_of_b_untransposed(fields: dict[str, str], said: str) -> None:
    bits = instruction_descriptor("f8f6f4", m=128, n=64, atype="e5m2", dtype="f32", **fields)
    line = "tcgen05.mma.cta_group::1.kind::f8f6f4.decompress::lut::b [%r0], %rd0, %rd1, [%r2], %r1, %p0;"
    message = about_product(bits, line, "sm_107a")
    assert said in message
    assert bool(said) == bool(message)


@pytest.mark.parametrize("qualifier", ["", ".block32"])
def test_the_target_decides(qualifier: str) -> None:
    """K = 96 is that of sm_103a."""
    line = f"tcgen05.mma.cta_group::1.kind::mxf4.block_scale{qualifier} [%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;"
    bits = of_product(ptxmma.instruction(line.split()[0], m=128, n=64, k=96))
    assert about_product(bits, line, "sm_103a") == ""
    assert "k holds 1; allowed: 0 (64); 96 on sm_103a" in about_product(bits, line, "sm_100a")
    assert about_product(bits, line, "sm_90a") == ""  # which has no such instruction


#: How an instruction descriptor comes into %r1; its low half alone is known in the last ones.
_MADE = {
    "in parts": ["mov.b16 %rs1, {low};", "mov.b16 %rs2, {high};", "mov.b32 %r1, {{%rs1, %rs2}};"],
    "upper half": ["mov.b64 %rd5, {wide};", "shr.u64 %rd6, %rd5, 32;", "cvt.u32.u64 %r1, %rd6;"],
    "one of two": ["selp.b32 %r1, {whole}, {negated}, %p1;"],
    "unpacked": ["mov.b64 %rd5, {wide};", "mov.b64 {{%r9, %r1}}, %rd5;"],
    "with a selector": ["and.b32 %r9, %r10, 3;", "or.b32 %r1, %r9, {whole};"],
    "extended": ["mov.b16 %rs1, {high};", "cvt.u32.u16 %r9, %rs1;", "shl.b32 %r10, %r9, 16;", "or.b32 %r1, %r10, {low};"],
}


@pytest.mark.parametrize("made", _MADE)
def test_constants_are_followed(made: str) -> None:
    line = _F16.replace("mma.", "mma.sp.").replace("%r1,", "[%r3], %r1,")
    for n, said in ((256, False), (264, True)):
        bits = instruction_descriptor("f16", m=128, n=n, sparse=1, **_BF16)
        known = {"low": bits & 0xFFFF, "high": bits >> 16, "wide": bits << 32, "whole": bits, "negated": bits | 1 << 13}
        assert bool(reported(*[text.format(**known) for text in _MADE[made]], line)) == said


@pytest.mark.parametrize(
    "lines", [["ld.param.b32 %r1, [x];"], ["mov.b32 %r2, 0x8420490;", "xor.b32 %r1, %r2, %r3;"], ["or.b32 %r1, %r2, 0x8420000;"]]
)
def test_where_too_little_is_known(lines: list[str]) -> None:
    assert reported(*lines, _F16) == []


@pytest.mark.parametrize(
    ("bits", "fields", "said"),
    [
        (_RIGHT, {}, ""),
        (_RIGHT & ~(7 << 46), {}, "version is 0; it is always 1"),
        (_RIGHT | 1 << 14, {}, "start_address is 263168; allowed: multiples of 16 from 0 to 262128; up to 524272 on sm_107f"),
        (_RIGHT | 1 << 15, {}, "bit 15 must be 0"),
        (_RIGHT | 1 << 61, {}, "swizzle holds 3; allowed: 0 (none)"),
        (_RIGHT & ~(0x3FFF << 32), {}, "SBO is 0"),
        (_RIGHT + (0x3C0 << 32), {}, "are 1024 bytes meant?"),
        (0x2000404000010040, {}, "bf16 cannot be read K-major with swizzle 128B_ATOM_32B"),
        (_RIGHT, {"b_majorness": "MN"}, "LBO is 16 bytes, but a group"),
        (0x4000404002000040, {"b_majorness": "MN"}, ""),
    ],
)
def test_descriptors_of_matrices_are_judged_by_the_product(bits: int, fields: dict[str, str], said: str) -> None:
    message = about_b(bits, instruction_descriptor("f16", m=128, n=256, **_BF16, **fields))
    assert said in message
    assert bool(said) == bool(message)


def test_starts_beyond_256_kb_are_for_the_target_whose_shared_memory_is_larger() -> None:
    line = "tcgen05.cp.cta_group::1.128x256b [%r0], %rd1;"
    for target, count in (("sm_103a", 1), ("sm_107a", 0)):
        for bit in (14, 30):
            assert len(reported(f"mov.b64 %rd1, {_RIGHT | 1 << bit:#x};", line, target=target)) == count, (target, bit)


def test_the_swizzle_of_mn_major_tf32() -> None:
    product = instruction_descriptor("tf32", m=128, n=32, b_majorness="MN")
    line = _F16.replace("f16", "tf32")
    assert "tf32 cannot be read MN-major with swizzle 128B, only with 128B_ATOM_32B" in about_b(_RIGHT, product, line)
    assert about_b(0x2000402000010040, product, line) == ""


def test_without_a_product_only_what_holds_for_all() -> None:
    assert reported(f"mov.b64 %rd1, {_RIGHT & ~(7 << 46):#x};", _F16)
    assert reported(f"mov.b64 %rd1, {_RIGHT:#x};", _F16) == []
    assert reported("mov.b64 %rd1, 0x4000404000010040;", _TENSOR_A) == []
    assert reported("mov.b64 %rd1, 0x0;", "tcgen05.cp.cta_group::1.128x256b [%r0], %rd1;") == [
        ("descriptor", "in the shared descriptor, version is 0; it is always 1 (PTX ISA 9.7.16.9.2 [9.4: 9.7.18.9.2])")
    ]


@pytest.mark.parametrize(("offset", "said"), [(8, "bit 3, which is always set, is lost"), (32, "")])
def test_addresses_between_units_of_16_bytes(offset: int, said: str) -> None:
    """The start, and the address of a second part in the field of the leading dimension."""
    lines = [f"mov.b64 %rd2, {0x1000 + offset};", "shr.u64 %rd3, %rd2, 4;", "and.b64 %rd4, %rd3, 16383;"]
    for field, made in (("start_address", ["mov.b64 %rd5, %rd4;"]), ("leading_byte_offset", ["shl.b64 %rd5, %rd4, 16;"])):
        found = reported(*lines, *made, "or.b64 %rd1, %rd5, 0x4000404000000000;", _F16)
        assert [text for _, text in found if "counts units" in text] == (
            [f"in the descriptor of B, {field} counts units of 16 bytes: {said} (PTX ISA 9.7.16.10.9.1 [9.4: 9.7.18.10.10.1])"]
            if said
            else []
        )


def test_padded_elements_have_no_canonical_layout() -> None:
    bits = instruction_descriptor("f8f6f4", dtype="f32", atype="e4m3", btype="e2m1", m=128, n=256)
    assert about_b(_RIGHT & ~(0x3FFF << 32), bits, _F16.replace("f16", "f8f6f4")) == ""


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (_F16.replace("mma.", "mma.ws.").replace("%p0;", "%p0, 0;"), []),  # FlashMLA: the mask of columns
        (_F16.replace("%p0", "0"), []),  # FlashAttention-4: enable-input-d
        (_F16.replace("%p0", "1"), []),
        (_F16.replace("%p0", "5"), ["constant"]),
    ],
)
def test_a_constant_where_every_assembler_takes_it(line: str, rules: list[str]) -> None:
    declared = ".reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;"
    findings = check(f".version 9.0\n.target sm_100a\n.func f()\n{{\n{declared}\n{line}\nret;\n}}\n")
    assert [each.rule for each in findings] == rules


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (0x3FC0, "a base offset of 3, but a pattern whose start is 0 modulo 1024 needs 0"),
        (0x3FFF, ""),
    ],
)
def test_a_base_offset_is_judged_by_the_start_within_a_pattern(mask: int, text: str) -> None:
    """TMA and allocators align tiles: of the address, often only the low bits are known."""
    fields = _RIGHT & ~0x3FFF | 3 << 49
    product = instruction_descriptor("f16", m=128, n=256, **_BF16)
    made = (f"mov.b32 %r1, {product:#x};", f"and.b64 %rd3, %rd2, {mask:#x};", f"or.b64 %rd1, %rd3, {fields:#x};")
    assert [message.partition(", ")[2].partition(" (")[0] for _, message in reported(*made, _F16)] == [text] * bool(text)


def test_a_product_of_ws_may_shift_b() -> None:
    bits = instruction_descriptor("f16", m=32, n=64, **_BF16) | 2 << 30
    assert about_product(bits, _F16.replace("mma.", "mma.ws.")) == ""


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        (_F16, "%rd0", True),
        (_F16, "%rd1", False),  # B may have 8 columns
        (_PAIR, "%rd0", True),
        (_F16.replace("mma.", "mma.ws."), "%rd1", True),
        (_F16.replace("f16", "tf32"), "%rd0", True),  # with this swizzle it is K-major
        (_F16.replace("f16", "f8f6f4"), "%rd0", False),  # of 4-bit types, padded ones
    ],
)
def test_a_stride_of_zero_counts_whatever_the_product_is(line: str, place: str, said: bool) -> None:
    """Kernels may take the instruction descriptor as a parameter."""
    messages = [message for _, message in reported(f"mov.b64 {place}, {_RIGHT & ~(0x3FFF << 32):#x};", line)]
    assert ["SBO is 0" in message for message in messages] == [True] * said
    assert reported(f"mov.b64 {place}, {_RIGHT:#x};", line) == []


_SCALED = "tcgen05.mma.cta_group::{}.kind::mxf4.block_scale [%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;"
_SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%r0], %rd0, %rd1, [%r2], %r1, %p0;"
_E4M3 = {"dtype": "f32", "atype": "e4m3", "btype": "e4m3"}


@pytest.mark.parametrize(
    ("line", "kind", "fields", "erratum"),
    [
        (_F16.replace("f16", "ti16"), "ti16", {"m": 128, "n": 64, "b_majorness": "MN"}, "tcgen05-ti16-majorness"),
        (_F16.replace("f16", "ti16"), "ti16", {"m": 128, "n": 64}, ""),
        (_F16.replace("f16", "f8f6f4"), "f8f6f4", {"m": 128, "n": 64, "k": 64, **_E4M3, "atype": "e2m1"}, "tcgen05-f8f6f4-depth"),
        (_F16.replace("f16", "f8f6f4"), "f8f6f4", {"m": 128, "n": 64, "k": 64, **_E4M3}, ""),
        (_PAIR.replace("f16", "f8f6f4"), "f8f6f4", {"m": 256, "n": 48, "k": 64, **_E4M3}, "tcgen05-f8f6f4-k64-columns"),
        (_PAIR.replace("f16", "f8f6f4"), "f8f6f4", {"m": 256, "n": 64, "k": 64, **_E4M3}, ""),
        (_SPARSE, "f8f6f4", {"m": 64, "n": 64, "k": 128, "sparse": True, **_E4M3}, "tcgen05-sparse-f8f6f4-shapes"),
        (_SPARSE, "f8f6f4", {"m": 128, "n": 24, "k": 128, "sparse": True, **_E4M3}, "tcgen05-sparse-f8f6f4-shapes"),
        (_SPARSE, "f8f6f4", {"m": 128, "n": 64, "k": 128, "sparse": True, **_E4M3, "btype": "e2m3"}, "tcgen05-sparse-f8f6f4-shapes"),
        (_SPARSE, "f8f6f4", {"m": 128, "n": 64, "k": 128, "sparse": True, **_E4M3}, ""),
        (_SCALED.format(1), "mxf4", {"m": 128, "n": 64, "k": 128}, "tcgen05-k128-one-cta"),
        (_SCALED.format(2), "mxf4", {"m": 256, "n": 64, "k": 128}, ""),
    ],
)
def test_a_product_on_which_sources_disagree_is_a_note(line: str, kind: str, fields: dict[str, Any], erratum: str) -> None:
    bits = instruction_descriptor(kind, target="sm_107a", **fields)
    messages = reported(f"mov.b32 %r1, {bits:#x};", line, target="sm_107a", severity="note")
    assert len(messages) == bool(erratum)
    assert all(f"Erratum {erratum} (" in message for _, message in messages)
