"""Tensor memory: allocation, shifts, what orders the asynchronous instructions, loads and stores."""

from __future__ import annotations

import numpy as np
import pytest

import ptxmma
from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.check import check
from ptxmma.matrices.tracing import TensorPlace, trace

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
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r2];", []),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r2 + 8];", []),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0}, [%r2];", ["register-count"]),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, %r2;", ["operand-kind"]),
        ("tcgen05.ld.sync.aligned.16x128b.x1.pack::16b.b32 {%r0, %r1}, [%r2];", []),
        ("tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r0, %r1}, [%r2];", ["unknown-instruction"]),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%r2], 16;", []),
        ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%r2];", ["operand-count"]),
        ("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r2], 16, {%r0};", []),
        ("tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r2], {%r0};", []),
        ("tcgen05.st.sync.aligned.32x32b.x1.pack::16b.b32 [%r2], {%r0};", ["unknown-instruction"]),
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
    assert "sm_101a" not in exclusive.accepted_by()  # assemblers called it sm_110a when .exclusive came
    assert "sm_101a" in ptxmma.instruction("tcgen05.alloc.cta_group::1.sync.aligned.b32").accepted_by()
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


# --- loads and stores -------------------------------------------------------------------------------------------------------


def transfers(*families: str) -> list[Instruction]:
    return [each for family in families for each in ptxmma.instructions(family=family)]


