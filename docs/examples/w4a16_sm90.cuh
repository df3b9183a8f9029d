// The product of w4a16_sm80.cuh for Hopper, with the same weights: wgmma in place of mma.sync, TMA in place of cp.async.
//
// W transposed is A of wgmma, in registers: 16 of its 64 rows for each warp, as in mma.m16n8k16. X transposed is B, in shared memory. One thread
// has TMA bring codes, scales and X. Each of four warpgroups multiplies 64 columns of W: while the tensor cores multiply a chunk of codes,
// it converts the next one. A block takes almost all of the shared memory, and fills it with weights while the kernel in front ends.
// w4a16_sm90_plan.cuh launches the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/ordering.cuh>
#include <ptxmma/cuda/stage_ring.cuh>
#include <ptxmma/cuda/thread_groups.cuh>
#include <ptxmma/cuda/tile_transfers.cuh>
#include <ptxmma/griddepcontrol.cuh>
#include <ptxmma/setmaxnreg.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/f16_f16.cuh>

#include "w4a16.cuh"

namespace w4a16_sm90 {

using namespace w4a16;
using ptxmma::shared_address;

constexpr int WARPGROUP = 128, CONSUMERS = 4;  // threads, warpgroups that multiply
constexpr int STAGE_BYTES = 224 * 1024;        // for stages, of the 227 KiB that a block may have

template <class Input>
struct Arguments {
  CUtensorMap x, codes, scales, zeros;
  Input* y;
  float4* parts;  // of Run
  int* ready;
  int m, n, k, y_pitch, group_bits;  // a group is 2^group_bits along k, or all of it
};

// Span: sums are scaled after as many codes along k. It divides a group.
template <class Element, class Code, int Span, int Rows>
struct Product {
  using Input = storage<Element>;
  using Args = Arguments<Input>;
  static constexpr int rows = Rows, depth = 4 * LOAD;  // of X, and of a stage along k
  using Multiply = ptxmma::wgmma<ptxmma::shape<64, rows>, ptxmma::f32, Element, Element>;
  using Sums = typename Multiply::d;
  using X = typename Multiply::template b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, rows, depth>;
  static constexpr int warps = CONSUMERS * WARPGROUP / WARP, threads = (CONSUMERS + 1) * WARPGROUP;  // warps that multiply, 16 columns each
  static constexpr int columns = CONSUMERS * Multiply::m, loads = depth / LOAD, spans = depth / Span;

  struct Stage {
    alignas(X::alignment) unsigned char x[X::bytes];
    uint4 codes[warps][loads][WARP];
    alignas(128) uint4 scales[warps][spans][PAIR_UNITS];
    alignas(128) uint4 zeros[has_zeros<Code> ? warps : 0][spans][PAIR_UNITS];
  };
  static constexpr uint32_t pair_bytes = warps * spans * PAIR_UNITS * UNIT;
  static constexpr uint32_t bytes = X::transaction_bytes + warps * loads * WARP * UNIT + (has_zeros<Code> ? 2 : 1) * pair_bytes;
  static constexpr int stages = STAGE_BYTES / sizeof(Stage);
  struct Shared {
    Stage stages[Product::stages];
    ptxmma::stage_barriers<Product::stages> barriers;
  };

  const Args& arguments;
  Shared& shared;
  Run run = Run::of_block<Product>(arguments);

  __device__ __forceinline__ void load_weights(int unit, int number, uint64_t* full) {
    Stage& stage = shared.stages[number];
    const int tile = unit / run.steps * warps, step = unit % run.steps;
    const int32_t codes[] = {step * loads * WARP * 2, tile}, group[] = {(step * depth >> arguments.group_bits) * 16, tile};
    ptxmma::cp_async_bulk_tensor_2d_shared_cluster_global(stage.codes, &arguments.codes, codes, full);
    ptxmma::cp_async_bulk_tensor_2d_shared_cluster_global(stage.scales, &arguments.scales, group, full);
    if constexpr (has_zeros<Code>) ptxmma::cp_async_bulk_tensor_2d_shared_cluster_global(stage.zeros, &arguments.zeros, group, full);
  }
  __device__ __forceinline__ void load_x(int unit, int number, uint64_t* full) {
    ptxmma::load_tile<X>(shared.stages[number].x, &arguments.x, 0, unit % run.steps * depth, full);
  }

