// Y = X * W with mma.sync, on every chip from Ampere on: X is m x k, f16 or bf16, row-major, with m from 1 to 64. W is k x n, in codes of 4
// bits: int4, or e2m1, or uint4 with zero points. Each column has a scale for each group of its codes along k. Y is m x n, row-major, of
// X's type.
//
// The instruction's A is the transpose of W, 16 columns of W by 16 along k, and its B the transpose of X, so that 8 rows of X suffice. Codes lie
// in memory in the order in which lanes read them (ptxmma.quantised.permute): each lane copies 16 bytes, reads them back itself, and
// makes the registers of A from them without a shuffle. Products of X and codes are exact; the sum of a group is scaled in f32.
//
// A unit of work is a tile of columns and a step along k. Each block has a run of units, one after the other, and copies a few units ahead.
// Where several blocks share the sum of a tile, the one that begins the tile waits for the others, and adds their parts in the order of
// k: the result is the same each time. w4a16_sm80_plan.cuh launches the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda/atomic>
#include <cuda_runtime.h>

#include <ptxmma/cp_async.cuh>
#include <ptxmma/cuda/copy_pipeline.cuh>
#include <ptxmma/cuda/dequantise.cuh>
#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/griddepcontrol.cuh>
#include <ptxmma/mma/bf16_bf16.cuh>
#include <ptxmma/mma/f16_f16.cuh>

namespace w4a16_sm80 {

using ptxmma::storage;
constexpr int WARP = 32, UNIT = 16;  // bytes that cp.async copies at once
constexpr int LOAD = 64, STEP = 2 * LOAD;  // along k: codes of a lane's 16 bytes, and of a step of a warp

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

// The conversion of eight codes to the registers of A. Only uint4 has zero points.
template <class Code, class Element>
struct Conversion;
template <>
struct Conversion<ptxmma::s4, ptxmma::f16> {
  static __device__ void call(uint32_t codes, const uint32_t (&)[2], uint32_t (&a)[4]) { ptxmma::dequantise_s4_f16(codes, a); }
};
template <>
struct Conversion<ptxmma::e2m1, ptxmma::f16> {
  static __device__ void call(uint32_t codes, const uint32_t (&)[2], uint32_t (&a)[4]) { ptxmma::dequantise_e2m1_f16(codes, a); }
};
template <>
struct Conversion<ptxmma::u4, ptxmma::f16> {
  static __device__ void call(uint32_t codes, const uint32_t (&zero)[2], uint32_t (&a)[4]) { ptxmma::dequantise_u4_f16(codes, zero, a); }
};
template <>
struct Conversion<ptxmma::s4, ptxmma::bf16> {
  static __device__ void call(uint32_t codes, const uint32_t (&)[2], uint32_t (&a)[4]) { ptxmma::dequantise_s4_bf16(codes, a); }
};
template <>
struct Conversion<ptxmma::e2m1, ptxmma::bf16> {
  static __device__ void call(uint32_t codes, const uint32_t (&)[2], uint32_t (&a)[4]) { ptxmma::dequantise_e2m1_bf16(codes, a); }
};
template <>
struct Conversion<ptxmma::u4, ptxmma::bf16> {
  static __device__ void call(uint32_t codes, const uint32_t (&zero)[2], uint32_t (&a)[4]) { ptxmma::dequantise_u4_bf16(codes, zero, a); }
};

template <class Input>
struct Arguments {
  const Input* x;
  const uint4* codes;   // [n / 16][k / LOAD][lane]
  const uint4* scales;  // [n / 16][k / group][UNIT bytes of 32]: two for each lane / 4
  const uint4* zeros;   // the same, integers of 16 bits
  Input* y;
  float4* parts;  // of each run, the sums that it has for another
  int* ready;     // of each run: 1 once its part is there; 0 before and after
  int m, n, k, x_pitch, y_pitch, group_bits;  // a group is 2^group_bits along k, or all of it
};

// How a block is shared: rows of X, times 16 columns that a warp multiplies, warps side by side along n, and along k.
template <int Rows, int Down, int Across, int Deep, int Stages>
struct Shape {
  static constexpr int rows = Rows, down = Down, across = Across, deep = Deep, stages = Stages;
};

// Span: sums are scaled after as many codes along k. It divides a group.
template <class Element, class Code, int Span, class Shape>
struct Product {
  using Input = storage<Element>;
  using Args = Arguments<Input>;
  using Multiply = ptxmma::mma<ptxmma::shape<16, 8, 16>, ptxmma::f32, Element, Element, ptxmma::f32>;
  using TwoB = ptxmma::side_by_side<Multiply, 2>;
  using Sums = typename Multiply::d;
  static constexpr bool has_zeros = std::is_same<Code, ptxmma::u4>::value;
  static constexpr int rows = Shape::rows, down = Shape::down, across = Shape::across, deep = Shape::deep, stages = Shape::stages;
  static constexpr int warps = across * deep, threads = warps * WARP, columns = across * down * Multiply::m, right = rows / Multiply::n;
  static constexpr int loads = STEP / LOAD, spans = STEP / Span;
  static constexpr int pair_units = 2;  // of UNIT bytes that 16 columns have for a group
  using X = ptxmma::shared_tile<Element, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, rows, STEP>;
  using Copies = ptxmma::tile_copies<X, threads>;

