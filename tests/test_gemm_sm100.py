"""The kernel of ``docs/examples/gemm_sm100.cuh``, which no chip here runs: what it is made of, and a tile of a pair as it is emulated."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxmma
from cuda_calls import Nvcc
from ptxmma import paths, shared_memory
from ptxmma.check import Checker
from ptxmma.matrices.descriptors import of_product
from ptxmma.matrices.shared_memory import Descriptor, read_operand

pytestmark = pytest.mark.nvcc

_EXAMPLES = paths.CHECKOUT / "docs" / "examples"
_PRODUCT = ptxmma.instruction("tcgen05.mma.cta_group::2.kind::f16", m=256, n=256, dtype="f32", atype="bf16", btype="bf16")
_LOAD = ptxmma.instruction("tcgen05.ld.sync.aligned.32x32b.x64.b32")

#: Prints what the kernel works out, as JSON; it runs on the host.
_PROGRAM = """#include <cstddef>
#include <cstdio>
#include "gemm_sm100.cuh"
using namespace gemm_sm100;
using Part = Gemm<Bf16>::Part;
template <class Tile, class Row>
void print_tile(const char* name, size_t start, Row extra) {
  std::printf("\\"%s\\": {\\"start\\": %zu, \\"x\\": %u, \\"k\\": %u, ", name, start, +Tile::x, +Tile::k);
  std::printf("\\"inner\\": %u, \\"outer\\": %u, \\"box_bytes\\": %u, ", +Tile::box_inner, +Tile::box_outer, +Tile::box_bytes);
  std::printf("\\"transaction\\": %u, ", +Tile::transaction_bytes);
  std::printf("\\"boxes\\": [");
  for (uint32_t i = 0; i < Tile::boxes; ++i) std::printf("%s[%u, %u]", i ? ", " : "", Tile::box_x(i), Tile::box_k(i));
  std::printf("], \\"offsets\\": [");
  for (uint32_t i = 0; i < Tile::x * Tile::k; ++i) std::printf("%s%u", i ? ", " : "", Tile::offset(i / Tile::k, i % Tile::k));
  std::printf("], \\"steps\\": [");
  extra();
  std::printf("]},\\n");
}
template <class Tile>
void print_operand(const char* name, size_t start) {
  print_tile<Tile>(name, start, [=] {
    for (uint32_t i = 0; i < Tile::steps; ++i) {
      const unsigned long long bits = Tile::advance(Tile::descriptor(uint32_t(start)), i).bits;
      std::printf("%s%llu", i ? ", " : "", bits);
    }
  });
}
int main() {
  using Stage = Bf16::Stage;
  std::printf("{\\"instruction\\": %u, \\"columns\\": %u, ", Bf16::Product::instruction(), Bf16::Product::d_columns);
  std::printf("\\"shared\\": %zu,\\n", sizeof(Shared<Bf16>));
  print_operand<Bf16::A>("a", sizeof(Stage) + offsetof(Stage, a));
  print_operand<Bf16::B>("b", sizeof(Stage) + offsetof(Stage, b));
  print_tile<D>("d", offsetof(Shared<Bf16>, d), [] {});
  std::printf("\\"part\\": %u, \\"places\\": [", Part::columns);
  for (uint32_t first = 0; first < COLUMNS; first += Part::columns)
    for (uint32_t i = 0; i < WRITERS * Part::elements; ++i)
      std::printf("%s[%u, %u]", first + i ? ", " : "", Part::row(i / Part::elements, i % Part::elements),
                  Part::col(i / Part::elements, i % Part::elements, first));
  std::printf("]}\\n");
}
"""


def _copy_headers(folder: Path) -> None:
    for name in ("gemm_sm100.cuh", "gemm_sm100_operands.cuh", "hopper.cuh", "tensor_map.cuh"):
        shutil.copy(_EXAMPLES / name, folder)


@pytest.fixture(scope="module")
def kernel(compiler: Nvcc, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the kernel works out."""
    folder = tmp_path_factory.mktemp("gemm_sm100")
    _copy_headers(folder)
    options = ("-std=c++17", "-gencode", "arch=compute_100a,code=sm_100a", "-o", "print")
    compiler.build(_PROGRAM, *options, folder=folder)
    printed: dict[str, Any] = json.loads(subprocess.run([folder / "print"], capture_output=True, text=True, check=True).stdout)
    return printed


