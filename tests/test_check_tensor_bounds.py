"""Accesses that leave the allocation, and collector buffers that nothing fills."""

from __future__ import annotations

import pytest

from ptxmma.check import check
from ptxmma.matrices.descriptors import instruction_descriptor

_HEAD = ".version 9.4\n.target sm_100a\n.address_size 64\n{} kernel()\n{{\n"
_HEAD += ".reg .pred %p<2>; .reg .b32 %r<20>, %v<8>; .reg .b64 %rd<4>; .shared .align 8 .b8 slot[8]; .shared .align 8 .b8 bar[8];\n"
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;"
_READ = "ld.shared.b32 %r0, [slot];"
_LOAD = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%v0, %v1, %v2, %v3}, [%r1];"
_RING = "mov.b32 %r2, 0; loop: shl.b32 %r4, %r2, {1}; {0} add.s32 %r3, %r2, 1; setp.eq.b32 %p1, %r3, 3; selp.b32 %r2, 0, %r3, %p1;"
_F16 = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd0, %rd1, %r9, %p0;"


def said(rule: str, *lines: str, kind: str = ".visible .entry") -> list[str]:
    """The messages of a rule about a kernel, whatever else is wrong with it."""
    findings = [each for each in check(_HEAD.format(kind) + "\n".join((*lines, "ret;", "}", ""))) if each.rule == rule]
    assert all(each.severity == "warning" for each in findings)
    return [each.message for each in findings]


def bounds(*lines: str, kind: str = ".visible .entry") -> list[str]:
    return said("tensor-memory-bounds", *lines, kind=kind)


@pytest.mark.parametrize(
    ("made", "columns"),
    [
        ("add.s32 %r1, %r0, 61;", "61 to 64"),
        ("add.s32 %r2, %r0, 32; add.u32 %r3, %r2, 64; mov.b32 %r1, %r3;", "96 to 99"),
        ("add.s32 %r1, %r0, 60;", ""),
        ("add.s32 %r2, %r0, 96; add.s32 %r1, %r2, -64;", ""),
        ("add.s32 %r1, %r0, %r5;", ""),
        ("add.s32 %r1, %r0, 61; add.s32 %r1, %r0, 0;", ""),  # either
        ("add.s32 %r1, %r0, 61; @%p0 ld.global.b32 %r1, [%rd0];", ""),
        ("shl.b32 %r2, %r5, 21; add.s32 %r3, %r2, %r0; add.s32 %r1, %r3, -8388544;", "64 to 67"),  # the warps from 4 on
        ("shl.b32 %r2, %r5, 21; add.s32 %r3, %r0, %r2; add.s32 %r1, %r3, -8388548;", ""),
        ("shl.b32 %r2, %r5, 21; add.s32 %r3, %r0, %r2; add.s32 %r1, %r3, -4;", ""),
        ("shl.b32 %r2, %r5, 15; add.s32 %r3, %r0, %r2; add.s32 %r1, %r3, 64;", ""),  # a column, too
        ("mul.lo.s32 %r2, %r5, 32; add.s32 %r1, %r2, 500;", ""),
        ("and.b32 %r2, %r5, 6291520; add.s32 %r3, %r2, %r0; add.s32 %r1, %r3, 64;", "64 to 67"),  # or more, for other warps
        ("and.b32 %r2, %r5, 6291520; add.s32 %r3, %r2, %r0; add.s32 %r1, %r3, 32;", ""),
        (_RING.format("add.s32 %r1, %r4, %r0;", 5), "64 to 67"),  # the stages begin at 0, 32 and 64
        (_RING.format("add.s32 %r1, %r4, %r0;", 4), ""),
    ],
)
def test_distances_from_the_allocation(made: str, columns: str) -> None:
    message = f"columns {columns} are not among the 64 columns that the kernel has allocated; use lower ones "
    message += "(PTX ISA 9.7.16.8.3 [9.4: 9.7.18.8.3])"
    assert bounds(_ALLOC, _READ, made, _LOAD) == [message] * bool(columns)
    assert bounds(_READ, made, _LOAD) == []  # allocated elsewhere: at most 512
    assert bounds(_ALLOC, _READ, made, _LOAD, kind=".visible .func") == []
    assert bounds(_ALLOC, _READ, made, _LOAD, "call.uni other;") == []


