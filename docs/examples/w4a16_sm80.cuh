// Y = X * W with mma.sync, on every chip from Ampere on: X is m x k, f16 or bf16, row-major, with m from 1 to 64. W is k x n, in codes of 4
// bits: int4, or e2m1, or uint4 with zero points. Each column has a scale for each group of its codes along k. Y is m x n, row-major, of
// X's type.
//
// The instruction's A is the transpose of W, 16 columns of W by 16 along k, and its B the transpose of X, so that 8 rows of X suffice. Codes lie
// in memory in the order in which lanes read them (ptxmma.quantised.permute): each lane copies 16 bytes, reads them back itself, and
// makes the registers of A from them without a shuffle. Products of X and codes are exact; the sum of a group is scaled in f32.
//
// A warp copies the codes of its own columns; X is the block's. w4a16_sm80_plan.cuh launches the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <ptxmma/cp_async.cuh>
#include <ptxmma/cuda/copy_pipeline.cuh>
#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/griddepcontrol.cuh>
#include <ptxmma/mma/bf16_bf16.cuh>
#include <ptxmma/mma/f16_f16.cuh>

#include "w4a16.cuh"

namespace w4a16_sm80 {

using namespace w4a16;
constexpr int STEP = 2 * LOAD;  // along k: of a warp

template <class Input>
struct Arguments {
  const Input* x;
  const uint4* codes;   // [n / 16][k / LOAD][lane]
  const uint4* scales;  // [n / 16][k / group][UNIT bytes of 32]: two for each lane / 4
  const uint4* zeros;   // the same, integers of 16 bits
  Input* y;
  float4* parts;  // of Run
  int* ready;
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
  static constexpr int rows = Shape::rows, down = Shape::down, across = Shape::across, deep = Shape::deep, stages = Shape::stages;
  static constexpr int warps = across * deep, threads = warps * WARP, columns = across * down * Multiply::m, right = rows / Multiply::n;
  static constexpr int depth = deep * STEP, loads = STEP / LOAD, spans = STEP / Span;
  using X = ptxmma::shared_tile<Element, PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, rows, STEP>;
  using Copies = ptxmma::tile_copies<X, threads>;

  struct Stage {
    alignas(X::alignment) unsigned char x[deep][X::bytes];
    uint4 codes[warps][down][loads][WARP];
    uint4 scales[warps][spans][down][PAIR_UNITS];
    uint4 zeros[warps][has_zeros<Code> ? spans : 0][down][PAIR_UNITS];
  };
  using Pipeline = ptxmma::copy_pipeline<stages, sizeof(Stage)>;

  const Args& arguments;
  uint32_t ring;  // the shared address of the first stage
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warp_across = warp % across, warp_deep = warp / across;
  Run run = Run::of_block<Product>(arguments);

  // The first of a warp's tiles of 16 columns.
  __device__ __forceinline__ int first_tile(int tile) const { return (tile * across + warp_across) * down; }

  // What a warp copies for itself, ahead of the products.
  struct Codes {
    const Product& product;
    int tile, step, k;
    const uint4* codes;

    __device__ __forceinline__ Codes(const Product& product, int unit) : product(product), tile(unit / product.run.steps), step(unit % product.run.steps) {
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
      constexpr int all = spans * down * PAIR_UNITS;
      const Args& arguments = product.arguments;
#pragma unroll
      for (int number = product.lane; number < all; number += WARP) {
        const int span = number / (down * PAIR_UNITS), i = number / PAIR_UNITS % down;
        const int group = min(k + span * Span, arguments.k - 1) >> arguments.group_bits, groups = ((arguments.k - 1) >> arguments.group_bits) + 1;
        ptxmma::cp_async_cg_shared(to + (product.warp * all + number) * UNIT,
                                   pairs + (tile_of(i) * groups + group) * PAIR_UNITS + number % PAIR_UNITS);
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
      if constexpr (has_zeros<Code>) copy_pairs(stage + uint32_t(offsetof(Stage, zeros)), arguments.zeros);
      codes += deep * loads * WARP;
      k += deep * STEP;
      if (++step == product.run.steps) {
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
      step = step + 1 == product.run.steps ? 0 : step + 1;
    }
  };

  __device__ __forceinline__ void multiply(typename Sums::type (&sums)[down][right], uint32_t address) const {
    const uint32_t x = address + warp_deep * uint32_t(X::bytes);
    const Stage& stage = *static_cast<const Stage*>(__cvta_shared_to_generic(address));
#pragma unroll
    for (int span = 0; span < spans; ++span) {
      typename Sums::type part[down][right] = {};
      uint4 codes[down];
      uint32_t zeros[down][2] = {};
      if constexpr (has_zeros<Code>) {
#pragma unroll
        for (int i = 0; i < down; ++i) ptxmma::spread_halves(pair(stage.zeros[warp][span][i], lane), zeros[i]);
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
        float scale[2];
        scales_of<Input>(scale, stage.scales[warp][span][i], lane);
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
        for (int j = 0; j < right; ++j) Run::add(own[i][j], *place(other + (other >= warp_deep), warp_deep, i, j));
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

  __device__ __forceinline__ void multiply_all() {
    const int first = run.first(), last = run.end();
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
    Rows x{*this, first % run.steps};
    for (int i = 0; i < int(pipeline.ahead); ++i) {
      if (first + i < last) x.copy(pipeline.filling);
      pipeline.commit();
    }
    int tile = first / run.steps;
    for (int unit = first; unit < last; ++tile) {
      const int end = min((tile + 1) * run.steps, last);
      const bool begins = unit == tile * run.steps, ends = end == (tile + 1) * run.steps;
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
      auto& quads = reinterpret_cast<float(&)[owned * right][Sums::elements]>(own);
      if (!begins) {
        run.give<warps>(quads, warp, lane);
      } else {
        if (!ends) run.take<warps>(quads, tile, warp, lane);
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
