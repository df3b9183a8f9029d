// D = alpha * A * B + beta * C on Hopper, where two of four neighbours in each row of A are zeros. It is the kernel of gemm_sm90.cuh with
// other operands: TMA brings the elements of A that are kept, and which ones these are, the metadata.
#pragma once

#include <ptxmma/cp_async_bulk/cp_async_bulk.cuh>
#include <ptxmma/cuda/sparse.cuh>
#include <ptxmma/wgmma_sp/bf16_bf16.cuh>
#include <ptxmma/wgmma_sp/e4m3_e4m3.cuh>
#include <ptxmma/wgmma_sp/f16_f16.cuh>

#include "gemm_sm90_plan.cuh"

namespace sparse_gemm_sm90 {

using namespace gemm_sm90;

// How a type is compressed, and the registers of metadata that its instructions read.
template <class Element> struct Sparsity;
template <> struct Sparsity<ptxmma::f16> {
  using Kind = ptxmma::sparse::kind_2_4_f16;
  using Metadata = ptxmma::sparse::wgmma_sp_m64nNk32_metadata_b16;
};
template <> struct Sparsity<ptxmma::bf16> {
  using Kind = ptxmma::sparse::kind_2_4_bf16;
  using Metadata = ptxmma::sparse::wgmma_sp_m64nNk32_metadata_b16;
};
template <> struct Sparsity<ptxmma::e4m3> {
  using Kind = ptxmma::sparse::kind_2_4_e4m3;
  using Metadata = ptxmma::sparse::wgmma_sp_m64nNk64_metadata_b8;
};

struct SparseSource {
  CUtensorMap a, b;          // a: the elements that are kept
  const uint32_t* metadata;  // of each instruction: a register for each thread; instructions along k follow each other
  int words;                 // registers along k
};

template <class Element, ptxmma_majorness major_b, int tile_rows, int tile_columns>
struct Sparse {
  using Input = storage<Element>;
  using Multiply = ptxmma::wgmma_sp<ptxmma::shape<64, tile_columns>, ptxmma::f32, Element, Element>;
  using Metadata = typename Sparsity<Element>::Metadata;
  // Of few columns, a stage is two spans deep, so that rows of A, of which half is kept, fill lines of L2.
  static constexpr int rows = tile_rows, columns = tile_columns, depth = (rows == Multiply::m ? 2 : 1) * SPAN / sizeof(Input);
  static constexpr int extra = 40;  // reading A costs more, beside half as many multiplications
  using A = typename Multiply::template a_tile<PTXMMA_MAJORNESS_K, swizzle_of(depth / 2 * sizeof(Input)), rows, depth / 2>;  // half of its elements are kept
  using B = typename Multiply::template b_tile<major_b, SWIZZLE, columns, depth>;

  // Some instructions along k share a register, of which a selector chooses the part.
  static constexpr int words = depth / (Multiply::k * Metadata::selectors), parts_of_tile = rows / Multiply::m;
  static constexpr uint32_t bytes = A::bytes + B::bytes + parts_of_tile * words * WARPGROUP * sizeof(uint32_t);

  using Source = SparseSource;
  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
    uint32_t metadata[parts_of_tile][words][WARPGROUP];
  };

  static constexpr bool a_is_there = true;  // Weights has waited for it
  static __device__ __forceinline__ void load_a(const Source& source, Stage& stage, int row, int k, uint64_t* full) {
    ptxmma::load_tile<A>(stage.a, &source.a, row, k / 2, full);
    const int word = k / (Multiply::k * Metadata::selectors);
#pragma unroll
    for (int p = 0; p < parts_of_tile; ++p) {
      const uint32_t* from = source.metadata + (int64_t(row / Multiply::m + p) * source.words + word) * WARPGROUP;
      ptxmma::cp_async_bulk_shared_cluster_global(stage.metadata[p], from, sizeof stage.metadata[p], full);
    }
  }
  static __device__ __forceinline__ void load_b(const Source& source, Stage& stage, int column, int k, int rank, uint64_t* full) {
    ptxmma::load_tile_part<B, CLUSTER>(stage.b, &source.b, column, k, full, rank);
  }

  struct Registers {
    uint32_t metadata[parts_of_tile][words];
  };
  static constexpr int sets = 2;
  static constexpr bool read_by_threads = true;  // the metadata

  // Starts the multiplications of a stage; the last group may still be running, and reading its metadata, when the next call begins.
  template <int parts>
  static __device__ __forceinline__ void multiply(
      typename Multiply::d::type (&sums)[parts], Registers& registers, const Stage& stage, int row, int thread, bool accumulate) {
    const uint32_t a = shared_address(stage.a), b = shared_address(stage.b);
    auto& metadata = registers.metadata;
#pragma unroll
    for (int p = 0; p < parts; ++p) {
#pragma unroll
      for (int word = 0; word < words; ++word) {
        metadata[p][word] = stage.metadata[row / Multiply::m + p][word][thread];
        ptxmma::fence_operand(metadata[p][word]);
      }
    }
    ptxmma::wgmma_fence();
#pragma unroll
    for (int word = 0; word < words; ++word) {
#pragma unroll
      for (int selector = 0; selector < Metadata::selectors; ++selector) {
        const int k = (word * Metadata::selectors + selector) * Multiply::k;
#pragma unroll
        for (int p = 0; p < parts; ++p) {
          Multiply::call(sums[p], A::descriptor(a, row + p * Multiply::m, k / 2), B::descriptor(b, 0, k), metadata[p][word], selector,
                         accumulate || k > 0);
        }
      }
    }
    ptxmma::wgmma_commit_group();
  }
};

}  // namespace sparse_gemm_sm90
