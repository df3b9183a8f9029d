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
from ptxmma.matrices.shared_memory import SharedLayout, read_operand


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"box": (72, 128)}, r"box\[0\] = 72: .*wider than the 128 bytes.*nearest legal one is 64"),
        ({"box": (64, 300)}, r"box\[1\] = 300: .*1 to 256.*nearest legal one is 256"),
        ({"box": (60, 128)}, r"box\[0\] = 60: .*whole 16 bytes.*nearest legal one is 56"),
        ({"shape": (4095, 4096)}, r"strides\[0\] = 8190: .*multiple of 16 bytes"),
        ({"address": 8}, r"address = 8: .*nearest legal one is 0"),
        ({"fill": "Nan"}, r"unknown fill 'Nan'"),
        ({"box": (64,)}, r"box has 1 entries; it takes 2"),
        ({"element": "e2m3"}, r"TMA copies e2m3 padded only"),
        ({"element": "bf16x"}, r"unknown type 'bf16x'"),
    ],
)
def test_errors_say_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"element": "bf16", "shape": (4096, 4096), "box": (64, 128), "swizzle": "128B"} | arguments
    with pytest.raises(ValueError, match=message):
        BoxGeometry(**given)


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


@pytest.mark.parametrize("element", ["bf16", "e4m3", "e2m1", "e3m2", "f64"])
def test_a_store_writes_back_what_a_load_read(element: str) -> None:
    random = np.random.default_rng(3)
    bits = {"bf16": 16, "e4m3": 8, "e2m1": 4, "e3m2": 6, "f64": 64}[element]
    padded = element in ("e2m1", "e3m2")
    width = 256 if padded else 48
    tensor = random.integers(0, 1 << min(bits, 16), (9, 7, width)).astype(f"u{max(bits // 8, 1)}")
    inner = 128 if padded else 128 // bits
    box = TensorMap(element, (width, 7, 9), (inner, 3, 2), swizzle="128B", padded=padded)
    image = box.load(tensor, (inner, 5, -1), destination=896)
    target = np.zeros_like(tensor)
    stored = box.store(image, target, (inner, 5, -1), destination=896)
    assert (stored[0:1, 5:7, inner : 2 * inner] == tensor[0:1, 5:7, inner : 2 * inner]).all()
    assert np.count_nonzero(stored) == np.count_nonzero(tensor[0:1, 5:7, inner : 2 * inner])


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


def test_shared_memory_needs_tensor_maps(tmp_path: Path) -> None:
    shutil.copytree(paths.SPEC, tmp_path / "spec")
    (tmp_path / "spec/tensor_maps.yaml").unlink()
    with pytest.raises(SpecError, match="needs a document of the kind tensor_maps"):
        pipeline.read(tmp_path / "spec")
