"""Tensor maps: their errors, and copies of whole tiles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from ptxmma import TensorMap, paths
from ptxmma.generator import pipeline
from ptxmma.generator.problems import SpecError
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.box_rules import IllegalBoxError
from ptxmma.matrices.shared_memory import CopiedTile, Ring, SharedLayout, read_operand


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"box": (72, 128)}, r"box\[0\] = 72: .*wider than the 128 bytes.*nearest legal one is 64"),
        ({"box": (64, 300)}, r"box\[1\] = 300: .*1 to 256.*nearest legal one is 256"),
        ({"box": (60, 128)}, r"box\[0\] = 60: .*whole 16 bytes.*nearest legal one is 56"),
        ({"shape": (4095, 4096)}, r"strides\[0\] = 8190: .*multiple of 16 bytes.*nearest legal one is 8192"),
        ({"shape": (4090, 4096), "strides": (8180,)}, r"strides\[0\] = 8180: .*nearest legal one is 8192"),  # 8176 is nearer, and too short
        ({"swizzle": 96}, r"unknown swizzle '96B'; known: none.*The driver makes no tensor map with the swizzle of 96 bytes"),
        ({"swizzle": "48B"}, r"unknown swizzle '48B'; known: none, 32B, 64B, 128B, 128B_ATOM_32B, "),
        ({"address": 8}, r"address = 8: .*nearest legal one is 0"),
        ({"fill": "Nan"}, r"unknown fill 'Nan'"),
        ({"box": (64,)}, r"box has 1 entry; it takes 2: one for each dimension"),
        ({"shape": (8,) * 6}, r"^shape = 8 x 8 x 8 x 8 x 8 x 8: 6 dimensions; a tensor map has 1 to 5$"),
        ({"box": (64, 4096)}, r"box\[1\] = 4096: .*nearest legal one is 256; .*nearest legal box is 64x256"),
        ({"shape": (1 << 33, 64), "strides": (8192,)}, r"shape\[0\] = 8589934592: .*nearest legal one is 4294967296"),
        ({"channels": 64, "mode": "tiled"}, r"tiled has a box, and no channels"),
        ({"element": "e2m3"}, r"TMA copies e2m3 padded only"),
        ({"element": "bf16x"}, r"unknown type 'bf16x'"),
    ],
)
def test_errors_say_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"element": "bf16", "shape": (4096, 4096), "box": (64, 128), "swizzle": "128B"} | arguments
    with pytest.raises(ValueError, match=message):
        BoxGeometry(**given)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        ({"box": (72, 300)}, (64, 256)),
        ({"shape": (4096, 4096, 64), "box": (72, 300, 9)}, (64, 256, 7)),  # 64 x 256 x 8 elements are too many bytes
        ({"shape": (4096, 4096, 64), "box": (64, 256, 8)}, (64, 256, 7)),
        ({"shape": (64,) * 5, "box": (256,) * 5, "swizzle": "none"}, (256, 256, 3, 1, 1)),
        ({"shape": (64, 56, 56, 8), "lower": (0, 0), "upper": (0, 0), "channels": 70, "pixels": 2000}, (64, 1024)),
        ({"box": (4096, 64)}, (64, 64)),
        ({"box": (4096, 4096)}, (64, 256)),
        ({"box": (64, 128), "address": 8}, ()),  # the box is legal
        ({"shape": (64,) * 6, "box": (64, *(8,) * 5)}, ()),  # no box of 6 dimensions is legal
    ],
)
def test_the_nearest_legal_box(arguments: dict[str, Any], nearest: tuple[int, ...]) -> None:
    given: dict[str, Any] = {"shape": (4096, 4096), "swizzle": "128B"} | arguments
    element = "u8" if given["swizzle"] == "none" else "f16"
    with pytest.raises(IllegalBoxError) as raised:
        BoxGeometry(element, **given)
    assert raised.value.nearest == nearest
    if nearest:
        extents_are = "channels and pixels are" if "pixels" in given else "box is"
        assert str(raised.value).endswith(f"; the nearest legal {extents_are} {'x'.join(map(str, nearest))}")
        extents = dict(zip(("channels", "pixels"), nearest, strict=True)) if "pixels" in given else {"box": nearest}
        BoxGeometry(element, **given | extents)


def test_a_ring_counts_bytes_of_copies_that_bring_some() -> None:
    assert Ring(5, (9216, 4096)).transaction_bytes == 13312
    with pytest.raises(ValueError, match=r"copies = -3: a copy counts 1 byte or more"):
        Ring(5, (10000, -3))
    assert Ring(5, (1 << 19, (1 << 19) - 1)).transaction_bytes == (1 << 20) - 1
    with pytest.raises(ValueError, match=r"copies of 1048576 bytes: an mbarrier cannot count them in a phase"):
        Ring(5, (1 << 19, 1 << 19))
    with pytest.raises(ValueError, match=r"stages = 1000000000: a thread block has at most \d+ bytes of shared memory"):
        Ring(10**9)


@pytest.mark.parametrize(
    ("element", "majorness", "swizzle", "x", "k", "padded"),
    [
        ("bf16", "K", "128B", 128, 64, False), ("bf16", "K", "128B", 64, 256, False), ("f16", "MN", "64B", 64, 32, False),
        ("e4m3", "K", "32B", 8, 32, False), ("e4m3", "MN", "128B", 256, 16, False), ("tf32", "K", "none", 64, 4, False),
        ("e2m3", "K", "128B", 64, 128, True), ("e2m1", "K", "128B", 64, 128, True),
    ],
)  # fmt: skip
def test_boxes_of_a_layout_write_that_layout(element: str, majorness: str, swizzle: str, x: int, k: int, padded: bool) -> None:
    layout = SharedLayout(element, majorness, swizzle, x, k, padded=padded, family="tcgen05")
    inner, outer = (k, x) if majorness == "K" else (x, k)
    tile = layout.tma
    box = TensorMap(element, (inner * 4, outer * 4), (tile.inner, tile.outer), swizzle=swizzle, padded=padded)
    assert box.difference(layout) is None
    assert box.transaction_bytes * tile.boxes == tile.transaction_bytes
    wrong = TensorMap(element, (inner * 4, outer * 4), (tile.inner, tile.outer), swizzle="none", padded=padded)
    assert (wrong.difference(layout) is None) == (swizzle == "none")


@pytest.mark.parametrize(("element", "bits"), [("bf16", 16), ("e4m3", 8), ("e2m1", 4), ("f64", 64)])
def test_a_store_writes_back_what_a_load_read(element: str, bits: int) -> None:
    random = np.random.default_rng(3)
    tensor = random.integers(0, 1 << min(bits, 16), (9, 7, 96)).astype(f"u{max(bits // 8, 1)}")
    inner = 128 // bits
    box = TensorMap(element, (96, 7, 9), (inner, 3, 2), swizzle="128B")
    image = box.load(tensor, (inner, 5, 8), destination=896)
    target = np.zeros_like(tensor)
    stored = box.store(image, target, (inner, 5, 8), destination=896)
    assert (stored[8:, 5:7, inner : 2 * inner] == tensor[8:, 5:7, inner : 2 * inner]).all()
    assert np.count_nonzero(stored) == np.count_nonzero(tensor[8:, 5:7, inner : 2 * inner])
    with pytest.raises(ValueError, match=r"at\[2\] = -1: a store begins at coordinates from 0 on: the copy traps"):
        box.store(image, target, (inner, 5, -1), destination=896)


def test_padding_stays_and_a_store_reads_bytes() -> None:
    tensor = np.random.default_rng(4).integers(0, 64, (2, 128), np.uint8)
    box = TensorMap("e3m2", (128, 2), (128, 2), swizzle="none", padded=True)
    image = box.load(tensor, (0, 0), image=np.full(box.size, 0xEE, np.uint8)).reshape(-1, 16)
    assert (image[:, 12:] == 0xEE).all()
    bits = np.unpackbits(image[:, :12], axis=1, bitorder="little").reshape(-1, 6)
    assert (np.packbits(bits, axis=1, bitorder="little").reshape(2, 128) == tensor).all()
    assert (box.store(tensor.reshape(-1) | 0xC0, np.zeros_like(tensor), (0, 0)) == tensor).all()
    fours = TensorMap("e2m1", (128, 2), (128, 2), swizzle="none", padded=True)
    with pytest.raises(ValueError, match="padded elements of 4 bits are loaded, never stored"):
        fours.store(np.zeros(fours.size, np.uint8), tensor & 15, (0, 0))


def test_rows_are_gathered_and_scattered() -> None:
    tensor = np.arange(64 * 40, dtype=np.uint16).reshape(40, 64)
    box = TensorMap("bf16", (64, 40), (64, 1), swizzle="128B", mode="gather4")
    at = (0, 9, -1, 39, 3)
    assert (box.transaction_bytes, box.size, box.alignments["at"]) == (512, 512, 8)
    image = np.zeros(1024, np.uint8)
    for half, rows in enumerate((at, (0, 1, 2, 40, 5))):  # two of them fill the eight rows of an atom
        image[half * 512 :][:512] = box.load(tensor, rows, destination=512 * half)
    loaded = SharedLayout("bf16", "K", "128B", 8, 64).load_xk(image).view(np.uint16)
    nothing = np.zeros(64, np.uint16)
    assert (loaded == [tensor[9], nothing, tensor[39], tensor[3], tensor[1], tensor[2], nothing, tensor[5]]).all()
    assert box.source(at, point={"d0": 5, "d1": 2}) == (5, 39)
    stored = box.store(image[:512], np.zeros_like(tensor), (0, 4, 50, 6, 7))
    assert (stored[[4, 6, 7]] == loaded[[0, 2, 3]]).all()
    assert np.count_nonzero(stored.any(1)) == 3
    assert "cuTensorMapEncodeTiled(" in box.call()
    assert "(cuuint32_t[]){64, 1}" in box.call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"box": (64, 4)}, r"box\[1\] = 4: a box of gather4 and scatter4 is one row; the nearest legal one is 1"),
        ({"shape": (64, 40, 2), "box": (64, 1, 1)}, "gather4 and scatter4 take a matrix, of rank 2, not of rank 3"),
        ({"box": (72, 1)}, "wider than the 128 bytes"),
        ({"mode": "gather"}, "unknown mode 'gather'"),
    ],
)
def test_what_gather4_takes(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"element": "bf16", "shape": (64, 40), "box": (64, 1), "swizzle": "128B", "mode": "gather4"} | arguments
    with pytest.raises(ValueError, match=message):
        BoxGeometry(**given)


def test_locate_and_coords_are_inverse() -> None:
    box = BoxGeometry("e2m3", (256, 64), (128, 8), swizzle="128B", padded=True)
    for d0 in range(0, 128, 5):
        for d1 in range(8):
            address, bit = box.locate(1024, d0=d0, d1=d1)
            assert box.coords(address, bit, 1024) == {"d0": d0, "d1": d1}
    assert box.coords(1024 + 15, 0, 1024) is None


def test_a_tile_goes_from_a_tensor_through_descriptors_to_d() -> None:
    """A and B of a product are read by TMA and by descriptors; D is that of the matrices."""
    ins = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    random = np.random.default_rng(1)
    whole_a, whole_b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 128), (64, 128)))
    images = {}
    for name, whole, rows, at in (("a", whole_a, 64, (64, 128)), ("b", whole_b, 8, (64, 16))):
        box = TensorMap("f16", whole.shape[::-1], (64, rows), swizzle="128B")
        images[name] = box.load(whole, at)
        assert box.difference(SharedLayout("f16", "K", "128B", rows, 64)) is None
    a, b = (
        np.concatenate(
            [read_operand(step, images[name], "f16", rows, 16, "K") for step in SharedLayout("f16", "K", "128B", rows, 64).steps(16)], 1
        )
        for name, rows in (("a", 64), ("b", 8))
    )
    d = ptxmma.matmul(ins, a, b.T).d
    assert (d == whole_a[128:192, 64:128].astype(float) @ whole_b[16:24, 64:128].T.astype(float)).all()


def test_a_product_goes_from_tensors_through_boxes_and_descriptors_to_a_tensor() -> None:
    """The whole loop of a kernel: several boxes a tile, several stages along K, and D back through TMA."""
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16")
    random = np.random.default_rng(2)
    m, n, k, stage = 128, 128, 192, 128
    left, right = (random.integers(-2, 3, (extent + 40, k)).astype(np.float16) for extent in (m, n))
    layouts = [SharedLayout("f16", "K", "128B", m, stage), SharedLayout("f16", "K", "128B", n, stage, start=m * stage * 2)]
    maps = [TensorMap("f16", tensor.shape[::-1], (64, 64), swizzle="128B") for tensor in (left, right)]
    sums = [np.zeros((128, 64), np.float32) for _ in range(m // 64)]
    for first in range(0, k, stage):  # the last stage reaches beyond the tensors, and is filled up with zeros
        tiles = [CopiedTile(box, layout, (first, row)) for box, layout, row in zip(maps, layouts, (24, 8), strict=True)]
        assert [len(tile.copies) for tile in tiles] == [4, 4]
        assert [tile.transaction_bytes for tile in tiles] == [layout.tma.transaction_bytes for layout in layouts]
        memory = np.concatenate([box.load_tile(tensor, tile) for box, tensor, tile in zip(maps, (left, right), tiles, strict=True)])
        for part, d in enumerate(sums):
            for step_a, step_b in zip(layouts[0].steps(16, 64 * part, 64), layouts[1].steps(16), strict=True):
                d = ptxmma.emulate(wgmma, step_a, step_b, d, memory=memory).d
            sums[part] = d
    d = np.concatenate([wgmma.operand("d").unpack(part) for part in sums]).astype(np.float16)
    layout = SharedLayout("f16", "K", "128B", m, n)
    target = TensorMap("f16", (160, 140), (64, 128), swizzle="128B")
    result = target.store_tile(layout.store_xk(d), np.zeros((140, 160), np.float16), CopiedTile(target, layout, (64, 8)))
    wanted = np.zeros((140, 160), np.float16)
    wanted[8:136, 64:] = (left[24:152].astype(np.float32) @ right[8:136].astype(np.float32).T)[:, :96]
    np.testing.assert_array_equal(result, wanted)


def test_a_convolution_goes_from_images_through_im2col_to_d() -> None:
    """Each of nine filter positions is an offset of the same 64 pixels, and adds to D."""
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    random = np.random.default_rng(3)
    images = random.integers(-2, 3, (2, 9, 7, 64)).astype(np.float16)  # images, rows, columns, channels
    filters = random.integers(-2, 3, (8, 9, 64)).astype(np.float16)  # results, positions, channels
    source = TensorMap("f16", images.shape[::-1], lower=(-1, -1), upper=(-1, -1), channels=64, pixels=64, swizzle="128B")
    weights = TensorMap("f16", filters.shape[::-1], (64, 1, 8), swizzle="128B")
    layouts = [SharedLayout("f16", "K", "128B", 64, 64), SharedLayout("f16", "K", "128B", 8, 64, start=source.size)]
    assert [box.difference(layout) for box, layout in zip((source, weights), layouts, strict=True)] == [None, None]
    padded = np.pad(images.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    d, wanted = np.zeros((128, 4), np.float32), np.zeros((2, 9, 7, 8), np.float32)
    for position in range(9):
        row, column = divmod(position, 3)
        pixels = source.load(images, (0, -1, 2, 0), offsets=(column, row))  # from row 3, column 0 of the first image on
        memory = np.concatenate([pixels, weights.load(filters, (0, position, 0), destination=source.size)])
        for step_a, step_b in zip(*(layout.steps(16) for layout in layouts), strict=True):
            d = ptxmma.emulate(wgmma, step_a, step_b, d, memory=memory).d
        wanted += padded[:, row : row + 9, column : column + 7] @ filters[:, position].astype(np.float32).T
    np.testing.assert_array_equal(wgmma.operand("d").unpack(d), wanted.reshape(-1, 8)[3 * 7 : 3 * 7 + 64])


def test_gathered_rows_go_through_descriptors_to_d() -> None:
    wgmma = ptxmma.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    random = np.random.default_rng(4)
    table, right = (random.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (100, 8))
    rows = [int(row) for row in random.integers(0, 100, 64)]
    gather, box = TensorMap("f16", (64, 100), (64, 1), swizzle="128B", mode="gather4"), TensorMap("f16", (64, 8), (64, 8), swizzle="128B")
    layouts = [SharedLayout("f16", "K", "128B", 64, 64), SharedLayout("f16", "K", "128B", 8, 64, start=64 * 128)]
    pieces = [gather.load(table, (0, *rows[first : first + 4]), destination=first * 128) for first in range(0, 64, 4)]
    memory = np.concatenate([*pieces, box.load(right, (0, 0), destination=64 * 128)])
    d = np.zeros((128, 4), np.float32)
    for step_a, step_b in zip(*(layout.steps(16) for layout in layouts), strict=True):
        d = ptxmma.emulate(wgmma, step_a, step_b, d, memory=memory).d
    np.testing.assert_array_equal(wgmma.operand("d").unpack(d), table[rows].astype(np.float32) @ right.T.astype(np.float32))


def test_atoms_of_32_bytes_go_through_descriptors_to_d() -> None:
    """A and B of tf32, both MN-major, whose rows in the tensors are the steps along k."""
    product = ptxmma.instruction("tcgen05.mma.cta_group::1.kind::tf32", m=128, n=64, dtype="f32", atype="tf32", btype="tf32")
    random = np.random.default_rng(5)
    left, right = (random.integers(-4, 5, (24, extent)).astype(np.float32) for extent in (152, 72))
    layouts = [SharedLayout("tf32", "MN", "128B_ATOM_32B", x, 16, start=start, family="tcgen05") for x, start in ((128, 0), (64, 8192))]
    images = []
    for tensor, layout, at in zip((left, right), layouts, ((24, 4), (4, 4)), strict=True):
        box = TensorMap("tf32", tensor.shape[::-1], (32, 16), swizzle="128B_ATOM_32B")
        images.append(box.load_tile(tensor, CopiedTile(box, layout, at)))
    total: Any = None
    for steps in zip(*(layout.steps(8) for layout in layouts), strict=True):
        a, b = (
            read_operand(step, image, "tf32", layout.x, 8, "MN", layout.start)
            for step, image, layout in zip(steps, images, layouts, strict=True)
        )
        total = ptxmma.emulate(product, a, b.T, total).d
    np.testing.assert_array_equal(total, left[4:20, 24:152].T @ right[4:20, 4:68])


@pytest.mark.parametrize(
    ("arguments", "layout", "at"),
    [
        ({"box": (64, 8), "swizzle": "128B"}, ("K", "128B", 32, 128), (8, 3)),
        ({"box": (64, 16, 1), "swizzle": "128B"}, ("MN", "128B", 128, 32), (16, 2, 1)),
        ({"box": (32, 1, 16), "swizzle": "64B", "element_strides": (1, 1, 2)}, ("K", "64B", 32, 32), (0, 4, -3)),
        ({"box": (64, 4, 4), "swizzle": "128B"}, ("K", "128B", 16, 64), (-8, 5, 1)),
        ({"channels": 32, "pixels": 16, "lower": (-1,), "upper": (-1,), "swizzle": "64B"}, ("K", "64B", 48, 64), (0, 3, 0)),
    ],
)
def test_the_origin_of_each_element_of_a_tile(arguments: dict[str, Any], layout: tuple[Any, ...], at: tuple[int, ...]) -> None:
    shape = (152, 30, 9)[: len(at)]
    image = SharedLayout("bf16", *layout)
    box = TensorMap("bf16", shape, **arguments)
    tile = CopiedTile(box, image, at)
    tensor = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape[::-1]) + 1
    loaded = image.load_xk(box.load_tile(tensor, tile)).view(np.uint16)
    for x in range(image.x):
        for k in range(0, image.k, 3):
            origin = tile.origin(x, k)
            inside = origin.byte is not None
            assert loaded[x, k] == (tensor[origin.at[::-1]] if inside else 0)
            assert not inside or origin.byte == 2 * (int(loaded[x, k]) - 1)


def test_the_origin_in_an_interleaved_tensor() -> None:
    image, box = SharedLayout("bf16", "K", "none", 16, 32), TensorMap("bf16", (16, 4, 2), (16, 1, 1), interleave="16B")
    tensor = np.arange(16 * 4 * 2 * 8, dtype=np.uint16).reshape(2, 4, 16, 8)
    tile = CopiedTile(box, image, (0, 0, 1))
    loaded = image.load_xk(box.load_tile(tensor, tile)).view(np.uint16)
    assert all(tile.origin(x, k).byte == 2 * loaded[x, k] for x in range(16) for k in range(32))


def test_tiles_that_boxes_do_not_fill() -> None:
    image = SharedLayout("bf16", "K", "128B", 32, 64)
    with pytest.raises(ValueError, match="do not follow each other along one dimension: take one as high as the matrix"):
        CopiedTile(BoxGeometry("bf16", (64, 30, 9), (64, 4, 4), swizzle="128B"), image, (0, 0, 0))
    with pytest.raises(ValueError, match="row 0, column 32: the copy writes it to"):
        CopiedTile(BoxGeometry("bf16", (64, 30), (32, 8), swizzle="64B"), image, (0, 0))
    with pytest.raises(ValueError, match=r"at\[0\] = 4: .*the copy traps"):
        CopiedTile(BoxGeometry("bf16", (64, 30), (64, 8), swizzle="128B"), image, (4, 0))


def test_shared_memory_needs_tensor_maps(tmp_path: Path) -> None:
    shutil.copytree(paths.SPEC, tmp_path / "spec")
    (tmp_path / "spec/tensor_maps.yaml").unlink()
    with pytest.raises(SpecError, match="needs a document of the kind tensor_maps"):
        pipeline.read(tmp_path / "spec")