  __device__ __forceinline__ void produce() {
    const int first = run.first(), end = run.end(), early = min(first + stages, end);
    ptxmma::stage_ring<stages> ring;
    for (int unit = first; unit < early; ++unit) load_weights(unit, unit - first, shared.barriers.expect({unit - first, 0}, bytes));
    ptxmma::prefetch_tensor_map(&arguments.x);
    ptxmma::griddepcontrol_wait();  // weights are there before the kernel that writes X has ended
    for (int unit = first; unit < early; ++unit, ring.next()) load_x(unit, unit - first, &shared.barriers.full[unit - first]);
    for (int unit = early; unit < end; ++unit, ring.next()) {
      shared.barriers.wait_empty(ring);
      uint64_t* full = shared.barriers.expect(ring, bytes);
      load_weights(unit, ring.stage, full);
      load_x(unit, ring.stage, full);
    }
  }

  // A chunk is converted, and multiplied, at once: so many words, for one instruction each. Where registers suffice, the sums of a span are scaled
  // while those of the next one grow.
  static constexpr int longest = rows < 64 ? LOAD : LOAD / 2, words = (Span < longest ? Span : longest) / Multiply::k, parts = rows < 64 ? 2 : 1;
  static constexpr int chunks = depth / Multiply::k / words, chunks_of_span = Span / Multiply::k / words;
  using ThreadSums = typename Sums::type;
  using Operands = uint32_t[2][words][4];  // A of two chunks: one is multiplied while the other is converted

  // Waits until all but the last `further` chunks have been multiplied: these registers of A may be written again.
  template <int further>
  static __device__ __forceinline__ void wait(uint32_t (&a)[words][4]) {
    ptxmma::wgmma_wait_group<further>();
#pragma unroll
    for (int word = 0; word < words; ++word) ptxmma::fence_accumulator(a[word]);
  }

  struct Thread {
    int warpgroup = threadIdx.x / WARPGROUP, number = threadIdx.x % WARPGROUP, lane = number % WARP;
    int warp = threadIdx.x / WARP;  // and which 16 columns of a tile are its own
  };

  // The group that a span belongs to, counted from the first of a stage.
  __device__ __forceinline__ int group_of(int span) const { return span * Span >> arguments.group_bits; }

  __device__ __forceinline__ void convert(uint32_t (&a)[words][4], uint4& codes, const Stage& stage, const Thread& thread, int chunk) const {
    const int first = chunk * words, span = chunk / chunks_of_span;
    if (first % 4 == 0) codes = stage.codes[thread.warp][first / 4][thread.lane];
    uint32_t zero[2] = {};
    if constexpr (has_zeros<Code>) ptxmma::spread_halves(pair(stage.zeros[thread.warp][group_of(span)], thread.lane), zero);
#pragma unroll
    for (int word = 0; word < words; ++word) {
      const int number = (first + word) % 4;
      Conversion<Code, Element>::call(number == 0 ? codes.x : number == 1 ? codes.y : number == 2 ? codes.z : codes.w, zero, a[word]);
    }
#pragma unroll
    for (int word = 0; word < words; ++word) ptxmma::fence_accumulator(a[word]);
  }

