"""Every number of the loads of the example kernels is the answer of a command: boxes, bytes, stages, phases, descriptors."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import commands
from cuda_calls import Nvcc
from ptxmma import paths

_EXAMPLES = paths.CHECKOUT / "docs" / "examples"

#: Prints the numbers that the kernels of bf16 work out, as JSON; it runs on the host.
_PROGRAM = """#include <cstddef>
#include <cstdio>
#include "gemm_sm100.cuh"
#include "gemm_sm90_operands.cuh"
template <class Tile>
void print(const char* name, size_t start, uint32_t outer) {
  std::printf("\\"%s\\": {\\"start\\": %zu, \\"x\\": %u, \\"k\\": %u, ", name, start, +Tile::x, +Tile::k);
  std::printf("\\"box\\": \\"%ux%u\\", \\"bytes\\": %u, \\"places\\": [", +Tile::box_inner, outer, +Tile::transaction_bytes);
  for (uint32_t i = 0; i < Tile::boxes; ++i)
    std::printf("%s[%u, %u, %u]", i ? ", " : "", Tile::box_k(i), Tile::box_x(i), uint32_t(i * Tile::box_bytes));
  std::printf("], \\"steps\\": [");
  for (uint32_t i = 0; i < Tile::k / 16; ++i)
    std::printf("%s\\"0x%016llx\\"", i ? ", " : "", (unsigned long long)Tile::descriptor(uint32_t(start), 0, i * 16).bits);
  std::printf("]}");
}
template <class A, class B, class Stage>
void print_stage(const char* family, int stages, uint32_t bytes, uint32_t outer_of_b) {
  std::printf("{\\"family\\": \\"%s\\", \\"stages\\": %d, \\"bytes\\": %u, ", family, stages, bytes);
  print<A>("a", offsetof(Stage, a), +A::box_outer);
  std::printf(", ");
  print<B>("b", offsetof(Stage, b), outer_of_b);
  std::printf("}");
}
int main() {
  using Dense = gemm_sm90::Dense<ptxmma::bf16, PTXMMA_MAJORNESS_K, PTXMMA_MAJORNESS_K, 128, 176, gemm_sm90::From::SHARED>;
  using Hopper = gemm_sm90::Gemm<Dense, ptxmma::bf16, false>;
  using Part = Dense::B::share<gemm_sm90::CLUSTER>;
  std::printf("{\\"sm90\\": ");
  print_stage<Dense::A, Dense::B, Dense::Stage>("wgmma", Hopper::Shared::stages, Dense::bytes, Part::outer);
  std::printf(", \\"sm100\\": ");
  using Pair = gemm_sm100::Bf16;
  print_stage<Pair::A, Pair::B, Pair::Stage>("tcgen05", Pair::stages, Pair::bytes, +Pair::B::box_outer);
  std::printf(", \\"d\\": ");
  std::printf("{");
  print<gemm_sm100::D>("d", offsetof(gemm_sm100::Shared<Pair>, d), +gemm_sm100::D::box_outer);
  std::printf("}}\\n");
}
"""

_TMA = ("tma", "--shape", "4096x4096", "--type", "bf16", "--swizzle", 128)


def _asked(*arguments: object) -> Any:
    return json.loads(commands.ask(*map(str, arguments), "--json"))


@pytest.fixture(scope="module")
def kernels(compiler: Nvcc, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The numbers of the kernels."""
    folder = tmp_path_factory.mktemp("gemm_numbers")
    for header in _EXAMPLES.glob("*.cuh"):
        (folder / header.name).write_bytes(header.read_bytes())
    compiler.build(_PROGRAM, "-std=c++17", "-gencode", "arch=compute_100a,code=sm_100a", "-o", "print", folder=folder)
    printed: dict[str, Any] = json.loads(subprocess.run([folder / "print"], capture_output=True, text=True, check=True).stdout)
    return printed


@pytest.mark.nvcc
@pytest.mark.parametrize(("kernel", "shares"), [("sm90", {"a": 1, "b": 2}), ("sm100", {"a": 1, "b": 1})])
def test_the_numbers_of_a_stage(kernels: dict[str, Any], kernel: str, shares: dict[str, int]) -> None:
    stage = kernels[kernel]
    counted = []
    for name, blocks in shares.items():
        tile = stage[name]
        told = _asked(*_TMA, "--box", tile["box"], "--destination", tile["start"])
        assert tile["start"] % told["alignments"]["destination"] == 0
        assert len(tile["places"]) * blocks * told["transaction_bytes"] == tile["bytes"]
        counted += [told["transaction_bytes"]] * blocks * len(tile["places"])
        [reader] = [each for each in told["readers"] if (each["family"], each["major"]) == (stage["family"], "K")]
        matrix = ("--type", "bf16", "--major", "k", "--swizzle", 128, "--rows", tile["x"], "--cols", tile["k"], "--family", stage["family"])
        assert (reader["rows"] * blocks, reader["cols"]) == (tile["x"], tile["k"])
        if blocks == 1:
            assert reader["descriptor"] == tile["steps"][0]
        assert _asked("descriptor", "encode", "--address", tile["start"], *matrix, "--depth", 16)["steps"] == tile["steps"]
    ring = _asked("ring", "--stages", stage["stages"], "--bytes", ",".join(map(str, counted)))
    assert ring["transaction_bytes"] == stage["bytes"]


@pytest.mark.nvcc
def test_the_boxes_in_which_d_is_stored(kernels: dict[str, Any]) -> None:
    tile = kernels["d"]["d"]
    for k, x, offset in tile["places"]:
        told = _asked(
            *(*_TMA, "--box", tile["box"], "--store", "--at", f"{k},{x}", "--element", "0,0", "--destination", offset),
        )
        assert (told["element"]["address"], told["element"]["coordinates"]) == (offset, [k, x])
        assert offset % told["size"] == 0
    assert len(tile["places"]) * told["transaction_bytes"] == tile["bytes"]


def test_the_parities_of_a_ring(tmp_path: Path) -> None:
    """The kernels' ring counts as the command does; the thread that fills waits for the other parity."""
    header = paths.INCLUDE / "ptxmma/cuda/stage_ring.cuh"
    found = re.search(r"template <int Stages>\nstruct stage_ring \{.*?\n\};", header.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    ring = found[0].replace("__device__ __forceinline__", "")
    count = 4 * 5
    source = f"""#include <cstdint>
#include <cstdio>
{ring}
int main() {{
  stage_ring<4> ring;
  for (int i = 0; i < {count}; ++i, ring.next()) std::printf("%d %u %u\\n", ring.stage, ring.parity ^ 1, ring.parity);
}}
"""
    (tmp_path / "ring.cc").write_text(source, encoding="utf-8")
    subprocess.run(["g++", "-o", "ring", "ring.cc"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "ring"], capture_output=True, text=True, check=True).stdout
    for number, line in enumerate(printed.splitlines()):
        [told] = _asked("ring", "--stages", 4, "--round", number)["rounds"]
        assert line.split() == [str(told[name]) for name in ("stage", "empty", "full")], number
    assert len(printed.splitlines()) == count