def test_several_allocations_count_together() -> None:
    far = "add.s32 %r1, %r0, 124;"
    assert len(bounds(_ALLOC, _READ, far, _LOAD)) == 1
    assert bounds(_ALLOC, _ALLOC, _READ, far, _LOAD) == []
    assert bounds(_ALLOC.replace("64;", "%r7;"), _READ, far, _LOAD) == []  # so many as a register says
    assert len(bounds("mov.b32 %r7, 64;", _ALLOC.replace("64;", "%r7;"), _READ, far, _LOAD)) == 1


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (508, ""),
        (509, "columns 509 to 512 are not among the 512 columns of tensor memory; use lower ones"),
        (96 << 16, ""),
        (112 << 16, "lanes 112 to 143 are not among the 128 of tensor memory; use lower ones"),
    ],
)
def test_constant_addresses(address: int, text: str) -> None:
    assert [each.partition(" (")[0] for each in bounds(f"mov.b32 %r1, {address:#x};", _LOAD)] == [text] * bool(text)
    lanes = bounds(_ALLOC, _READ, _LOAD.replace("%r1", f"%r0+{address}")) if address >= 1 << 16 else []
    assert [each.partition(" (")[0] for each in lanes] == [text] * bool(lanes)


def test_the_result_of_a_product_has_n_columns() -> None:
    def product(n: int, column: int) -> list[str]:
        bits = instruction_descriptor("f16", m=128, n=n, dtype="f32", atype="bf16", btype="bf16")
        return bounds(_ALLOC, _READ, f"mov.b32 %r9, {bits:#x};", f"add.s32 %r1, %r0, {column};", _F16)

    assert product(64, 0) == product(32, 32) == []
    assert [each.partition(" (")[0] for each in product(64, 16)] == [
        "columns 16 to 79 are not among the 64 columns that the kernel has allocated; use lower ones"
    ]
    assert bounds(_ALLOC, _READ, "add.s32 %r1, %r0, 63;", _F16) == []  # of any N
    assert len(bounds(_ALLOC, _READ, "add.s32 %r1, %r0, 64;", _F16)) == 1
    assert len(bounds(_ALLOC, _READ, "add.s32 %r1, %r0, 64;", _F16.replace("[%r1], %rd0", "[%r0], [%r1+8]"))) == 1  # A


def test_the_address_of_scale_factors_may_have_their_id() -> None:
    product = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r0], %rd0, %rd1, %r9, [%r0+{}], [%r0+40], %p0;"
    assert bounds(_ALLOC, _READ, product.format(1 << 30 | 32)) == []
    assert len(bounds(_ALLOC, _READ, product.format(1 << 30 | 64))) == 1


_FILL, _USE = (_F16.replace("f16 ", f"f16.collector::a::{what} ") for what in ("fill", "lastuse"))
_OF_B = "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b{}::{} [%r1], %rd0, %rd1, %r9, %p0;"


def test_a_collector_that_is_used_is_filled() -> None:
    def empty(*lines: str, kind: str = ".visible .entry") -> list[str]:
        return said("empty-collector", *lines, kind=kind)

    where = "PTX ISA 9.7.16.10.9.1 [9.4: 9.7.18.10.10.1]"
    said_of_a = f"no product of the kernel fills this buffer with .collector::a::fill: behaviour is undefined ({where})"
    assert empty(_USE) == empty(_USE.replace("lastuse", "use"), _USE) == [said_of_a]
    assert empty(_FILL, _USE) == empty(_USE, _FILL) == []  # a loop may bring the product with ::fill first
    assert empty(_USE.replace("lastuse", "discard"), _F16) == []
    assert empty(_USE, kind=".visible .func") == empty(_USE, "call.uni other;") == []
    assert empty(_OF_B.format(1, "fill"), _OF_B.format(1, "use")) == []
    (message,) = empty(_OF_B.format(0, "fill"), _OF_B.format(1, "use"))
    assert ".collector::b1::fill" in message
    assert len(empty(_USE, _OF_B.format(2, "use"))) == 2
