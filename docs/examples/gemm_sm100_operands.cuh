// Operands of gemm_sm100.cuh: how tiles of A and B lie in shared memory, how TMA brings them, how a stage of them is multiplied.
//
// Each block of the pair holds half of the rows of A and half of the columns of B, at the same offsets. A product of the pair reads both
// blocks' shared memory through one descriptor for A and one for B. Each block's tensor core multiplies its rows of A by all columns of B.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/cuda/tensor_map.cuh>
#include <ptxmma/cuda/tile_transfers.cuh>
#include <ptxmma/tcgen05_cp.cuh>

namespace gemm_sm100 {

using ptxmma::shared_address, ptxmma::storage;

constexpr int PAIR = 2;                   // blocks of a cluster, which share a tile of D
constexpr int ROWS = 256, COLUMNS = 256;  // of that tile
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;
constexpr int SPAN = ptxmma_describe_swizzle(SWIZZLE).bytes;  // of a row of a stage, as wide as TMA swizzles

// A matrix as TMA sees it: `x` rows (of A or D) or columns (of B), with `k` elements each that are neighbours; packed ones count as bytes.
template <class Tile, class T>
cudaError_t describe(CUtensorMap& map, const T* data, int x, int k) {
  return ptxmma::tensor_map_of<Tile>(x, k, k * sizeof(T), CU_TENSOR_MAP_L2_PROMOTION_L2_128B).encode(&map, data);
}

// Brings a tile into the shared memory of this block. The barrier that counts the bytes may be the other block's.
template <class Tile>
__device__ __forceinline__ void load(const CUtensorMap& map, unsigned char* tile, int x, int step, uint64_t* full) {
  static_assert(Tile::boxes == 1, "a stage is as deep as a box is wide");
  ptxmma::load_tile<Tile, ptxmma::cta_group_2>(tile, &map, x, step * int(Tile::box_inner), full);
}

// A and B of one type, K-major.
template <class Element, ptxmma_tcgen05_kind kind>
struct Dense {
  using Input = storage<Element>;
  using Matrix = const Input*;
  using Product = ptxmma::tcgen05_mma<ptxmma::shape<ROWS, COLUMNS>, kind, ptxmma::f32, Element, Element, PTXMMA_TCGEN05_CTA_GROUP_2>;
  static constexpr int depth = SPAN / sizeof(Input), stages = 6;
  static constexpr int second = COLUMNS;  // column of tensor memory where the second accumulator begins
  using A = typename Product::template a_tile<PTXMMA_MAJORNESS_K, SWIZZLE, ROWS / PAIR, depth>;
  using B = typename Product::template b_tile<PTXMMA_MAJORNESS_K, SWIZZLE, COLUMNS / PAIR, depth>;
  static constexpr uint32_t bytes = A::transaction_bytes + B::transaction_bytes;  // that a block brings for a stage

  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
  };

  struct Source {
    CUtensorMap a, b;
    __device__ __forceinline__ void prefetch() const {
      ptxmma::prefetch_tensor_map(&a);
      ptxmma::prefetch_tensor_map(&b);
    }
    cudaError_t describe(int m, int n, int k, Matrix from_a, Matrix from_b) {
      const cudaError_t status = gemm_sm100::describe<A>(a, from_a, m, k);
      return status == cudaSuccess ? gemm_sm100::describe<B>(b, from_b, n, k) : status;
    }
  };

  // Brings this block's halves. `row` and `column` are the first of the tile of D.
  static __device__ __forceinline__ void load(const Source& source, Stage& stage, int row, int column, int step, int rank, uint64_t* full) {
    gemm_sm100::load<A>(source.a, stage.a, row + rank * A::x, step, full);
    gemm_sm100::load<B>(source.b, stage.b, column + rank * B::x, step, full);
  }

  // Adds the products of a stage to D, or makes them D. One thread of the pair calls it.
  static __device__ __forceinline__ void multiply(ptxmma::tensor_address, ptxmma::tensor_address d, const Stage& stage, bool add) {
    const auto a = A::descriptor(shared_address(stage.a));
    const auto b = B::descriptor(shared_address(stage.b));
#pragma unroll
    for (uint32_t step = 0; step < A::steps; ++step) Product::call(d, A::advance(a, step), B::advance(b, step), add || step > 0);
  }
};

using Bf16 = Dense<ptxmma::bf16, PTXMMA_TCGEN05_KIND_F16>;
using E4m3 = Dense<ptxmma::e4m3, PTXMMA_TCGEN05_KIND_F8F6F4>;

// A and B of e2m1, two in a byte, K-major, each block of 16 along k with a scale factor of ue4m3: NVIDIA's nvfp4.
//
// Scale factors come as cuBLAS has them ("128x4"): 512 bytes for 128 rows (of A) or columns (of B) and four blocks along k. Those of the
// next blocks along k follow, then those of the next 128 rows. tcgen05.cp takes such 512 bytes as they are. Where a matrix ends before they
// do, the rest is 0.
struct Nvfp4 {
  struct Matrix {
    const uint8_t* elements;
    const uint8_t* factors;
  };
  using Product = ptxmma::tcgen05_mma<ptxmma::shape<ROWS, COLUMNS>, PTXMMA_TCGEN05_KIND_MXF4NVF4, ptxmma::f32, ptxmma::e2m1, ptxmma::e2m1,
                                      PTXMMA_TCGEN05_CTA_GROUP_2, PTXMMA_TCGEN05_BLOCK16, ptxmma::ue4m3>;
  static constexpr int depth = 2 * SPAN, stages = 5;
  using A = Product::a_tile<PTXMMA_MAJORNESS_K, SWIZZLE, ROWS / PAIR, depth>;
  using B = Product::b_tile<PTXMMA_MAJORNESS_K, SWIZZLE, COLUMNS / PAIR, depth>;

