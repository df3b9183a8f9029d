// D = alpha * A * B + beta * C with mma.sync, on every chip from Ampere on. A is m x k and B is k x n, each row-major or column-major; C and D
// are m x n, row-major. Or A has 2:4 sparsity, and mma.sp multiplies its compressed values.
//
// A block has eight warps. Each multiplies a part of the block's tile, all parts from the same stage in shared memory. cp.async fills a ring
// of stages, a few ahead; ldmatrix fetches the registers of the next instructions while the present ones run. The blocks are persistent,
// and the copies run ahead into the next tile: while one is written, the next arrives. gemm_sm80_plan.cuh launches the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include <ptxmma/cuda/copy_pipeline.cuh>
#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/mma/bf16_bf16.cuh>
#include <ptxmma/mma/f16_f16.cuh>
#include <ptxmma/mma/s8_s8.cuh>
#include <ptxmma/mma/tf32_tf32.cuh>
#include <ptxmma/mma_sp/bf16_bf16.cuh>
#include <ptxmma/mma_sp/f16_f16.cuh>

namespace gemm_sm80 {

using ptxmma::storage;

constexpr int WARP = 32, WARPS_DOWN = 2, WARPS_ACROSS = 4, THREADS = WARPS_DOWN * WARPS_ACROSS * WARP;
constexpr int UNIT = 16;  // bytes that cp.async copies at once

// In what the products of a type are summed.
template <class Element>
using Accumulator = std::conditional_t<std::is_integral<storage<Element>>::value, ptxmma::s32, ptxmma::f32>;

// Two neighbours in a row of D.
__device__ inline __nv_bfloat162 pair(__nv_bfloat16, float x, float y) { return __floats2bfloat162_rn(x, y); }
__device__ inline __half2 pair(__half, float x, float y) { return __floats2half2_rn(x, y); }
__device__ inline float2 pair(float, float x, float y) { return {x, y}; }
__device__ inline int2 pair(int32_t, int32_t x, int32_t y) { return {x, y}; }

// Fetches the fragment that begins at (x, k). The swizzle repeats itself from instruction to instruction along the lines of a tile, so that
// a step along them is a constant to the compiler, and only the position on a line is worked out for each thread.
template <class Fragment, class Tile>
__device__ __forceinline__ void fetch_fragment(uint32_t (&registers)[Fragment::registers], uint32_t start, int lane, int x, int k) {
  constexpr bool along_k = Tile::majorness == PTXMMA_MAJORNESS_K;
  const uint32_t line = start + (along_k ? Tile::offset(x, 0) : Tile::offset(0, k));
  ptxmma::load_fragment<Fragment, Tile>(registers, line, lane, along_k ? 0 : x, along_k ? k : 0);
}

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

template <class Input, class Output, class Scalar>
struct Arguments {
  const Input *a, *b;
  const uint32_t* metadata;  // of a sparse A, in registers as ptxmma::sparse::compress makes them
  const Output* c;
  Output* d;
  int lda, ldb, ldc, ldd;  // elements from a row, or a column if that is contiguous, to the next
  int m, n, k;
  Scalar alpha, beta;
};

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, bool sparse>
struct Gemm {
  static_assert(!sparse || major_a == PTXMMA_MAJORNESS_K, "compressed values lie beside each other along k");
  using Input = storage<Element>;
  using Output = storage<Result>;
  using Sum = Accumulator<Element>;
  static constexpr int kept = 32 / sizeof(Input), step = sparse ? 2 * kept : kept;  // an instruction reads 32 bytes of A along k
  using Shape = ptxmma::shape<16, 8, step>;
  using Multiply = std::conditional_t<sparse, ptxmma::mma_sp_ordered_metadata<Shape, Sum, Element, Element, Sum>,
                                      ptxmma::mma<Shape, Sum, Element, Element, Sum>>;
  using Sums = typename Multiply::d;
  using Scalar = typename Sums::register_type;
  using Args = Arguments<Input, Output, Scalar>;
  using TwoB = ptxmma::side_by_side<Multiply, 2>;

  // Two instructions deep. Four stages of 24.5 KiB, or three of 25 KiB if A is sparse, fit into the 99 KiB of the smaller chips.
  static constexpr int steps = 2, rows = 128, columns = sparse ? 128 : 256, stages = sparse ? 3 : 4;
  using A = ptxmma::shared_tile<Element, major_a, PTXMMA_SWIZZLE_64B, rows, steps * kept>;
  using B = ptxmma::shared_tile<Element, major_b, sparse && major_b == PTXMMA_MAJORNESS_K ? PTXMMA_SWIZZLE_128B : PTXMMA_SWIZZLE_64B,
                                columns, steps * step>;
  static constexpr int down = rows / WARPS_DOWN / Multiply::m, across = columns / WARPS_ACROSS / Multiply::n;  // instructions of a warp
  static constexpr int words = sparse ? rows / Multiply::m * WARP : 0;  // of metadata, for both steps

