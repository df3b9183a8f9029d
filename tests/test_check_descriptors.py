"""Matrix descriptors whose bits are known: what of them is reported."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ptxmma.check import check
from ptxmma.ptx.known_bits import Bits

#: One of a K-major tile with the 128-byte swizzle: SBO is 1,024 bytes.
_RIGHT = 0x4000004000010040
_K = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd0, %rd1, 1, 1, 1, 0, 0;"
_N = _K.replace("1, 0, 0;", "1, 0, 1;")
_B = _K.replace("%rd0", "{%r0, %r1, %r2, %r3}").replace(", 0, 0;", ", 0;")
_FP8 = _K.replace("k16.f32.f16.f16", "k32.f32.e4m3.e4m3").replace(", 0, 0;", ";")
_NARROW = _K.replace("n16", "n8").replace(",%f4,%f5,%f6,%f7", "")
_WIDE = _N.replace("n16", "n128").replace("{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}", "{" + ",".join(f"%f{number}" for number in range(64)) + "}")
_FENCE, _WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
_GOOD_A = f"mov.b64 %rd0, {_RIGHT:#x};"


def reported(*body: str, wgmma: str = _K) -> list[str]:
    """The messages about the descriptors of a kernel, whatever else is wrong with it."""
    head = ".version 8.7\n.target sm_90a\n.visible .entry kernel()\n{\n.reg .f32 %f<64>; .reg .b32 %r<20>; .reg .b64 %rd<20>;"
    head += ".reg .pred %p<2>; .shared .align 128 .b8 tile[64];"
    findings = check("\n".join([head, *body, _FENCE, wgmma, _WAIT, "ret;", "}"]))
    assert all(finding.severity == "warning" for finding in findings if finding.rule == "descriptor")
    return [finding.message for finding in findings if finding.rule == "descriptor"]


@pytest.mark.parametrize(
    ("descriptor", "said"),
    [
        (_RIGHT, ""),
        (0x4000004000000040, ""),  # operands with this swizzle do not use LBO
        (0x4000040000010040, "SBO holds 1024, which means 16384 bytes"),
        (0x4000000000010040, "SBO is 0"),
        (0x4000002000010040, "SBO is 512 bytes, but a group of 8 lines takes 1024"),
        (0x4000004100010040, "SBO = 1040 is not a multiple of 1024"),
        (0x4004004000010040, "a base offset of 2, but a pattern whose start is 0 modulo 1024 needs 0"),
        (0x0002001000080040, "a base offset of 1, but nothing is swizzled"),
        (0x400000400001C040, "bits 15:14 are not 0"),
        (0x4000004000010048, ""),  # a pattern that TMA wrote may begin anywhere
    ],
)
def test_constants(descriptor: int, said: str) -> None:
    messages = reported(_GOOD_A, f"mov.b64 %rd1, {descriptor:#x};")
    assert len(messages) == bool(said), messages
    if said:
        assert messages[0].startswith(f"in the descriptor of B, {said}"), messages
        assert messages[0].endswith("(PTX ISA 9.7.15.5.2 [9.4: 9.7.17.5.2])")


#: How the high half of a descriptor, whose low half nobody knows, comes into %rd1.
_MADE: dict[str, Callable[[int], list[str]]] = {
    "or": lambda high: ["and.b64 %rd2, %rd9, 16383;", f"or.b64 %rd1, %rd2, {high << 32:#x};"],
    "CUTLASS": lambda high: [
        "mov.u32 %r5, tile;",
        "shr.u32 %r6, %r5, 4;",
        "and.b32 %r7, %r6, 16383;",
        "cvt.u64.u32 %rd2, %r7;",
        f"or.b64 %rd3, %rd2, {high << 32 | 0x10000:#x};",
        "mov.b64 {%r8, %r9}, %rd3;",
        "add.s32 %r10, %r8, %r11;",
        "mov.b64 %rd1, {%r10, %r9};",
    ],
    "shl": lambda high: [f"mov.b32 %r5, {high};", "cvt.u64.u32 %rd2, %r5;", "shl.b64 %rd1, %rd2, 32;"],
    "bfi": lambda high: [f"mov.b64 %rd2, {high:#x};", "and.b64 %rd3, %rd9, 0x3fff;", "bfi.b64 %rd1, %rd2, %rd3, 32, 32;"],
    "add": lambda high: [f"mov.b64 %rd2, {high << 32:#x};", "and.b64 %rd3, %rd9, 0x3fff;", "add.s64 %rd1, %rd2, %rd3;"],
    "one of two": lambda high: [f"@%p1 mov.b64 %rd1, {high << 32 | 0x40:#x};", f"@!%p1 mov.b64 %rd1, {high << 32 | 0x80:#x};"],
    "a loop": lambda high: [
        "mov.b64 {%r8, %r9}, %rd2;",
        f"mov.b64 %rd2, {high << 32:#x};",
        "add.s32 %r8, %r8, 2;",
        "mov.b64 %rd1, {%r8, %r9};",
    ],
}


@pytest.mark.parametrize("made", _MADE)
def test_strides_of_a_matrix_whose_start_is_unknown(made: str) -> None:
    assert reported(_GOOD_A, *_MADE[made](0x40000040)) == []
    (message,) = reported(_GOOD_A, *_MADE[made](0x40000400))
    assert "are 1024 bytes meant?" in message


@pytest.mark.parametrize(
    "body",
    [
        ["ld.shared.b64 %rd1, [tile];"],
        ["mov.b64 %rd2, 0x4000000000010040;", "xor.b64 %rd1, %rd2, %rd9;"],
        ["mov.b64 %rd1, 0x4000000000010040;", "mov.b64 %rd1, 0x4000004000010040;"],  # one of two, of which one is right
        ["mov.b64 %rd1, 0x4000000000010040;", "ld.shared.v2.b64 {%rd3, %rd1}, [tile];"],
        ["or.b64 %rd1, %rd1, 0x4000000000010040;"],
        ["cvt.u64.s32 %rd2, %r5;", "or.b64 %rd1, %rd2, 0x4000000000010040;"],
        ["cvt.u64.u32 %rd2, %r5;", "add.s64 %rd1, %rd2, 0x4000007F00010040;"],  # the sum may carry
        ["or.b64 %rd1, 0x4000000000010040;"],  # an operand is missing
        ["shl.b64 %rd1, 0x4000000000010040, 0, 0;"],
    ],
)
def test_where_too_little_is_known(body: list[str]) -> None:
    assert reported(_GOOD_A, *body) == []


def test_the_operand_decides_which_strides_count() -> None:
    """The instruction says how the matrix lies, and how large it is."""
    without_sbo, without_lbo = "mov.b64 %rd1, 0x4000000000010040;", "mov.b64 %rd1, 0x4000004000000040;"
    for wgmma in (_K, _N, _B, _FP8):
        (message,) = reported(without_sbo, wgmma=wgmma)
        assert "SBO is 0" in message
    assert reported(without_lbo, wgmma=_N) == []  # one span of 128 bytes holds 16 columns
    (message,) = reported(without_lbo, wgmma=_WIDE)
    assert "LBO is 0" in message
    assert reported(without_lbo, wgmma=_WIDE.replace("0, 1;", "0, 0;")) == []
    assert reported(without_sbo, wgmma=_NARROW) == []  # 8 columns are one group: nothing leads to a second one


def test_one_finding_for_what_is_alike() -> None:
    assert len(reported(_GOOD_A, "mov.b64 %rd1, 0x4000000000010040;", _FENCE, _K, _K, wgmma=_K)) == 1


@pytest.mark.parametrize(
    ("start", "bit"),
    [
        ("mov.u32 %r4, 0x408;", 3),
        ("mov.u32 %r5, tile; add.s32 %r4, %r5, 36;", 2),
        ("mov.u32 %r5, tile; add.s32 %r4, %r5, 32;", 0),
    ],
)
@pytest.mark.parametrize("made", ["or", "list"])
def test_a_start_between_units_of_16_bytes(start: str, bit: int, made: str) -> None:
    """The shift that makes the field drops a bit that is always set; an advance by whole units passes, in bytes or in the field."""
    joined = {
        "or": ["cvt.u64.u32 %rd2, %r7;", "or.b64 %rd3, %rd2, 0x4000004000010000;", "add.s64 %rd1, %rd3, 2;"],
        "list": ["or.b32 %r8, %r7, 0x10000;", "mov.b64 %rd1, {%r8, 0x40000040};"],
    }
    messages = reported(_GOOD_A, start, "shr.u32 %r6, %r4, 4;", "and.b32 %r7, %r6, 16383;", *joined[made])
    lost = f"in the descriptor of B, start_address counts units of 16 bytes: bit {bit}, which is always set, is lost"
    assert messages == ([f"{lost} (PTX ISA 9.7.15.5.2 [9.4: 9.7.17.5.2])"] if bit else [])


@pytest.mark.parametrize(
    "lines",
    [
        ["shr.u64 %rd2, %rd8, 4;", "mov.b64 %rd8, 8;", "ld.shared.b64 %rd8, [tile];"],  # one of two
        ["shr.u64 %rd2, 0x408, 3;"],  # not a number of units
        ["shr.u64 %rd2, 0x408, %r5;"],
        ["shr.u64 %rd2, 0x408;"],  # an operand is missing
        ["shr.u64 %rd3, 0x408, 4;", "mul.lo.u64 %rd2, %rd3, 16;"],  # in another place
        ["shr.u64 %rd3, 0x408, 4;", "add.s64 %rd2, %rd3, %rd9;"],  # one of two parts of the address
    ],
)
def test_where_no_bit_of_a_start_is_surely_lost(lines: list[str]) -> None:
    assert reported(_GOOD_A, *lines, "or.b64 %rd1, %rd2, 0x4000004000010000;") == []


def test_known_bits_are_right_whatever_the_others_are() -> None:
    choose = random.Random(0)
    operations: list[tuple[Callable[[Bits, Bits], Bits], Callable[[int, int], int]]] = [
        (Bits.__and__, int.__and__),
        (Bits.__or__, int.__or__),
        (Bits.plus, int.__add__),
    ]
    for _ in range(20_000):
        numbers = choose.getrandbits(8), choose.getrandbits(8)
        masks = choose.getrandbits(8) & choose.getrandbits(8), choose.getrandbits(8) & choose.getrandbits(8)
        one, other = (Bits(number & ~mask, mask) for number, mask in zip(numbers, masks, strict=True))
        for of_bits, of_numbers in operations:
            made = of_bits(one, other)
            assert of_numbers(*numbers) & ~made.unknown == made.value
        assert all(number & ~one.either(other).unknown == one.either(other).value for number in numbers)
