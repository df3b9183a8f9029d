"""Tensor memory: allocation, shifts, what orders the asynchronous instructions, copies."""

from __future__ import annotations

import pytest

import ptxmma
from ptxmma.check import check

_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster{}.b64"


def rules(*lines: str, target: str = "sm_100a", version: str = "9.4") -> list[str]:
    """What `ptxmma check` reports about lines of a kernel."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.shared .align 8 .b8 shared[64];\n.visible .entry kernel() {{\n"
    registers = ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n"
    return [each.rule for each in check(head + registers + "\n".join(lines) + "\nret;\n}\n", follow=False)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f"{_ALLOC} [%r0], 32;", []),
        (f"{_ALLOC} [shared + 4], %r1;", []),
        (f"{_ALLOC} [%rd0], 512;", []),
        (f"{_ALLOC} [%r0], 96;", ["immediate"]),
        (f"{_ALLOC} [%r0], 1024;", ["immediate"]),
        (f"{_ALLOC} %r0, 32;", ["operand-kind"]),
        (f"{_ALLOC} [%f0], 32;", ["register-type"]),
        ("tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 96;", []),
        ("tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 48;", ["immediate"]),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;", []),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 [%r0], 32;", ["operand-kind"]),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 32;", ["constant"]),
        ("tcgen05.shift.down.cta_group::2 [%r0 + 32];", ["spelling"]),
        ("tcgen05.shift.cta_group::2.down %r0;", ["operand-kind"]),
        ("tcgen05.wait::ld.sync.aligned;", []),
        ("tcgen05.wait::ld;", ["unknown-instruction"]),
        ("tcgen05.fence::after_thread_sync;", []),
        (f"{_COMMIT.format('')} [%r0];", []),
        (f"{_COMMIT.format('.multicast::cluster')} [%rd0], %h0;", []),
        (f"{_COMMIT.format('.multicast::cluster')} [%rd0], 65535;", []),
        (f"{_COMMIT.format('.multicast::cluster')} [%rd0], 65536;", ["immediate"]),
        (f"{_COMMIT.format('.multicast::cluster')} [%rd0], %r0;", ["register-type"]),
        (f"{_COMMIT.format('.multicast::cluster')} [%rd0];", ["operand-count"]),
    ],
)
def test_lines_are_judged_as_assemblers_do(line: str, wanted: list[str]) -> None:
    assert rules(line) == wanted


def test_targets_and_versions() -> None:
    """A plain target has none of them; of sm_100 the family has all but the shift, which is of single chips."""
    fence, shift = ptxmma.instruction("tcgen05.fence::before_thread_sync"), ptxmma.instruction("tcgen05.shift.cta_group::1.down")
    assert {"sm_100", "sm_103", "sm_120a", "sm_90a"}.isdisjoint(fence.accepted_by())
    assert fence.accepted_by().items() >= {"sm_100a": "8.6", "sm_100f": "8.8", "sm_103a": "8.8", "sm_110a": "9.0", "sm_107f": "9.4"}.items()
    assert sorted(shift.accepted_by()) == ["sm_100a", "sm_101a", "sm_103a", "sm_107a", "sm_110a"]
    exclusive = ptxmma.instruction("tcgen05.alloc.exclusive.cta_group::1.sync.aligned.b32")
    assert exclusive.accepted_by()["sm_100a"] == "9.4"
    wide = ptxmma.instruction(_COMMIT.format(".multicast::cluster::32b"))
    assert sorted(wide.accepted_by()) == ["sm_107a", "sm_107f"]


def test_operands() -> None:
    alloc = ptxmma.instruction(_ALLOC)
    assert [(operand.name, operand.kind, operand.bracketed) for operand in alloc.forms[0].operands] == [
        ("dst", "location", True),
        ("nCols", "columns", False),
    ]
    assert alloc.operand("dst").alignment == 4
    assert alloc.operand("nCols").immediates == (32, 64, 128, 256, 512)
    masks = [ptxmma.instruction(_COMMIT.format(f".multicast::cluster{bits}")).operand("ctaMask") for bits in ("", "::16b", "::32b")]
    assert [operand.immediates for operand in masks] == [range(1 << 16), range(1 << 16), range(1 << 32)]
    assert [operand.c_type for operand in masks] == ["uint16_t", "uint16_t", "uint32_t"]


def test_each_family_has_the_protocol_that_orders_it(catalog: ptxmma.catalog.instructions.Catalog) -> None:
    protocols = {family: entry for entry in catalog.database.spec.protocols for family in entry.families}
    steps = {family: {step.instruction for step in entry.steps if step.instruction} for family, entry in protocols.items()}
    assert {"tcgen05.commit", "tcgen05.wait::ld", "tcgen05.wait::st", "tcgen05.fence::after_thread_sync"} <= steps["tcgen05.management"]
    assert steps["wgmma"] == steps["wgmma.sp"]
    assert "wgmma.fence" not in steps["tcgen05.management"]


def test_shifts_need_no_fence_of_wgmma() -> None:
    """The protocol of another family does not hold for them."""
    text = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry kernel() {\n.reg .b32 %r<4>;\n"
    assert not check(f"{text}tcgen05.shift.cta_group::1.down [%r0];\nret;\n}}\n").findings


# --- copies -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;", []),
        ("tcgen05.cp.cta_group::2.128x128b.b8x16.b6x16_p32 [%r0], %rd0;", []),
        ("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r0], %rd0;", []),
        ("tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64 [%r0], %rd0;", []),
        ("tcgen05.cp.cta_group::1.64x128b [%r0], %rd0;", ["unknown-instruction"]),
        ("tcgen05.cp.cta_group::1.32x128b.warpx2::01_23 [%r0], %rd0;", ["unknown-instruction"]),
        ("tcgen05.cp.cta_group::1.128x128b.b6x16_p32.b8x16 [%r0], %rd0;", ["unknown-instruction"]),
        ("tcgen05.cp.cta_group::1.128x256b [%r0], %r1;", ["register-type"]),
        ("tcgen05.cp.cta_group::1.128x256b %r0, %rd0;", ["operand-kind"]),
    ],
)
def test_copies_are_judged_as_assemblers_do(line: str, wanted: list[str]) -> None:
    assert rules(line) == wanted


def test_each_shape_of_a_copy_has_the_multicast_that_it_needs() -> None:
    pairs = {(each.qualifiers["shape"], each.qualifiers.get("multicast", "")) for each in list(ptxmma.instructions(family="tcgen05.cp"))}
    assert pairs == {
        ("128x256b", ""),
        ("4x256b", ""),
        ("128x128b", ""),
        ("64x128b", "warpx2::02_13"),
        ("64x128b", "warpx2::01_23"),
        ("32x128b", "warpx4"),
    }
    assert len(list(ptxmma.instructions(family="tcgen05.cp"))) == 36