  struct Stage {
    alignas(A::alignment) unsigned char a[A::bytes];
    alignas(B::alignment) unsigned char b[B::bytes];
    alignas(UNIT) uint32_t metadata[words + !sparse];
  };
  struct Fragments {
    typename Multiply::a::type a[down];
    typename Multiply::b::type b[across];
    uint32_t metadata[down];
  };

  using CopiesOfA = ptxmma::tile_copies<A, THREADS>;
  using CopiesOfB = ptxmma::tile_copies<B, THREADS>;

  const Args& arguments;
  ptxmma::copy_pipeline<stages, sizeof(Stage)> pipeline;
  int tiles_down = ceil_div(arguments.m, rows), tiles_across = ceil_div(arguments.n, columns), tiles = tiles_down * tiles_across;
  int depth = ceil_div(arguments.k, B::k);  // stages for a tile
  int lane = threadIdx.x % WARP, row_of_warp = threadIdx.x / WARP % WARPS_DOWN * (rows / WARPS_DOWN);
  int column_of_warp = threadIdx.x / WARP / WARPS_DOWN * (columns / WARPS_ACROSS);

  // Where the copies are, which run ahead of the multiplications: what this thread copies next, and what is left of the
  // matrices from the tile's corner on.
  int next_tile = blockIdx.x;
  const char *next_a, *next_b;
  const uint32_t* next_metadata;
  int rows_left, columns_left, k_left;

  // The row and the column of D where a tile begins: down a band of a few rows, then one column to the right, and so on. The tiles in work
  // at a time form a rectangle, as square as can be, and what they read stays in L2.
  __device__ __forceinline__ int2 corner(int tile) const {
    constexpr int band = 16;
    const int top = tile / (band * tiles_across) * band, height = min(band, tiles_down - top), rest = tile - top * tiles_across;
    return {(top + rest % height) * rows, rest / height * columns};
  }

  // Prepares the copies of a tile, if there is one left.
  __device__ __forceinline__ void begin_copies() {
    const auto [row, column] = corner(min(next_tile, tiles - 1));
    const bool exists = next_tile < tiles;
    next_a = CopiesOfA::first(arguments.a, arguments.lda, row);
    next_b = CopiesOfB::first(arguments.b, arguments.ldb, column);
    rows_left = exists ? arguments.m - row : 0;
    columns_left = exists ? arguments.n - column : 0;
    k_left = arguments.k;
    if constexpr (sparse) {  // rows beyond the end get that of the last ones
      const int word = threadIdx.x * (UNIT / sizeof(uint32_t)), block = min(row + word / WARP * Multiply::m, arguments.m - 1) / Multiply::m;
      next_metadata = arguments.metadata + int64_t(block) * depth * WARP + word % WARP;
    }
  }

  // Starts the copies of one stage.
  __device__ __forceinline__ void copy_next() {
    CopiesOfA::copy(pipeline.filling + offsetof(Stage, a), next_a, arguments.lda, rows_left, sparse ? k_left / 2 : k_left);
    CopiesOfB::copy(pipeline.filling + offsetof(Stage, b), next_b, arguments.ldb, columns_left, k_left);
    if constexpr (sparse) {
      const bool mine = threadIdx.x < words * sizeof(uint32_t) / UNIT;
      ptxmma::cp_async_if(mine, pipeline.filling + offsetof(Stage, metadata) + threadIdx.x * UNIT, next_metadata);
      next_metadata += WARP;
    }
    pipeline.commit();
    next_a += CopiesOfA::depth(arguments.lda);
    next_b += CopiesOfB::depth(arguments.ldb);
    k_left -= B::k;
  }

  // After the last copies of a tile come those of the next.
  __device__ __forceinline__ void end_copies() {
    if (k_left <= 0) {
      next_tile += gridDim.x;
      begin_copies();
    }
  }

  __device__ __forceinline__ void fetch(Fragments& fragments, uint32_t stage, int index) const {
    const uint32_t a = stage + offsetof(Stage, a), b = stage + offsetof(Stage, b);
#pragma unroll
    for (int i = 0; i < down; ++i) {
      fetch_fragment<typename Multiply::a, A>(fragments.a[i], a, lane, row_of_warp + i * Multiply::m, index * kept);
      if constexpr (sparse) {
        const uint32_t word = (row_of_warp / Multiply::m + i) * WARP + lane;
        fragments.metadata[i] = *static_cast<const uint32_t*>(__cvta_shared_to_generic(stage + offsetof(Stage, metadata) + word * sizeof(uint32_t)));
      }
    }
#pragma unroll
    for (int j = 0; j < across; j += 2) {
      typename TwoB::type both;
      fetch_fragment<TwoB, B>(both, b, lane, column_of_warp + j * Multiply::n, index * step);
#pragma unroll
      for (int i = 0; i < TwoB::registers; ++i) fragments.b[j + i / (TwoB::registers / 2)][i % (TwoB::registers / 2)] = both[i];
    }
  }