  // Factors of 128 rows or columns for one step along k, as tcgen05.cp reads them: 32 rows of 16 bytes.
  using Factors = ptxmma::tcgen05_tile<ptxmma::u8, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_NONE, 32, 16, 16>;
  static constexpr int group = 128, groups_a = ROWS / PAIR / group, groups_b = COLUMNS / group;  // each block needs those of all columns
  static constexpr uint32_t factors_a = groups_a * A::steps * Factors::bytes, factors_b = groups_b * A::steps * Factors::bytes;
  static constexpr uint32_t bytes = A::transaction_bytes + B::transaction_bytes + factors_a + factors_b;

  // Tensor memory has no room for two accumulators beside the factors. They share 64 columns, which are written first of each tile.
  static constexpr int second = 192, factors = second + COLUMNS;
  static constexpr int factors_of_b = factors + A::steps * Product::a_scale_columns;
  static_assert(factors_of_b + A::steps * Product::b_scale_columns <= 512, "tensor memory has 512 columns");

  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
    alignas(Factors::alignment) unsigned char factors_a[Nvfp4::factors_a], factors_b[Nvfp4::factors_b];
  };

  struct Source {
    CUtensorMap a, b, factors_a, factors_b;
    __device__ __forceinline__ void prefetch() const {
      for (const CUtensorMap* map : {&a, &b, &factors_a, &factors_b}) ptxmma::prefetch_tensor_map(map);
    }
    cudaError_t describe(int m, int n, int k, Matrix from_a, Matrix from_b) {
      cudaError_t status = gemm_sm100::describe<A>(a, from_a.elements, m, k / 2);
      if (status == cudaSuccess) status = gemm_sm100::describe<B>(b, from_b.elements, n, k / 2);
      if (status == cudaSuccess) status = describe_factors<groups_a>(factors_a, from_a.factors, m, k);
      return status == cudaSuccess ? describe_factors<groups_b>(factors_b, from_b.factors, n, k) : status;
    }
  };

  // 512 bytes as two lines: a box has at most 256 elements along a dimension.
  template <int groups>
  static cudaError_t describe_factors(CUtensorMap& map, const uint8_t* data, int x, int k) {
    const uint64_t lines = (k + 63) / 64 * 2, all = (x + group - 1) / group;
    const ptxmma::tensor_map<3> description = {CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                               {256, lines, all},
                                               {256, 256 * lines},
                                               {256, 2 * A::steps, groups},
                                               {1, 1, 1},
                                               CU_TENSOR_MAP_INTERLEAVE_NONE,
                                               CU_TENSOR_MAP_SWIZZLE_NONE,
                                               CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
    return description.encode(&map, data);
  }

  static __device__ __forceinline__ void load_factors(const CUtensorMap& map, unsigned char* factors, int x, int step, uint64_t* full) {
    const int32_t from[] = {0, step * int(2 * A::steps), x / group};
    ptxmma::cp_async_bulk_tensor_3d_shared_cluster_global<ptxmma::no_hint, ptxmma::cta_group_2>(factors, &map, from, full);
  }

  static __device__ __forceinline__ void load(const Source& source, Stage& stage, int row, int column, int step, int rank, uint64_t* full) {
    gemm_sm100::load<A>(source.a, stage.a, row + rank * A::x, step, full);
    gemm_sm100::load<B>(source.b, stage.b, column + rank * B::x, step, full);
    load_factors(source.factors_a, stage.factors_a, row + rank * A::x, step, full);
    load_factors(source.factors_b, stage.factors_b, column, step, full);
  }

  // Copies the factors of a stage to tensor memory; a product executes after copies that were issued before it. That the copies of the next
  // stage execute after the products of this one is not in the manual: CUTLASS and DeepGEMM rely on it, too.
  static __device__ __forceinline__ void multiply(ptxmma::tensor_address base, ptxmma::tensor_address d, const Stage& stage, bool add) {
    const auto a = A::descriptor(shared_address(stage.a));
    const auto b = B::descriptor(shared_address(stage.b));
#pragma unroll
    for (uint32_t step = 0; step < A::steps; ++step) {
      const auto scales_a = Product::scales_a(base + factors, step), scales_b = Product::scales_b(base + factors_of_b, step);
      copy<groups_a>(scales_a.address, stage.factors_a, step);
      copy<groups_b>(scales_b.address, stage.factors_b, step);
      Product::call(d, A::advance(a, step), B::advance(b, step), scales_a, scales_b, add || step > 0);
    }
  }

  // The factors of a step; each copy fills four columns.
  template <int groups>
  static __device__ __forceinline__ void copy(ptxmma::tensor_address to, const unsigned char* factors, uint32_t step) {
#pragma unroll
    for (uint32_t i = 0; i < groups; ++i) {
      const auto from = Factors::descriptor(shared_address(factors + (i * A::steps + step) * Factors::bytes));
      ptxmma::tcgen05_cp_cta_group_2_32x128b_warpx4((to + 4 * i).bits, from.bits);
    }
  }
};

}  // namespace gemm_sm100