  struct Stage {
    alignas(X::alignment) unsigned char x[deep][X::bytes];
    uint4 codes[warps][down][loads][WARP];
    uint4 scales[warps][spans][down][pair_units];
    uint4 zeros[warps][has_zeros ? spans : 0][down][pair_units];
  };
  using Pipeline = ptxmma::copy_pipeline<stages, sizeof(Stage)>;

  const Args& arguments;
  uint32_t ring;  // the shared address of the first stage
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warp_across = warp % across, warp_deep = warp / across;
  int steps = ceil_div(arguments.k, deep * STEP), units = ceil_div(arguments.n, columns) * steps;
  // Blocks that start later have earlier runs: those for which a block waits have started before it.
  int run = gridDim.x - 1 - blockIdx.x;

  __device__ __forceinline__ int begin(int run) const { return int(int64_t(run) * units / gridDim.x); }
  __device__ __forceinline__ int run_of(int unit) const { return int((int64_t(unit + 1) * gridDim.x - 1) / units); }
  // The first of a warp's tiles of 16 columns.
  __device__ __forceinline__ int first_tile(int tile) const { return (tile * across + warp_across) * down; }

  // What a warp copies for itself, ahead of the products.
  struct Codes {
    const Product& product;
    int tile, step, k;
    const uint4* codes;

    __device__ __forceinline__ Codes(const Product& product, int unit) : product(product), tile(unit / product.steps), step(unit % product.steps) {
      begin();
    }
    __device__ __forceinline__ int count() const { return product.arguments.k / LOAD; }
    // Columns that do not exist are the last ones again. Nobody writes them.
    __device__ __forceinline__ int tile_of(int i) const { return min(product.first_tile(tile) + i, product.arguments.n / Multiply::m - 1); }

    __device__ __forceinline__ void begin() {
      k = (step * deep + product.warp_deep) * STEP;
      codes = product.arguments.codes + (int64_t(tile_of(0)) * count() + k / LOAD) * WARP + product.lane;
    }

    // Copies what the columns have for each group: a unit of 16 bytes in each lane.
    __device__ __forceinline__ void copy_pairs(uint32_t to, const uint4* pairs) const {
      constexpr int all = spans * down * pair_units;
      const Args& arguments = product.arguments;
#pragma unroll
      for (int number = product.lane; number < all; number += WARP) {
        const int span = number / (down * pair_units), i = number / pair_units % down;
        const int group = min(k + span * Span, arguments.k - 1) >> arguments.group_bits, groups = ((arguments.k - 1) >> arguments.group_bits) + 1;
        ptxmma::cp_async_cg_shared(to + (product.warp * all + number) * UNIT,
                                   pairs + (tile_of(i) * groups + group) * pair_units + number % pair_units);
      }
    }

    __device__ __forceinline__ void copy(uint32_t stage) {
      const Args& arguments = product.arguments;
      const uint32_t to = stage + uint32_t(offsetof(Stage, codes)) + (product.warp * down * loads * WARP + product.lane) * UNIT;
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (k + j * LOAD >= arguments.k) break;  // what a stage holds there is multiplied by zeros
#pragma unroll
        for (int i = 0; i < down; ++i) {
          const int64_t row = int64_t(tile_of(i) - tile_of(0)) * count() + j;
          ptxmma::cp_async_cg_shared(to + (i * loads + j) * WARP * UNIT, codes + row * WARP);
        }
      }
      copy_pairs(stage + uint32_t(offsetof(Stage, scales)), arguments.scales);
      if constexpr (has_zeros) copy_pairs(stage + uint32_t(offsetof(Stage, zeros)), arguments.zeros);
      codes += deep * loads * WARP;
      k += deep * STEP;
      if (++step == product.steps) {
        step = 0;
        ++tile;
        begin();
      }
    }
  };

  // What the block copies of X.
  struct Rows {
    const Product& product;
    int step;
    const char* from = Copies::first(product.arguments.x, product.arguments.x_pitch, 0);

