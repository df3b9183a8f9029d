"""The headers of which kernels are made: ``check`` finds nothing in the kernels of ``docs/headers.rst``, and what is left out of them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from cuda_calls import Nvcc
from ptxmma.check import check

pytestmark = pytest.mark.nvcc

#: A kernel for each example: its readers copy a tile to global memory, number by number.
_COPIES = """
__global__ void kernel(const __half* a, int pitch, int rows, int k, uint32_t* out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  run(ptxmma::shared_address(memory), a, pitch, rows, k, [&](uint32_t start) {
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(start + 4 * threadIdx.x) : "memory");
    out[threadIdx.x] += word;
  });
}
"""
_RING = """
__global__ void kernel(const __grid_constant__ Map map, int row, int steps, unsigned* out) {
  extern __shared__ __align__(1024) unsigned char memory[];
  run(*reinterpret_cast<Shared*>(memory), &map, row, steps, [&](const unsigned char* tile) {
    out[threadIdx.x] += reinterpret_cast<const unsigned*>(tile)[threadIdx.x];
  });
}
"""
_MAP = "struct alignas(64) Map { unsigned char bytes[128]; };\n"


_EMPTY = """  uint64_t* empty[2];
  for (int rank = 0; rank < 2; ++rank) empty[rank] = ptxmma::map_shared_rank(shared.barriers.empty, rank);
"""


def _example(root: Path, header: str) -> str:
    """The example of the guide that includes a header."""
    text = (root / "docs/headers.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: cuda\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    [found] = [textwrap.dedent(block) for block in blocks if f"#include <ptxmma/cuda/{header}>" in block]
    return found


def _rules(compiler: Nvcc, source: str, folder: Path) -> set[str]:
    return {finding.rule for finding in check(compiler.ptx_of(source, "sm_90a", folder)) if finding.severity != "note"}


def _without(source: str, step: str) -> str:
    assert source.count(step) == 1
    return source.replace(step, "")


def test_copies_ahead_of_the_reads(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    assert not _rules(compiler, _example(root, "copy_pipeline.cuh") + _COPIES, tmp_path)


def test_a_tile_takes_a_matrix_of_its_elements(compiler: Nvcc, tmp_path: Path) -> None:
    """Or of bits of their size; the types of other libraries are not known here."""
    source = """#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <ptxmma/cuda/copy_pipeline.cuh>
struct bits16 { unsigned short bits; };  // of another library
template <class Element, class Object>
__device__ const char* first(const Object* matrix) {
  return ptxmma::tile_copies<ptxmma::shared_tile<Element, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_64B, 128, 64>, 128>::first(matrix, 64, 0);
}
using namespace ptxmma;
__global__ void kernel(const void** to, const __nv_bfloat16* a, const bits16* b, const float* c, const uint16_t* d, const uint8_t* e) {
  to[0] = first<bf16>(a), to[1] = first<bf16>(b), to[2] = first<tf32>(c);
  to[3] = first<bf16>(d), to[4] = first<b16>(a), to[5] = first<e4m3>(e);
}
"""
    compiler.ptx_of(source, "sm_80", tmp_path)
    for right, wrong in (("<bf16>(a)", "<f16>(a)"), ("<tf32>(c)", "<s32>(c)"), ("<bf16>(d)", "<tf32>(d)")):
        said = compiler.refuse(source.replace(right, wrong), "-arch=sm_80", "-c", folder=tmp_path)
        assert said.count("ptxmma: the matrix has other elements than the tile") == 1


def test_a_ring_that_tma_fills(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    source = _MAP + _example(root, "stage_ring.cuh") + _RING
    assert not _rules(compiler, source, tmp_path)
    assert "unpublished-barrier" in _rules(compiler, _without(source, "  __syncthreads();\n"), tmp_path)
    assert "unmatched-mbarrier" in _rules(compiler, _without(source, "      shared.barriers.wait_full(ring);\n"), tmp_path)
    empty, full = "shared.barriers.wait_empty(ring);", "ptxmma::mbarrier_wait(&shared.barriers.empty[ring.stage], ring.parity);"
    assert source.count(empty) == 1
    assert "endless-wait" in _rules(compiler, source.replace(empty, full), tmp_path)


def test_a_ring_that_a_cluster_fills(compiler: Nvcc, root: Path, tmp_path: Path) -> None:
    """Each of two blocks brings half of a tile for both, once the readers of both have released the stage."""
    alone, part = "ptxmma::load_tile<A>(shared.stages[ring.stage], map, row, step * int(A::k), full);", "ptxmma::load_tile_part<A, 2>"
    source = _MAP + _example(root, "stage_ring.cuh") + _RING
    for old, new in [
        (alone, f"{part}(shared.stages[ring.stage], map, row, step * int(A::k), full, ptxmma::cluster_rank());"),
        ("shared.barriers.wait_empty(ring);", "shared.barriers.wait_empty_in_cluster(ring);"),
        ("shared.barriers.release(ring);", "for (uint64_t* there : empty) ptxmma::stage_barriers<4>::release_in_cluster(there, ring);"),
        ("shared.barriers.init(1, 128);", "shared.barriers.init(1, 2 * 128), ptxmma::fence_mbarrier_init();"),
        ("  __syncthreads();\n", "  ptxmma::cluster_sync();\n" + _EMPTY),
        ("[threadIdx.x];\n  });\n", "[threadIdx.x];\n  });\n  ptxmma::cluster_sync();\n"),
    ]:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    source = source.replace("__global__", "__cluster_dims__(2) __global__")
    assert not _rules(compiler, source, tmp_path)
    text = compiler.ptx_of(source, "sm_90a", tmp_path)
    assert "mbarrier.try_wait.parity.acquire.cluster.shared" in text
    assert "mbarrier.arrive.release.cluster.shared::cluster" in text