  // Adds a stage to the sums. Its first chunk has been converted; the first of the next stage is, beside the last products.
  template <class Next>
  __device__ __forceinline__ void multiply(ThreadSums& sums, Operands& a, const Stage& stage, const Thread& thread, Next next) const {
    const auto x = X::descriptor(shared_address(stage.x));
    ThreadSums part[parts];
    uint4 codes = {};
    if constexpr (words < 4) codes = stage.codes[thread.warp][0][thread.lane];
    const auto add = [&](int span) {
      auto& products = part[span % parts];
      ptxmma::fence_accumulator(products);
      float scale[2];
      scales_of<Input>(scale, stage.scales[thread.warp][group_of(span)], thread.lane);
#pragma unroll
      for (int e = 0; e < Sums::elements; ++e) sums[e] += scale[e / 2 % 2] * products[e];
    };
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int span = chunk / chunks_of_span;
      const bool begins = chunk % chunks_of_span == 0, last = chunk + 1 == chunks;
      if (parts == 1 && begins && chunk > 0) {
        wait<0>(a[(chunk + 1) % 2]);
        add(span - 1);
      }
      ptxmma::fence_accumulator(part[span % parts]);
      ptxmma::wgmma_fence();
#pragma unroll
      for (int word = 0; word < words; ++word) {
        Multiply::call(part[span % parts], a[chunk % 2][word], X::advance(x, chunk * words + word), !begins || word > 0);
      }
      ptxmma::wgmma_commit_group();
      if (chunk > 0 && (parts == 2 || !begins)) {
        wait<1>(a[(chunk + 1) % 2]);
        if (begins) add(span - 1);
      }
      convert(a[(chunk + 1) % 2], codes, last ? next() : stage, thread, last ? 0 : chunk + 1);
    }
    wait<0>(a[(chunks - 1) % 2]);
    add(spans - 1);
  }

  __device__ __forceinline__ void write(const ThreadSums& sums, int tile, const Thread& thread) const {
#pragma unroll
    for (int e = 0; e < Sums::elements; ++e) {
      const int column = (tile * CONSUMERS + thread.warpgroup) * Multiply::m + Sums::row(thread.number, e), row = Sums::col(thread.number, e);
      if (row < arguments.m && column < arguments.n) arguments.y[int64_t(row) * arguments.y_pitch + column] = Input(sums[e]);
    }
  }

  __device__ __forceinline__ void consume() {
    ptxmma::griddepcontrol_wait();  // the kernel in front may be using Y, or be this one, with its own use of `parts`
    ptxmma::griddepcontrol_launch_dependents();
    const Thread thread;
    const int end = run.end();
    ptxmma::stage_ring<stages> ring;
    Operands a;
    uint4 codes = {};
    int unit = run.first();
    shared.barriers.wait_full(ring);
    convert(a[0], codes, shared.stages[0], thread, 0);
    for (int tile = unit / run.steps; unit < end; ++tile) {
      const int last = min((tile + 1) * run.steps, end);
      const bool begins = unit == tile * run.steps, ends = last == (tile + 1) * run.steps;
      ThreadSums sums = {};
      for (; unit < last; ++unit) {
        auto following = ring;
        following.next();
        multiply(sums, a, shared.stages[ring.stage], thread, [&]() -> const Stage& {
          if (unit + 1 < end) shared.barriers.wait_full(following);
          return shared.stages[following.stage];
        });
        __syncwarp();
        if (thread.lane == 0) shared.barriers.release(ring);
        ring = following;
      }
      auto& quads = reinterpret_cast<float(&)[Sums::elements / 4][4]>(sums);
      if (!begins) {
        run.give<warps>(quads, thread.warp, thread.lane);
      } else {
        if (!ends) run.take<warps>(quads, tile, thread.warp, thread.lane);
        write(sums, tile, thread);
      }
    }
  }
};

template <class P>
__global__ void __launch_bounds__(P::threads, 1) kernel(const __grid_constant__ typename P::Args arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename P::Shared*>(memory);
  if (threadIdx.x == 0) {
    shared.barriers.init(1, P::warps);
    ptxmma::fence_mbarrier_init();
  }
  __syncthreads();
  P product{arguments, shared};
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // the compiler sees that a warp's threads agree
  if (warp >= P::warps) {
    ptxmma::setmaxnreg_dec<24>();
    if (warp == P::warps && ptxmma::elect_one()) product.produce();
  } else {
    ptxmma::setmaxnreg_inc<112>();  // of 96 for each of all threads
    product.consume();
  }
}

}  // namespace w4a16_sm90
