"""``ptxmma/cuda/tensor_map.cuh``: what is legal, and the arguments of the driver's call, against the library."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ptxmma
from cuda_calls import Nvcc
from ptxmma.matrices.shared.box_rules import Broken
from ptxmma.model import TensorMaps
from tensor_map_cases import broken, drawn, of_pixels, of_rows

pytestmark = pytest.mark.nvcc

_COUNT = 600

_PROGRAM = """#include <cstdio>
#include <ptxmma/cuda/tensor_map.cuh>
using A = ptxmma::shared_tile<ptxmma::bf16, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 128, 64>;
using B = ptxmma::shared_tile<ptxmma::f16, PTXMMA_MAJORNESS_MN, PTXMMA_SWIZZLE_64B, 64, 32>;
constexpr auto description = ptxmma::tensor_map_of<A>(4096, 8192, 8192 * 2);
static_assert(description.legal(), "");
static_assert(!description.legal(8), "the address is a multiple of 16");
static_assert(!ptxmma::tensor_map_of<A>(4096, 8191, 8191 * 2).legal(), "the pitch is");
static_assert(ptxmma::tensor_map_of<A, 2>(4096, 4096, 8192).box[1] == 64, "half of the box");
constexpr uint64_t counts[] = {8, 2}, strides[] = {128 * 2, 300 * 8 * 128 * 2};
constexpr auto heads = ptxmma::tensor_map_of<A>(300, 128, 8 * 128 * 2, counts, strides);
static_assert(heads.legal() && heads.shape[0] == 128 && heads.shape[1] == 300 && heads.shape[2] == 8 && heads.shape[3] == 2, "");
static_assert(heads.strides[0] == 2048 && heads.strides[1] == 256 && heads.strides[2] == 614400, "in bytes");
static_assert(heads.box[0] == 64 && heads.box[1] == 128 && heads.box[2] == 1 && heads.box[3] == 1 && heads.element_strides[3] == 1, "");
constexpr auto bf16 = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
constexpr auto dense = CU_TENSOR_MAP_INTERLEAVE_NONE;
constexpr auto swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
constexpr auto none = CU_TENSOR_MAP_L2_PROMOTION_NONE;
constexpr auto zeros = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
constexpr ptxmma::tensor_map_im2col<4> pixels = {
    bf16, {64, 56, 48, 8}, {128, 7168, 344064}, {-1, -2}, {-3, -4}, 64, 128, {1, 1, 2, 1}, dense, swizzle, none, zeros};
static_assert(pixels.legal() && !pixels.legal(8), "");
constexpr ptxmma::tensor_map_im2col<4, ptxmma::tensor_map_mode::im2col_w_128> wide = {
    bf16, {64, 56, 48, 8}, {128, 7168, 344064}, {-1}, {-3}, 64, 0, {1, 1, 1, 1}, dense, swizzle, none, zeros};