  static __device__ __forceinline__ void multiply(
      typename Sums::type (&sums)[down][across], const Fragments& fragments, int index) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
#pragma unroll
      for (int j = 0; j < across; ++j) {
        if constexpr (sparse) {
          Multiply::call(sums[i][j], fragments.a[i], fragments.b[j], sums[i][j], fragments.metadata[i], index);
        } else {
          Multiply::call(sums[i][j], fragments.a[i], fragments.b[j], sums[i][j]);
        }
      }
    }
  }

  // Writes `count` neighbours in a row together, 8 bytes, and so whole sectors of memory with the threads beside this one.
  template <bool add, int count>
  __device__ __forceinline__ void write(const Scalar (&sums)[count], int row, int column) const {
    using Pair = decltype(pair(Output(), Scalar(), Scalar()));
    struct alignas(8) Unit {
      Pair pairs[count / 2];
    } unit;
    uint2& words = reinterpret_cast<uint2&>(unit);
    if (add) words = *reinterpret_cast<const uint2*>(arguments.c + int64_t(row) * arguments.ldc + column);
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      Scalar x = arguments.alpha * sums[2 * i], y = arguments.alpha * sums[2 * i + 1];
      if (add) {
        x += arguments.beta * static_cast<Scalar>(unit.pairs[i].x);
        y += arguments.beta * static_cast<Scalar>(unit.pairs[i].y);
      }
      unit.pairs[i] = pair(Output(), x, y);
    }
    *reinterpret_cast<uint2*>(arguments.d + int64_t(row) * arguments.ldd + column) = words;
  }

  // Writes a tile that begins at (row, column) of D, all of which exists if `inside`.
  template <bool add, bool inside>
  __device__ __forceinline__ void write(const typename Sums::type (&sums)[down][across], int row, int column) const {
    static_assert(Sums::col(1, 0) == 2 && Sums::col(0, 1) == 1 && Sums::row(1, 0) == 0, "a thread's neighbour holds the next two columns");
#pragma unroll
    for (int i = 0; i < down; ++i) {
#pragma unroll
      for (int e = 0; e < Sums::elements; e += 2) {
        const int r = row + row_of_warp + i * Multiply::m + Sums::row(lane, e), c = column + column_of_warp + Sums::col(lane, e);
#pragma unroll
        for (int j = 0; j < across; j += 2) {
          const Scalar(&left)[Sums::elements] = sums[i][j], (&right)[Sums::elements] = sums[i][j + 1];
          const int column_of_left = c + j * Multiply::n;
          if constexpr (sizeof(Output) == 2) {
            // Of two instructions beside each other, threads with even numbers write four sums of the left one, others of the right one.
            const bool odd = lane % 2;
            const Scalar x = __shfl_xor_sync(0xffffffff, odd ? left[e] : right[e], 1);
            const Scalar y = __shfl_xor_sync(0xffffffff, odd ? left[e + 1] : right[e + 1], 1);
            const Scalar four[] = {odd ? x : left[e], odd ? y : left[e + 1], odd ? right[e] : x, odd ? right[e + 1] : y};
            const int first = column_of_left + lane % 2 * (Multiply::n - 2);
            if (inside || (r < arguments.m && first < arguments.n)) write<add>(four, r, first);
          } else {
            const int column_of_right = column_of_left + Multiply::n;
            const Scalar two[][2] = {{left[e], left[e + 1]}, {right[e], right[e + 1]}};
            if (inside || (r < arguments.m && column_of_left < arguments.n)) write<add>(two[0], r, column_of_left);
            if (inside || (r < arguments.m && column_of_right < arguments.n)) write<add>(two[1], r, column_of_right);
          }
        }
      }
    }
  }

  // Multiplies what a stage holds, of which the first fragments have been fetched, and starts the copies of a later one.
  __device__ __forceinline__ void advance(typename Sums::type (&sums)[down][across], Fragments (&fragments)[2]) {
#pragma unroll
    for (int index = 0; index < steps; ++index) {
      if (index == steps - 1) {  // all warps have fetched what this stage holds, and the next one has arrived
        pipeline.wait();
        __syncthreads();
        pipeline.next();
      }
      fetch(fragments[(index + 1) % 2], pipeline.reading, (index + 1) % steps);
      if (index == 0) copy_next();
      multiply(sums, fragments[index % 2], index);
      if (index == 0) end_copies();
    }
  }

  __device__ __forceinline__ void run() {
    begin_copies();
    for (int i = 0; i < pipeline.ahead; ++i) {
      copy_next();
      end_copies();
    }
    pipeline.wait();
    __syncthreads();
    Fragments fragments[2];
    fetch(fragments[0], pipeline.reading, 0);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      typename Sums::type sums[down][across] = {};
      for (int round = 0; round < depth; ++round) {
        advance(sums, fragments);
      }
      const auto [row, column] = corner(tile);
      const bool inside = row + rows <= arguments.m && column + columns <= arguments.n;
      if (arguments.beta != 0) {
        inside ? write<true, true>(sums, row, column) : write<true, false>(sums, row, column);
      } else {
        inside ? write<false, true>(sums, row, column) : write<false, false>(sums, row, column);
      }
    }
  }
};

template <class G>
__global__ void __launch_bounds__(THREADS, 1) kernel(const typename G::Args arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  G gemm{arguments, decltype(G::pipeline)(ptxmma::shared_address(memory))};
  gemm.run();
}

}  // namespace gemm_sm80