def test_descriptors_and_places_are_those_of_the_library(kernel: dict[str, Any]) -> None:
    assert kernel["instruction"] == of_product(_PRODUCT)
    assert kernel["shared"] <= 227 * 1024
    d: Any = _PRODUCT.operand("d-tmem")
    assert kernel["columns"] == d.columns
    for name in ("a", "b"):
        tile = kernel[name]
        image = shared_memory.of(_PRODUCT, name, "128B", x=tile["x"], k=tile["k"], start=tile["start"])
        assert tile["steps"] == [step.encode() for step in image.steps(16)]
        x, k = np.divmod(np.arange(tile["x"] * tile["k"]), tile["k"])
        assert np.array_equal(tile["offsets"], image.address(x, k) - tile["start"])
        assert (tile["inner"], tile["outer"], len(tile["boxes"]), tile["transaction"]) == image.tma[1:]
    rows, cols = np.array(kernel["places"]).T
    place = d.through(_LOAD).locate(rows, cols)
    chunk, thread, register = np.unravel_index(np.arange(len(rows)), (256 // kernel["part"], 128, kernel["part"]))
    assert np.array_equal(32 * place.warp + place.lane, thread)
    assert np.array_equal(place.register, register)
    assert np.array_equal(place.address, (thread // 32 * 32 << 16) + chunk * kernel["part"])
    assert not place.cta.any()  # the other block's threads have the same lanes of its own tensor memory


def _swizzled(address: Any) -> Any:
    """Where TMA puts a byte with CU_TENSOR_MAP_SWIZZLE_128B."""
    return address ^ ((address >> 7 & 7) << 4)


def _boxes(tile: dict[str, Any]) -> Any:
    """For each byte of a tile of 16-bit elements in shared memory the row and the byte of the matrix that TMA moves: (rows, bytes)."""
    places = np.full(tile["x"] * tile["k"] * 2, -1)
    for number, (x, k) in enumerate(tile["boxes"]):
        row, byte = np.divmod(np.arange(tile["box_bytes"]), 2 * tile["inner"])
        at = _swizzled(tile["start"] + number * tile["box_bytes"] + np.arange(tile["box_bytes"])) - tile["start"]
        places[at] = (x + row) * 2 * tile["k"] + 2 * k + byte
    assert sorted(places) == list(range(len(places)))
    return np.divmod(places, 2 * tile["k"])


def test_one_tile_of_a_pair_as_it_is_emulated(kernel: dict[str, Any]) -> None:
    """TMA's boxes, the descriptors, the instructions, the loads and TMA's boxes again: small integers come out exactly."""
    rng = np.random.default_rng(0)
    m, n, k = 250, 248, 104  # TMA fills up with zeros
    a, b = np.zeros((256, 128), np.float32), np.zeros((256, 128), np.float32)
    a[:m, :k], b[:n, :k] = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (n, k))
    total: Any = None
    for step in range(2):
        operands = []
        for name, matrix in (("a", a), ("b", b)):
            tile = kernel[name]
            row, byte = _boxes(tile)
            bits = (np.ascontiguousarray(matrix[:, 64 * step : 64 * step + 64]).view(np.uint32) >> 16).astype(np.uint16)
            operands.append((tile, [bits.view(np.uint8)[row + rank * tile["x"], byte] for rank in range(2)]))
        for number in range(4):
            halves = []
            for tile, images in operands:
                descriptor = Descriptor.decode(tile["steps"][number], family="tcgen05")  # the same in both blocks
                read = [read_operand(descriptor, image, "bf16", tile["x"], 16, "K", tile["start"]) for image in images]
                halves.append(np.concatenate(read))
            total = ptxmma.emulate(_PRODUCT, halves[0], halves[1].T, total).d
    base = 256  # the second accumulator
    d: Any = _PRODUCT.operand("d-tmem")
    memory = d.pack(total, address=base)
    tile = kernel["d"]
    places = np.array(kernel["places"]).reshape(-1, 4, 32, kernel["part"], 2)
    result = np.zeros((256, 512), np.uint8)
    for rank in range(2):
        for part, warps in enumerate(places):
            image = np.zeros(tile["x"] * tile["k"] * 2, np.uint8)
            for warp, lanes in enumerate(warps):
                address = (32 * warp << 16) + base + part * kernel["part"]
                words = ptxmma.emulate(_LOAD, address, memory[rank]).registers
                halfwords = (np.asarray(words, np.uint32) >> 16).astype(np.uint16)  # whole numbers below 256 are bf16
                at = np.array(tile["offsets"])[lanes[..., 0] * tile["k"] + lanes[..., 1] % kernel["part"]]
                image[at], image[at + 1] = halfwords & 0xFF, halfwords >> 8
            row, byte = _boxes(tile)
            result[row + rank * tile["x"], byte + part * 2 * kernel["part"]] = image
    written = (result.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert 50 < np.abs(written).max() < 256
    assert np.array_equal(written, a @ b.T)


def test_the_checker_says_nothing(compiler: Nvcc, tmp_path: Path) -> None:
    """Neither errors nor warnings nor notes."""
    _copy_headers(tmp_path)
    ptx = compiler.ptx_of((_EXAMPLES / "gemm_sm100.cu").read_text(encoding="utf-8"), "sm_100a", tmp_path)
    findings = Checker(notes=True).check(ptx)
    assert list(findings) == []
    assert (findings.instructions, findings.uncovered) == (162, 0)
    products = re.findall(r"tcgen05\.mma\.cta_group::2\.kind::f16 \[%r\d+\], %rd\d+, %rd\d+, (%r\d+), enable_input_d;", ptx)
    assert len(products) == 4
    assert all(f"mov.b32 \t{register}, {of_product(_PRODUCT)};" in ptx for register in products)