static_assert(wide.legal(), "a copy of this mode has 128 pixels");
CUresult show_pixels(CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* tensor, const cuuint64_t* shape,
                     const cuuint64_t* strides, const int* lower, const int* upper, cuuint32_t channels, cuuint32_t column,
                     const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  std::printf("[%d, %u, %d, %llu, %llu, [%d, %d], [%d, %d], %u, %u, %u, %d, %d, %d, %d],\\n", int(type), rank, tensor != nullptr,
              (unsigned long long)shape[3], (unsigned long long)strides[2], lower[0], lower[1], upper[0], upper[1], channels, column,
              steps[2], int(interleave), int(swizzle), int(promotion), int(fill));
  return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12080
CUresult show_wide(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, int lower, int upper,
                   cuuint32_t channels, cuuint32_t column, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapIm2ColWideMode mode,
                   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const bool long_columns = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;
  std::printf("[%d, %d, %u, %u, %d, %d],\\n", lower, upper, channels, column, long_columns, int(swizzle));
  return CUDA_SUCCESS;
}
#endif
CUresult show(CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* tensor, const cuuint64_t* shape, const cuuint64_t* strides,
              const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  std::printf("[%d, %u, %d, [%llu, %llu], [%llu], [%u, %u], [%u, %u], %d, %d, %d, %d],\\n", int(type), rank, tensor != nullptr,
              (unsigned long long)shape[0], (unsigned long long)shape[1], (unsigned long long)strides[0], box[0], box[1], steps[0],
              steps[1], int(interleave), int(swizzle), int(promotion), int(fill));
  return CUDA_SUCCESS;
}
int main() {
  CUtensorMap map;
  std::printf("{\\"calls\\": [");
  description.encode(show, &map, &map);
  constexpr auto other = ptxmma::tensor_map_of<B>(300, 200, 640, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  other.encode(show, &map, nullptr);
  pixels.encode(show_pixels, &map, &map);
#if CUDA_VERSION >= 12080
  wide.encode(show_wide, &map, nullptr);
#endif
  std::printf("0], \\"rules\\": [");
  // CASES
  std::printf("0]}\\n");
}
"""


def _maps() -> TensorMaps:
    maps = ptxmma.instruction("movmatrix.sync.aligned.m8n8.trans.b16").database.spec.tensor_maps
    assert maps is not None
    return maps


def _written(case: dict[str, Any]) -> str:
    """A line that prints the rule that a case breaks; nothing if it is legal."""

    def numbers(name: str) -> str:
        return "{" + ", ".join(f"{value}ull" for value in case[name]) + "}"

    maps = _maps()
    interleave = next(each.value for each in maps.interleaves if each.name == case["interleave"])
    fill = next(each.value for each in maps.fills if each.name == case["fill"])
    swizzle = next(each.value for each in maps.swizzles if each.name == case["swizzle"])
    rank, mode = len(case["shape"]), f"ptxmma::tensor_map_mode::{case.get('mode', 'tiled').replace('::', '_')}"
    steps, judged = numbers("element_strides").replace("ull", "u"), f"{case['address']}"
    if "box" in case:
        made, extents, judged = f"tensor_map<{rank}>", numbers("box").replace("ull", "u"), f"{judged}, {mode}"
    else:
        corners = ", ".join(numbers(name).replace("ull", "") for name in ("lower", "upper"))
        made, extents = f"tensor_map_im2col<{rank}, {mode}>", f"{corners}, {case['channels']}, {case['pixels']}"
    return (
        f"{{ constexpr ptxmma::{made} map = {{CU_TENSOR_MAP_DATA_TYPE_{case['element']}, {numbers('shape')}, "
        f"{numbers('strides')}, {extents}, {steps}, CUtensorMapInterleave({interleave}), CUtensorMapSwizzle({swizzle}), "
        f"CU_TENSOR_MAP_L2_PROMOTION_NONE, CUtensorMapFloatOOBfill({fill})}}; "
        f"constexpr auto rule = map.broken_rule({judged}); "
        f'static_assert(map.legal({judged}) == !rule, ""); '
        'std::printf("\\"%s\\", ", rule.text); }'
    )


def _text(fault: Broken) -> str:
    """A fault, with the value of its argument where that is a number of a list."""
    return f"{fault.place}{f' = {fault.value}' if fault.rule.each else ''}: {fault.text}"


def test_arguments_and_rules(compiler: Nvcc, tmp_path: Path) -> None:
    draw = random.Random(7)
    cases = [drawn(draw) for _ in range(_COUNT)] + [of_pixels(draw) for _ in range(_COUNT)]
    cases += [of_rows(draw) for _ in range(_COUNT)]
    lines = "\n  ".join(map(_written, cases))
    compiler.build(_PROGRAM.replace("// CASES", lines), "-std=c++17", "-o", "print", folder=tmp_path)
    printed = json.loads(subprocess.run([tmp_path / "print"], capture_output=True, text=True, check=True).stdout)
    for case, rule in zip(cases, printed["rules"][:-1], strict=True):
        assert rule in ({_text(each) for each in broken(case)} or {""}), case
    for first in range(0, len(cases), _COUNT):
        assert _COUNT / 40 < printed["rules"][first : first + _COUNT].count("") < _COUNT / 2
    k_major, mn_major, pixels, *wide = printed["calls"][:-1]
    assert k_major == [9, 2, 1, [8192, 4096], [16384], [64, 128], [1, 1], 0, 3, 0, 0]
    assert mn_major == [6, 2, 0, [300, 200], [640], [32, 32], [1, 1], 0, 2, 2, 0]
    assert pixels == [9, 4, 1, 8, 344064, [-1, -2], [-3, -4], 64, 128, 2, 0, 3, 0, 0]
    assert wide in ([], [[-1, -3, 64, 0, 1, 3]])