    __device__ __forceinline__ void copy(uint32_t stage) {
      const Args& arguments = product.arguments;
#pragma unroll
      for (int slice = 0; slice < deep; ++slice) {
        const int number = step * deep + slice;
        Copies::copy(stage + slice * uint32_t(X::bytes), from + number * Copies::depth(arguments.x_pitch), arguments.x_pitch, arguments.m,
                     arguments.k - number * STEP);
      }
      step = step + 1 == product.steps ? 0 : step + 1;
    }
  };

  // Two values of a lane's columns, lane / 4 and lane / 4 + 8 of 16.
  __device__ __forceinline__ uint32_t pair(const uint4 (&pairs)[pair_units]) const { return reinterpret_cast<const uint32_t*>(pairs)[lane / 4]; }

  __device__ __forceinline__ void multiply(typename Sums::type (&sums)[down][right], uint32_t address) const {
    const uint32_t x = address + warp_deep * uint32_t(X::bytes);
    const Stage& stage = *static_cast<const Stage*>(__cvta_shared_to_generic(address));
#pragma unroll
    for (int span = 0; span < spans; ++span) {
      typename Sums::type part[down][right] = {};
      uint4 codes[down];
      uint32_t zeros[down][2] = {};
      if constexpr (has_zeros) {
#pragma unroll
        for (int i = 0; i < down; ++i) ptxmma::spread_halves(pair(stage.zeros[warp][span][i]), zeros[i]);
      }
#pragma unroll
      for (int index = span * Span / Multiply::k; index < (span + 1) * Span / Multiply::k; ++index) {
        typename Multiply::b::type b[right];
        if constexpr (right == 1) {
          ptxmma::load_fragment<typename Multiply::b, X>(b[0], x, lane, 0, index * Multiply::k);
        } else {
#pragma unroll
          for (int j = 0; j < right; j += 2) {
            typename TwoB::type both;
            ptxmma::load_fragment<TwoB, X>(both, x, lane, j * Multiply::n, index * Multiply::k);
#pragma unroll
            for (int i = 0; i < TwoB::registers; ++i) b[j + i / (TwoB::registers / 2)][i % (TwoB::registers / 2)] = both[i];
          }
        }
        constexpr int words = LOAD / Multiply::k;
        const int word = index % words;
        typename Multiply::a::type a[down];
#pragma unroll
        for (int i = 0; i < down; ++i) {
          if (word == 0 || index == span * Span / Multiply::k) codes[i] = stage.codes[warp][i][index / words][lane];
          Conversion<Code, Element>::call(word == 0 ? codes[i].x : word == 1 ? codes[i].y : word == 2 ? codes[i].z : codes[i].w, zeros[i], a[i]);
        }
#pragma unroll
        for (int j = 0; j < right; ++j) {
#pragma unroll
          for (int i = 0; i < down; ++i) Multiply::call(part[i][j], a[i], b[j], part[i][j]);
        }
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
        const uint32_t both = pair(stage.scales[warp][span][i]);
        Input scales[2];
        std::memcpy(scales, &both, sizeof scales);
        const float scale[2] = {float(scales[0]), float(scales[1])};
#pragma unroll
        for (int j = 0; j < right; ++j) {
#pragma unroll
          for (int e = 0; e < Sums::elements; ++e) sums[i][j][e] += scale[Sums::row(0, e) / 8] * part[i][j][e];
        }
      }
    }
  }

  // The sums that a warp keeps: of the warps along k, each has some of the 16 columns, and takes the sums of the others.
  static constexpr int owned = down / deep;
  static_assert(down % deep == 0, "each warp along k owns as many columns");
  using Own = typename Sums::type[owned][right];

  static __device__ __forceinline__ void add(typename Sums::type& sum, float4 part) {
    sum[0] += part.x;
    sum[1] += part.y;
    sum[2] += part.z;
    sum[3] += part.w;
  }

  // Adds the sums of warps along k, which change hands in a stage that all have read.
  __device__ __forceinline__ void add_warps(Own& own, const typename Sums::type (&sums)[down][right], uint32_t stage) const {
    static_assert(warps * (down - owned) * right * WARP * sizeof(float4) <= sizeof(Stage), "the sums that are handed over fit into a stage");
    const auto place = [&](int from, int to, int i, int j) {
      const int number = to * (deep - 1) + from - (from > to);
      return static_cast<float4*>(__cvta_shared_to_generic(stage)) + ((number * across + warp_across) * owned + i) * right * WARP + j * WARP + lane;
    };
    if (deep > 1) __syncthreads();
#pragma unroll
    for (int i = 0; i < down; ++i) {
#pragma unroll
      for (int j = 0; j < right; ++j) {
        const auto& sum = sums[i][j];
        if (i / owned != warp_deep) {
          *place(warp_deep, i / owned, i % owned, j) = {sum[0], sum[1], sum[2], sum[3]};
        } else {
#pragma unroll
          for (int e = 0; e < Sums::elements; ++e) own[i % owned][j][e] = sum[e];
        }
      }
    }
    if (deep > 1) __syncthreads();
#pragma unroll
    for (int other = 0; other < deep - 1; ++other) {
#pragma unroll
      for (int i = 0; i < owned; ++i) {
#pragma unroll
        for (int j = 0; j < right; ++j) add(own[i][j], *place(other + (other >= warp_deep), warp_deep, i, j));
      }
    }
  }

