"""``ptxmma/cuda/tensor_map.cuh``: what is legal, and the arguments of the driver's call, against the library."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ptxmma
from cuda_calls import Nvcc
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.box_rules import IllegalBoxError

pytestmark = pytest.mark.nvcc

_TYPES = ("UINT8", "BFLOAT16", "FLOAT32", "UINT64")
_SWIZZLES, _INTERLEAVES, _FILLS = ("none", "32B", "64B", "128B"), ("none", "16B", "32B"), ("zero", "nan")
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
  std::printf("0], \\"legal\\": [");
  // CASES
  std::printf("0]}\\n");
}
"""


def _case(draw: random.Random) -> dict[str, Any]:
    """Arguments of which most are legal by themselves."""

    def drawn(likely: float, legal: Sequence[Any], others: Sequence[Any]) -> Any:
        return draw.choice(legal if draw.random() < likely else others)

    rank = draw.choice([2, 2, 3, 5])
    return {
        "element": draw.choice(_TYPES),
        "shape": tuple(drawn(0.9, [64, 96, 4096], [4096, 1 << 32, 0]) for _ in range(rank)),
        "strides": tuple(drawn(0.9, [8192, 16384, 1 << 39], [8200, 8208, 1 << 40]) for _ in range(rank - 1)),
        "box": (drawn(0.7, [64], [8, 24, 60, 100]), *(drawn(0.9, [1, 8, 16], [0, 256, 257]) for _ in range(rank - 1))),
        "element_strides": tuple(drawn(0.95, [1, 1, 2, 8], [0, 9]) for _ in range(rank)),
        "swizzle": draw.choice(_SWIZZLES),
        "interleave": drawn(0.8, ["none"], _INTERLEAVES),
        "fill": draw.choice(_FILLS),
        "address": drawn(0.95, [0, 32, 64, 16], [8]),
    }


def _written(case: dict[str, Any]) -> str:
    """A line that prints whether a case is legal."""

    def numbers(name: str) -> str:
        return "{" + ", ".join(f"{value}ull" for value in case[name]) + "}"

    maps = ptxmma.instruction("movmatrix.sync.aligned.m8n8.trans.b16").database.spec.tensor_maps
    assert maps is not None
    interleave = next(each.value for each in maps.interleaves if each.name == case["interleave"])
    fill = next(each.value for each in maps.fills if each.name == case["fill"])
    swizzle = next(each.value for each in maps.swizzles if each.name == case["swizzle"])
    box, steps = (numbers(name).replace("ull", "u") for name in ("box", "element_strides"))
    return (
        f"{{ constexpr ptxmma::tensor_map<{len(case['shape'])}> map = {{CU_TENSOR_MAP_DATA_TYPE_{case['element']}, {numbers('shape')}, "
        f"{numbers('strides')}, {box}, {steps}, CUtensorMapInterleave({interleave}), CUtensorMapSwizzle({swizzle}), "
        f"CU_TENSOR_MAP_L2_PROMOTION_NONE, CUtensorMapFloatOOBfill({fill})}}; constexpr bool legal = map.legal({case['address']}); "
        'std::printf("%d, ", legal); }'
    )


def _legal(case: dict[str, Any]) -> bool:
    try:
        BoxGeometry(**case)
    except IllegalBoxError:
        return False
    return True


def test_arguments_and_rules(compiler: Nvcc, tmp_path: Path) -> None:
    draw = random.Random(7)
    cases = [_case(draw) for _ in range(_COUNT)]
    lines = "\n  ".join(map(_written, cases))
    compiler.build(_PROGRAM.replace("// CASES", lines), "-std=c++17", "-o", "print", folder=tmp_path)
    printed = json.loads(subprocess.run([tmp_path / "print"], capture_output=True, text=True, check=True).stdout)
    legal = [_legal(case) for case in cases]
    assert [bool(each) for each in printed["legal"][:-1]] == legal
    assert _COUNT / 8 < sum(legal) < _COUNT / 2
    k_major, mn_major = printed["calls"][:-1]
    assert k_major == [9, 2, 1, [8192, 4096], [16384], [64, 128], [1, 1], 0, 3, 0, 0]
    assert mn_major == [6, 2, 0, [300, 200], [640], [32, 32], [1, 1], 0, 2, 2, 0]
