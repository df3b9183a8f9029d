"""What tcgen05.cp copies: which byte of which row lies in which lane and column of tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxmma
from ptxmma import scaling
from ptxmma.catalog.layouts.interop import from_cute
from ptxmma.catalog.operands.tensor_places import Place

_DP = 1 << 21  # bits from a lane to the next in CuTe's numbers
#: CuTe's traits of each copy: the place of a bit, numbered by row, bit in it and copies; rows, bytes, copies.
_CUTE = {
    "128x256b": (f"(128,256):({_DP},1)", 128, 32, 1),
    "128x128b": (f"(128,128):({_DP},1)", 128, 16, 1),
    "4x256b": (f"(4,256):({32 * _DP},1)", 4, 32, 1),
    "64x128b.warpx2::02_13": (f"(64,128,2):({_DP},1,{64 * _DP})", 64, 16, 2),
    "64x128b.warpx2::01_23": (f"((32,2),128,2):(({_DP},{64 * _DP}),1,{32 * _DP})", 64, 16, 2),
    "32x128b.warpx4": (f"(32,128,4):({_DP},1,{32 * _DP})", 32, 16, 4),
}


def _copied(shape: str, more: str = "") -> ptxmma.Operand:
    return ptxmma.instruction(f"tcgen05.cp.cta_group::1.{shape}{more}").operand("taddr")


@pytest.mark.parametrize("shape", _CUTE)
@pytest.mark.parametrize("more", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
def test_every_byte_lies_where_cute_puts_its_bits(shape: str, more: str) -> None:
    text, rows, width, copies = _CUTE[shape]
    operand, cute = _copied(shape, more), from_cute(text)
    assert operand.sizes == {"row": rows, "byte": width, **({"copy": copies} if copies > 1 else {})}
    seen = set()
    for copy in range(copies):
        numbered: dict[str, Any] = {"copy": copy} if copies > 1 else {}
        row, byte = (grid.ravel() for grid in np.meshgrid(np.arange(rows), np.arange(width), indexing="ij"))
        place = operand.locate(row, byte, **numbered)
        theirs = np.asarray(cute(row + rows * (8 * byte + 8 * width * copy)))
        assert ((place.lane * _DP + place.column * 32 + place.bit) == theirs).all()
        seen |= set(theirs.tolist())
        back = operand.coords(place.lane, place.column, place.bit)
        assert (back[0] == row).all()
        assert (back[1] == byte).all()
    assert len(seen) == rows * width * copies
    assert operand.placed().columns == width // 4


def test_halves_go_to_pairs_of_warps() -> None:
    """Of 64 rows each pair of warps has 32: warps 0 and 2 the same ones, or warps 0 and 1."""
    for shape, pairs in (("64x128b.warpx2::02_13", [{0, 2}, {1, 3}]), ("64x128b.warpx2::01_23", [{0, 1}, {2, 3}])):
        operand = _copied(shape)
        for half, warps in enumerate(pairs):
            for row in (32 * half, 32 * half + 31):
                assert {operand.locate(row, 0, copy=copy).lane // 32 for copy in (0, 1)} == warps


def test_a_copy_of_four_rows_reaches_a_lane_of_each_warp() -> None:
    operand = _copied("4x256b")
    assert [operand.locate(row, 5) for row in range(4)] == [Place(0, 32 * row, 1, 8) for row in range(4)]
    assert operand.locate(3, 0).address(31 << 16) == 127 << 16
    assert np.flatnonzero(operand.pack(np.ones((4, 32), np.uint8), address=31 << 16)[:, 0]).tolist() == [31, 63, 95, 127]
    with pytest.raises(ValueError, match=r"address 0x200000 is lane 32; it must be lane 0\.\.31"):
        operand.pack(np.ones((4, 32), np.uint8), address=32 << 16)
    with pytest.raises(ValueError, match=r"nothing of the operand lies at .*; its layout is data of tcgen05\.cp\.4x256b"):
        operand.coords(1, 0)


@pytest.mark.parametrize(
    ("shape", "rows", "size"),
    [("128x256b", 128, 32), ("128x128b", 128, 16), ("4x256b", 4, 32), ("64x128b.warpx2::02_13", 64, 16), ("64x128b.warpx2::01_23", 64, 16),
     ("32x128b.warpx4", 32, 16)],
)  # fmt: skip
def test_a_copy_writes_its_bytes_and_no_others(shape: str, rows: int, size: int) -> None:
    spelling, rng = f"tcgen05.cp.cta_group::1.{shape}", np.random.default_rng(rows + size)
    data, before = rng.integers(0, 256, (rows, size), np.uint8), rng.integers(0, 1 << 32, (128, 64), np.uint32)
    after = ptxmma.emulate(spelling, 8, data, before).memory
    cells = after.astype("<u4").view(np.uint8).reshape(128, 64 * 4)
    seen = np.zeros((128, 64 * 4), bool)
    operand = _copied(shape)
    sizes = operand.sizes
    for row in range(rows):
        for byte in range(size):
            for copy in range(sizes.get("copy", 1)):
                numbers: dict[str, Any] = {"copy": copy} if "copy" in sizes else {}
                place = operand.locate(row, byte, **numbers)
                at = place.lane, 4 * (8 + place.column) + place.bit // 8
                assert cells[at] == data[row, byte]
                seen[at] = True
    untouched = before.astype("<u4").view(np.uint8).reshape(128, 64 * 4)
    assert np.array_equal(cells[~seen], untouched[~seen])
    assert np.array_equal(operand.unpack(after, address=8), data)
    assert np.array_equal(
        ptxmma.emulate(spelling, taddr=8, s_desc=data).memory[:, :64], np.where(seen, cells, 0).astype(np.uint8).view("<u4")
    )


@pytest.mark.parametrize(
    ("spelling", "rows", "message"),
    [
        (
            "tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64",
            (128, 8),
            r"rows has shape \(128, 8\); .* takes \(rows, bytes\), 16 bytes for 16",
        ),
        ("tcgen05.cp.cta_group::2.128x128b", (128, 16), "versions of the manual differ about the shared memory"),
        ("tcgen05.cp.cta_group::1.128x128b", (64, 16), r"the data has shape \(64, 16\); it takes \(128, 16\)"),
    ],
)
def test_copies_that_are_not_emulated(spelling: str, rows: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptxmma.emulate(spelling, 0, np.zeros(rows, np.uint8))


@pytest.mark.parametrize(("element", "source", "width"), [("e2m1", "b4x16_p64", 4), ("e3m2", "b6x16_p32", 6), ("e2m3", "b6x16_p32", 6)])
def test_narrow_elements_are_expanded_to_the_a_of_a_product(element: str, source: str, width: int) -> None:
    """Packed by Python's integers, expanded by the copy, read as the product reads A."""
    codes = np.random.default_rng(width).integers(0, 1 << width, (128, 32), np.uint8)
    rows = np.zeros((128, 32), np.uint8)
    for row, group in np.ndindex(128, 2):
        packed = sum(int(code) << width * number for number, code in enumerate(codes[row, 16 * group : 16 * group + 16]))
        rows[row, 16 * group : 16 * group + 16] = list(packed.to_bytes(16, "little"))
    rows[:, 2 * width : 16] = 0xAA  # padding is ignored
    memory = ptxmma.emulate(f"tcgen05.cp.cta_group::1.128x256b.b8x16.{source}", 4, rows).memory
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f8f6f4", m=128, n=64, k=32, dtype="f32", atype=element, btype="e4m3")
    operand = product.operand("a-tmem")
    assert np.array_equal(operand.unpack(memory, address=4).view(np.uint8), codes)
    assert np.array_equal(memory, operand.pack(codes, address=4))


def test_scale_factors_in_the_order_of_cublas_are_those_of_a_product_after_the_copy() -> None:
    """A block of 512 bytes, which has 128 rows of 4 factors, copied by 32x128b.warpx4."""
    product = ptxmma.instruction(
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X",
        m=128, n=128, k=64, dtype="f32", atype="e2m1", btype="e2m1", stype="ue4m3",
    )  # fmt: skip
    scales = next(operand for operand in product.operands if operand.kind == "tensor-scales" and operand.of == "a")
    factors = np.arange(512, dtype=np.uint16).reshape(128, 4)
    block = scaling.to_cublas((factors % 251).astype(np.uint8)).reshape(32, 16)
    operand = _copied("32x128b.warpx4")
    for row in range(128):
        for number in range(4):
            for copy in range(4):
                there = scales.locate(row, number, copy=copy)
                source = operand.coords(there.lane, there.column, there.bit)
                assert source[2] == copy
                assert block[source[0], source[1]] == factors[row, number] % 251
