// Dense matrices for gemm_sm90.cuh: A is m x k and B is k x n, each row-major or column-major.
#pragma once

#include <type_traits>

#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/e4m3_e4m3.cuh>
#include <ptxmma/wgmma/f16_f16.cuh>
#include <ptxmma/wgmma/s8_s8.cuh>

#include "gemm_sm90.cuh"

namespace gemm_sm90 {

// In what the products of a type are summed.
template <class Element>
using Accumulator = std::conditional_t<std::is_integral<storage<Element>>::value, ptxmma::s32, ptxmma::f32>;

// Where A comes from when it is multiplied: shared memory, or registers that `ldmatrix` fills. With registers a kernel can convert it on its
// way; as it is, shared memory is faster.
enum class From { SHARED, REGISTERS };

struct DenseSource {
  CUtensorMap a, b;
};

template <class Element, ptxmma_majorness major_a, ptxmma_majorness major_b, int tile_rows, int tile_columns, From from>
struct Dense {
  using Input = storage<Element>;
  using Multiply = ptxmma::wgmma<ptxmma::shape<64, tile_columns>, Accumulator<Element>, Element, Element>;
  static constexpr int rows = tile_rows, columns = tile_columns, depth = SPAN / sizeof(Input);
  static constexpr int extra = 24;
  using A = typename Multiply::template a_tile<major_a, SWIZZLE, rows, depth>;
  using B = typename Multiply::template b_tile<major_b, SWIZZLE, columns, depth>;
  static constexpr uint32_t bytes = A::bytes + B::bytes;

  using Source = DenseSource;
  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
  };

  static constexpr bool a_is_there = false;
  static __device__ __forceinline__ void load_a(const Source& source, Stage& stage, int row, int k, uint64_t* full) {
    ptxmma::load_tile<A>(stage.a, &source.a, row, k, full);
  }
  static __device__ __forceinline__ void load_b(const Source& source, Stage& stage, int column, int k, int rank, uint64_t* full) {
    ptxmma::load_tile_part<B, CLUSTER>(stage.b, &source.b, column, k, full, rank);
  }

  struct Registers {};
  static constexpr int sets = 1;
  static constexpr bool read_by_threads = false;

  // Starts the multiplications of a stage; the last group may still be running when the next call begins.
  template <int parts>
  static __device__ __forceinline__ void multiply(
      typename Multiply::d::type (&sums)[parts], Registers&, const Stage& stage, int row, int thread, bool accumulate) {
    const uint32_t a = shared_address(stage.a), b = shared_address(stage.b);
    if constexpr (from == From::SHARED) {
      ptxmma::wgmma_fence();
#pragma unroll
      for (int k = 0; k < depth; k += Multiply::k) {
#pragma unroll
        for (int p = 0; p < parts; ++p) {
          Multiply::call(sums[p], A::descriptor(a, row + p * Multiply::m, k), B::descriptor(b, 0, k), accumulate || k > 0);
        }
      }
      ptxmma::wgmma_commit_group();
    } else {
      typename Multiply::a::type fragments[2][parts];  // one is read while the other is filled
#pragma unroll
      for (int k = 0; k < depth; k += Multiply::k) {
        auto& next = fragments[k / Multiply::k % 2];
        if (k > 0) ptxmma::wgmma_wait_group<1>();
#pragma unroll
        for (int p = 0; p < parts; ++p) {
          ptxmma::load_fragment<typename Multiply::a, A>(next[p], a, thread, row + p * Multiply::m, k);
          ptxmma::fence_accumulator(next[p]);
        }
        ptxmma::wgmma_fence();
#pragma unroll
        for (int p = 0; p < parts; ++p) Multiply::call(sums[p], next[p], B::descriptor(b, 0, k), accumulate || k > 0);
        ptxmma::wgmma_commit_group();
      }
    }
  }
};

}  // namespace gemm_sm90