def test_every_shape_and_count_has_the_registers_of_the_manual() -> None:
    """Table 49: a register for each 32 bits of a thread's part, at most 128."""
    per_repetition = {"16x64b": 1, "32x32b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
    counts: dict[str, list[int]] = {}
    for instruction in transfers("tcgen05.ld"):
        shape = instruction.qualifiers["shape"].partition(".")[0]
        assert instruction.operand("r").registers == per_repetition[shape] * instruction.extents["n"]
        if not instruction.qualifiers.get("pack"):
            counts.setdefault(shape, []).append(instruction.extents["n"])
    powers = [1, 2, 4, 8, 16, 32, 64, 128]
    assert counts == {shape: powers[: 8 - number.bit_length() + 1] for shape, number in per_repetition.items()}
    assert len(transfers("tcgen05.st")) == len(transfers("tcgen05.ld")) == 74


def test_fragments_that_are_those_of_mma() -> None:
    """`16x256b` holds what accumulators of 8 columns do, `16x128b` what tf32 multiplicands do: epilogues rely on that."""
    accumulator = ptxmma.instruction("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    for shape, operand in (("16x256b.x1", "d"), ("16x128b.x2", "a")):
        loaded = ptxmma.instruction(f"tcgen05.ld.sync.aligned.{shape}.b32").operand("r")
        other = accumulator.operand(operand)
        assert loaded.elements == other.elements
        assert all(loaded.coords(lane, i) == other.coords(lane, i) for lane in range(32) for i in range(loaded.elements))


def test_a_thread_of_16x64b_holds_every_second_column() -> None:
    """Neighbouring threads hold rows 8 apart; the second bit of the thread is the lowest of the column."""
    operand = ptxmma.instruction("tcgen05.ld.sync.aligned.16x64b.x4.b32").operand("r")
    assert [operand.coords(lane, 0) for lane in (0, 1, 2, 3, 4)] == [(0, 0), (8, 0), (0, 1), (8, 1), (1, 0)]
    assert [operand.coords(5, i) for i in range(4)] == [(9, 0), (9, 2), (9, 4), (9, 6)]


def test_packed_columns_share_registers() -> None:
    """Each register of a packed load has two columns where the plain one has one."""
    for shape in ("32x32b", "16x64b", "16x128b", "16x256b"):
        plain, packed = (ptxmma.instruction(f"tcgen05.ld.sync.aligned.{shape}.x2{pack}.b32").operand("r") for pack in ("", ".pack::16b"))
        assert (packed.bits, packed.registers, packed.cols) == (16, plain.registers, 2 * plain.cols)
        for lane in range(32):
            for i in range(packed.elements):
                row, col = plain.coords(lane, i // 2)
                assert packed.coords(lane, i) == (row, 2 * col + i % 2)


def test_what_is_stored_is_loaded_again() -> None:
    """At every address that fits, and nothing else changes; of packed columns the upper halves are zeros."""
    random = np.random.default_rng(0)
    pairs = zip(transfers("tcgen05.ld"), transfers("tcgen05.st"), strict=True)
    for load, store in pairs:
        source, target = store.operand("r"), load.operand("r")
        registers = random.integers(1 << 32, size=(32, source.registers), dtype=np.uint32)
        image = random.integers(1 << 32, size=(128, 512), dtype=np.uint32)
        split = {"immHalfSplitoff": 256} if "access" in source.axes else {}
        lane, column = 32, int(random.integers(0, (257 if split else 513) - source.cols))
        written = ptxmma.emulate(store, lane << 16 | column, registers, image, **split).memory
        assert (ptxmma.emulate(load, lane << 16 | column, written, **split).registers == registers).all()
        touched = np.argwhere(written != image)
        assert len(touched) <= target.elements * 32
        assert touched[:, 0].min() >= lane
        assert touched[:, 0].max() < lane + source.rows
        if source.bits == 16:
            assert (written[written != image] >> 16 == 0).all()


def test_a_traced_element_lies_in_its_cell() -> None:
    load = ptxmma.instruction("tcgen05.ld.sync.aligned.16x256b.x2.b32")
    [move] = trace(load, 9, 13).moves
    assert move.source == TensorPlace(lane=9, column=13, access=0, low=0, width=32)
    assert (move.target.lane, move.target.register) == (6, 7)
    store = ptxmma.instruction("tcgen05.st.sync.aligned.16x32bx2.x4.unpack::16b.b32")
    [move] = trace(store, 1, 3, 5).moves
    assert move.target == TensorPlace(lane=3, column=5, access=1, low=0, width=16)
    assert (move.source.lane, move.source.register, move.source.bits) == (19, 2, "31:16")


def test_loads_with_a_reduction_have_a_result_beside_the_columns() -> None:
    everything = transfers("tcgen05.ld.red", "tcgen05.ld.spcompress")
    assert (len(transfers("tcgen05.ld.red")), len(transfers("tcgen05.ld.spcompress"))) == (168, 72)
    for each in everything:
        assert each.extents["n"] >= (4 if each.operation == "tensor-compress" else 2)
        if each.operation == "tensor-compress":
            assert each.operand("cdata").registers == each.extents["n"] // 2
            assert each.operand("mdata").registers == max(1, each.extents["n"] // 32)
            assert each.operand("mdata").listed
        assert ("redval" in [operand.name for operand in each.forms[0].operands]) == (".red." in each.canonical)
    load, plain = (
        ptxmma.instruction(f"tcgen05.ld.{text}") for text in ("red.sync.aligned.32x32b.x8.min.s32", "sync.aligned.32x32b.x8.b32")
    )
    assert load.operand("r").fragment().map == plain.operand("r").fragment().map


@pytest.mark.parametrize(
    ("modifiers", "wanted"),
    [
        ("min.f32", [-3.0, 2.0, 5.0, -1.0]),
        ("max.f32", [9.0, 2.0, 5.0, 4.0]),
        ("min.abs.f32", [3.0, 2.0, 5.0, 0.5]),
        ("max.abs.f32", [9.0, 2.0, 5.0, 4.0]),
        ("max.NaN.f32", [9.0, None, 5.0, 4.0]),
        ("max.abs.NaN.f32", [9.0, None, 5.0, 4.0]),
    ],
)
def test_reductions_of_floats_ignore_a_nan_unless_told(modifiers: str, wanted: list[float | None]) -> None:
    columns = np.full((128, 512), 1e9, np.float32)
    columns[64:68, 8:10] = np.array([[-3, 9], [np.nan, 2], [5, 5], [-1, 4]])
    columns[67, 8:12] = [-1, 4, 0.5, 2]
    columns[64:67, 10:12] = columns[64:67, 8:10]
    load = ptxmma.instruction(f"tcgen05.ld.red.sync.aligned.32x32b.x4.{modifiers}")
    moved = ptxmma.emulate(load, 64 << 16 | 8, columns)
    expected = np.array([0x7FFFFFFF if value is None else np.float32(value).view(np.uint32) for value in wanted], np.uint32)
    assert moved.reduced is not None
    assert (moved.reduced[:4].view(np.uint32) == expected).all()
    plain = ptxmma.emulate(ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x4.b32"), 64 << 16 | 8, columns)
    assert (np.asarray(moved.registers).view(np.uint32) == plain.registers).all()


def test_reductions_of_integers_know_the_sign() -> None:
    cells = np.zeros((128, 512), np.uint32)
    cells[0, :2] = [5, 0xFFFFFFFF]
    for modifiers, wanted in (("min.s32", -1), ("max.s32", 5), ("min.u32", 5), ("max.u32", 0xFFFFFFFF)):
        moved = ptxmma.emulate(ptxmma.instruction(f"tcgen05.ld.red.sync.aligned.32x32b.x2.{modifiers}"), 0, cells)
        assert moved.reduced is not None
        assert int(moved.reduced[0]) == wanted


def test_what_no_source_says_is_not_emulated() -> None:
    twice = ptxmma.instruction("tcgen05.ld.red.sync.aligned.16x32bx2.x4.max.f32")
    with pytest.raises(Missing, match="no source says whether a thread reduces the columns of its own access or of both"):
        ptxmma.emulate(twice, 0, np.zeros((128, 512), np.uint32))
    compressed = ptxmma.instruction("tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2")
    with pytest.raises(Missing, match="where mdata has their indices, and which of equal columns are kept"):
        ptxmma.emulate(compressed, 0, np.zeros((128, 512), np.uint32))
    with pytest.raises(Missing, match="no source says in which order cdata has the two kept columns"):
        trace(compressed, 0, 0)


@pytest.mark.parametrize(
    ("line", "target", "wanted"),
    [
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r0, %r1}, %r3, [%r2];", "sm_103a", []),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.u32.max {%r0, %r1}, %r3, [%r2];", "sm_103a", ["spelling"]),
        ("tcgen05.ld.red.sync.aligned.32x32b.max.x2.abs.f32 {%r0, %r1}, %r3, [%r2];", "sm_110f", ["spelling"]),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r0, %r1}, %r3, [%r2];", "sm_100a", ["target"]),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.u32 {%r0, %r1}, %r3, [%r2];", "sm_103a", ["unknown-instruction"]),
        ("tcgen05.ld.red.sync.aligned.32x32b.x1.max.u32 {%r0}, %r3, [%r2];", "sm_103a", ["unknown-instruction"]),
        ("tcgen05.ld.red.sync.aligned.16x64b.x2.max.u32 {%r0, %r1}, %r3, [%r2];", "sm_103a", ["unknown-instruction"]),
        ("tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.f32 {%r0, %r1}, %r3, [%r2], 8;", "sm_103a", []),
        ("tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.f32 {%r0, %r1}, %r3, [%r2];", "sm_103a", ["operand-count"]),
        ("tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 {%r3}, {%r0, %r1}, [%r2];", "sm_107a", []),
        (
            "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.abs.f32.b2 {%r3}, {%r0, %r1}, [%r2];",
            "sm_107f",
            ["target"],
        ),
        ("tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 %r3, {%r0, %r1}, [%r2];", "sm_107a", ["list"]),
        (
            "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.NaN.f32.b2 {%r3}, {%r0, %r1}, [%r2];",
            "sm_107a",
            ["unknown-instruction"],
        ),
        ("tcgen05.ld.red.spcompress.sync.aligned.32x32b.x4.min.sp::2:4.abs.NaN.f32.b2 {%r3}, {%r0, %r1}, %r2, [%r2];", "sm_107a", []),
    ],
)
def test_reductions_are_judged_as_assemblers_do(line: str, target: str, wanted: list[str]) -> None:
    assert rules(line, target=target) == wanted


@pytest.mark.parametrize(
    ("shape", "lane", "allowed"),
    [
        ("32x32b.x1", 5, "32 lanes of one warp, from lane 0, 32, 64 or 96"),
        ("32x32b.x1", 16, "32 lanes of one warp, from lane 0, 32, 64 or 96"),
        ("32x32b.x1", 128, "32 lanes of one warp, from lane 0, 32, 64 or 96"),
        ("16x64b.x1", 8, "16 lanes of one warp, from lane 0, 16, 32, 48, 64, 80, 96 or 112"),
        ("16x64b.x1", -16, "16 lanes of one warp, from lane 0, 16, 32, 48, 64, 80, 96 or 112"),
    ],
)
def test_a_load_or_store_starts_where_lanes_of_a_warp_do(shape: str, lane: int, allowed: str) -> None:
    """A negative lane is the one that the 16 bits of the address say."""
    image, said = np.zeros((128, 512), np.uint32), lane % (1 << 16)
    with pytest.raises(ValueError, match=f"is lane {said}; tcgen05.ld.*{shape}.b32 takes {allowed}$"):
        ptxmma.emulate(f"tcgen05.ld.sync.aligned.{shape}.b32", lane << 16, image)
    with pytest.raises(ValueError, match=f"is lane {said}; tcgen05.st.*{shape}.b32 takes {allowed}$"):
        ptxmma.emulate(f"tcgen05.st.sync.aligned.{shape}.b32", lane << 16, np.zeros((32, 1), np.uint32), image)


def test_addresses_that_leave_the_image_are_errors() -> None:
    load = ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x2.b32")
    with pytest.raises(ValueError, match=r"taddr = 0x1ff is lane 0, column 511: from there \S+ leaves the memory of \(128, 512\)"):
        ptxmma.emulate(load, 511, np.zeros((128, 512), np.uint32))
    with pytest.raises(ValueError, match="tensor memory is \\(lanes, columns\\) of 32-bit cells"):
        ptxmma.emulate(load, 0, np.zeros((128, 512), np.uint8))


# --- copies -----------------------------------------------------------------------------------------------------------------


def test_each_shape_of_a_copy_has_the_multicast_that_it_needs() -> None:
    pairs = {(each.qualifiers["shape"], each.qualifiers.get("multicast", "")) for each in transfers("tcgen05.cp")}
    assert pairs == {
        ("128x256b", ""),
        ("4x256b", ""),
        ("128x128b", ""),
        ("64x128b", "warpx2::02_13"),
        ("64x128b", "warpx2::01_23"),
        ("32x128b", "warpx4"),
    }
    assert len(transfers("tcgen05.cp")) == 36