  __device__ __forceinline__ void write(const Own& own, int tile) const {
#pragma unroll
    for (int i = 0; i < owned; ++i) {
#pragma unroll
      for (int j = 0; j < right; ++j) {
#pragma unroll
        for (int e = 0; e < Sums::elements; ++e) {
          const int column = (first_tile(tile) + warp_deep * owned + i) * Multiply::m + Sums::row(lane, e), row = j * Multiply::n + Sums::col(lane, e);
          if (row < arguments.m && column < arguments.n) arguments.y[int64_t(row) * arguments.y_pitch + column] = Input(own[i][j][e]);
        }
      }
    }
  }

  __device__ __forceinline__ float4* part_of(int run, int i, int j) const {
    return arguments.parts + (((int64_t(run) * warps + warp) * owned + i) * right + j) * WARP + lane;
  }
  __device__ __forceinline__ cuda::atomic_ref<int, cuda::thread_scope_device> ready(int run) const {
    return cuda::atomic_ref<int, cuda::thread_scope_device>(arguments.ready[run]);
  }

  // Hands the sums of a tile to the run that begins it.
  __device__ __forceinline__ void give(const Own& own) const {
#pragma unroll
    for (int i = 0; i < owned; ++i) {
#pragma unroll
      for (int j = 0; j < right; ++j) *part_of(run, i, j) = {own[i][j][0], own[i][j][1], own[i][j][2], own[i][j][3]};
    }
    __syncthreads();
    if (threadIdx.x == 0) ready(run).store(1, cuda::memory_order_release);
  }

  // Adds what the later runs have of a tile.
  __device__ __forceinline__ void take(Own& own, int tile) const {
    const int last = run_of((tile + 1) * steps - 1);
    if (threadIdx.x == 0) {
      for (int other = run + 1; other <= last; ++other) {
        while (ready(other).load(cuda::memory_order_acquire) == 0) {
        }
        ready(other).store(0, cuda::memory_order_relaxed);
      }
    }
    __syncthreads();
    for (int other = run + 1; other <= last; ++other) {
#pragma unroll
      for (int i = 0; i < owned; ++i) {
#pragma unroll
        for (int j = 0; j < right; ++j) add(own[i][j], __ldcg(part_of(other, i, j)));
      }
    }
  }

  __device__ __forceinline__ void multiply_all() {
    const int first = begin(run), last = begin(run + 1);
    Pipeline pipeline(ring);
    Codes codes(*this, first);
    uint32_t stage = ring;
    for (int i = 0; i < int(pipeline.ahead); ++i, stage = pipeline.after(stage)) {
      if (first + i < last) codes.copy(stage);
    }
#if __CUDA_ARCH__ >= 900
    // Weights are there before the kernel that writes X has ended. It may be this kernel, with its own use of `parts`.
    ptxmma::griddepcontrol_wait();
    ptxmma::griddepcontrol_launch_dependents();
#endif
    Rows x{*this, first % steps};
    for (int i = 0; i < int(pipeline.ahead); ++i) {
      if (first + i < last) x.copy(pipeline.filling);
      pipeline.commit();
    }
    int tile = first / steps;
    for (int unit = first; unit < last; ++tile) {
      const int end = min((tile + 1) * steps, last);
      const bool begins = unit == tile * steps, ends = end == (tile + 1) * steps;
      typename Sums::type sums[down][right] = {};
      for (; unit < end; ++unit, pipeline.next()) {
        pipeline.wait();
        __syncthreads();
        if (unit + int(pipeline.ahead) < last) {
          codes.copy(pipeline.filling);
          x.copy(pipeline.filling);
        }
        pipeline.commit();
        multiply(sums, stage = pipeline.reading);
      }
      Own own;
      add_warps(own, sums, stage);
      if (!begins) {
        give(own);
      } else {
        if (!ends) take(own, tile);
        write(own, tile);
      }
    }
  }
};

constexpr int PER_MULTIPROCESSOR = 2;  // blocks

template <class P>
__global__ void __launch_bounds__(P::threads, PER_MULTIPROCESSOR) kernel(const typename P::Args arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  P product{arguments, ptxmma::shared_address(memory)};
  product.multiply_all();
}

}  // namespace w4a16_sm80
