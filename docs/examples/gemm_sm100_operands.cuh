// Operands of gemm_sm100.cuh: how tiles of A and B lie in shared memory, how TMA brings them, how a stage of them is multiplied.
//
// Each block of the pair holds half of the rows of A and half of the columns of B, at the same offsets. A product of the pair reads both
// blocks' shared memory through one descriptor for A and one for B, and each block's tensor core multiplies its rows of A by all columns of B.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cp_async_bulk_tensor/cp_async_bulk_tensor.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/cuda/tcgen05_mma_product.cuh>

#include "tensor_map.cuh"

namespace gemm_sm100 {

using ptxmma::shared_address, ptxmma::storage;

constexpr int PAIR = 2;                   // blocks of a cluster, which share a tile of D
constexpr int ROWS = 256, COLUMNS = 256;  // of that tile
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;
constexpr int SPAN = ptxmma_describe_swizzle(SWIZZLE).bytes;  // of a row of a stage, as wide as TMA swizzles

// A matrix as TMA sees it: `x` rows (of A or D) or columns (of B), with `k` elements each that are neighbours.
template <class Tile, class T>
cudaError_t describe(CUtensorMap& map, const T* data, int x, int k) {
  const cuuint64_t size[] = {cuuint64_t(k), cuuint64_t(x)}, pitch[] = {k * sizeof(T)};
  const cuuint32_t box[] = {Tile::box_inner, Tile::box_outer};
  return make_tensor_map<Tile>(map, data, size, pitch, box);
}

// Brings a tile into the shared memory of this block, box after box. The barrier that counts the bytes may be the other block's.
template <class Tile>
__device__ __forceinline__ void load(const CUtensorMap& map, unsigned char* tile, int x, int k, uint64_t* full) {
  using ptxmma::cta_group_2, ptxmma::no_hint;
#pragma unroll
  for (uint32_t box = 0; box < Tile::boxes; ++box) {
    const int32_t from[] = {k + int(Tile::box_k(box)), x + int(Tile::box_x(box))};
    ptxmma::cp_async_bulk_tensor_2d_shared_cluster_global<no_hint, cta_group_2>(tile + box * Tile::box_bytes, &map, from, full);
  }
}

// A and B of one type, K-major.
template <class Element, ptxmma_tcgen05_kind kind>
struct Dense {
  using Input = storage<Element>;
  using Product = ptxmma::tcgen05_mma<ptxmma::shape<ROWS, COLUMNS>, kind, ptxmma::f32, Element, Element, PTXMMA_TCGEN05_CTA_GROUP_2>;
  static constexpr int depth = SPAN / sizeof(Input), stages = 6;
  using A = typename Product::template a_tile<PTXMMA_MAJORNESS_K, SWIZZLE, ROWS / PAIR, depth>;
  using B = typename Product::template b_tile<PTXMMA_MAJORNESS_K, SWIZZLE, COLUMNS / PAIR, depth>;
  static constexpr uint32_t bytes = A::transaction_bytes + B::transaction_bytes;  // that a block brings for a stage

  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
  };

  struct Source {
    CUtensorMap a, b;
    cudaError_t describe(int m, int n, int k, const Input* from_a, const Input* from_b) {
      const cudaError_t status = gemm_sm100::describe<A>(a, from_a, m, k);
      return status == cudaSuccess ? gemm_sm100::describe<B>(b, from_b, n, k) : status;
    }
  };

  // Brings this block's halves. `row` and `column` are the first of the tile of D.
  static __device__ __forceinline__ void load(const Source& source, Stage& stage, int row, int column, int k, int rank, uint64_t* full) {
    gemm_sm100::load<A>(source.a, stage.a, row + rank * A::x, k, full);
    gemm_sm100::load<B>(source.b, stage.b, column + rank * B::x, k, full);
  }

  // Adds the products of a stage to D, or makes them D. One thread of the pair calls it.
  static __device__ __forceinline__ void multiply(ptxmma::tensor_address d, const Stage& stage, bool add) {
    const auto a = A::descriptor(shared_address(stage.a));
    const auto b = B::descriptor(shared_address(stage.b));
#pragma unroll
    for (uint32_t step = 0; step < A::steps; ++step) Product::call(d, A::advance(a, step), B::advance(b, step), add || step > 0);
  }
};

using Bf16 = Dense<ptxmma::bf16, PTXMMA_TCGEN05_KIND_F16>;
using E4m3 = Dense<ptxmma::e4m3, PTXMMA_TCGEN05_KIND_F8F6F4>;

}  // namespace gemm_sm100
