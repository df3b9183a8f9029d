// What w4a16_sm80.cuh and w4a16_sm90.cuh share: the conversion of codes, and how blocks share the work and add up their sums.
//
// A unit of work is a tile of columns and a step along k. Each block has a run of units, one after the other. Where several blocks share the
// sum of a tile, the one that begins the tile waits for the others, and adds their parts in the order of k: the result is the same each time.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda/atomic>
#include <cuda_runtime.h>

#include <ptxmma/cuda/dequantise.cuh>
#include <ptxmma/cuda/storage.cuh>

namespace w4a16 {

using ptxmma::storage;
constexpr int WARP = 32, UNIT = 16;  // threads; bytes that a lane reads at once
constexpr int LOAD = 64;  // along k: codes of a lane's 16 bytes
constexpr int PAIR_UNITS = 2;  // of UNIT bytes: what 16 columns have for a group, two numbers for each lane / 4

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

template <class Code>
constexpr bool has_zeros = std::is_same<Code, ptxmma::u4>::value;

// What a lane's two rows of A, columns lane / 4 and lane / 4 + 8 of 16, have for a group.
__device__ __forceinline__ uint32_t pair(const uint4 (&pairs)[PAIR_UNITS], int lane) { return reinterpret_cast<const uint32_t*>(pairs)[lane / 4]; }
template <class Input>
__device__ __forceinline__ void scales_of(float (&scale)[2], const uint4 (&pairs)[PAIR_UNITS], int lane) {
  const uint32_t both = pair(pairs, lane);
  Input scales[2];
  std::memcpy(scales, &both, sizeof scales);
  for (int i = 0; i < 2; ++i) scale[i] = float(scales[i]);
}

// The run of units of a block, and what it has in common with the runs beside it.
struct Run {
  int steps, units;  // of a tile, of all tiles
  float4* parts;     // of each run, the sums that it has for another
  int* ready;        // of each warp of each run: 1 once its part is there; 0 before and after
  // Blocks that start later have earlier runs: those for which a block waits have started before it.
  int number = gridDim.x - 1 - blockIdx.x;

  // A product P has tiles of P::columns, and steps of P::depth.
  template <class P>
  static __device__ __forceinline__ Run of_block(const typename P::Args& arguments) {
    const int steps = ceil_div(arguments.k, P::depth);
    return {steps, steps * ceil_div(arguments.n, P::columns), arguments.parts, arguments.ready};
  }

  __device__ __forceinline__ int begin(int of) const { return int(int64_t(of) * units / gridDim.x); }
  __device__ __forceinline__ int first() const { return begin(number); }
  __device__ __forceinline__ int end() const { return begin(number + 1); }
  __device__ __forceinline__ int of(int unit) const { return int((int64_t(unit + 1) * gridDim.x - 1) / units); }

  // Hands the sums of a tile to the run that begins it: from a warp to the warp with the same number there, four sums of each lane at a time.
  template <int Warps, int Count>
  __device__ __forceinline__ void give(const float (&sums)[Count][4], int warp, int lane) const {
    float4* to = part<Count>(number * Warps + warp, lane);
#pragma unroll
    for (int i = 0; i < Count; ++i) to[i * WARP] = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
    __syncwarp();
    if (lane == 0) is_ready(number * Warps + warp).store(1, cuda::memory_order_release);
  }

  // Adds what the later runs have of a tile.
  template <int Warps, int Count>
  __device__ __forceinline__ void take(float (&sums)[Count][4], int tile, int warp, int lane) const {
    const int last = of((tile + 1) * steps - 1);
    for (int first = number + 1; first <= last; first += WARP) {
      const int other = min(first + lane, last);  // each lane waits for one
      while (!__all_sync(0xffffffff, is_ready(other * Warps + warp).load(cuda::memory_order_acquire))) {
      }
      is_ready(other * Warps + warp).store(0, cuda::memory_order_relaxed);
    }
    __syncwarp();  // a lane sees what the others waited for
    constexpr int at_once = Count <= 2 ? 4 : Count <= 4 ? 2 : 1;  // loads that do not wait for each other, in as many registers as there are
#pragma unroll at_once
    for (int other = number + 1; other <= last; ++other) {
      const float4* from = part<Count>(other * Warps + warp, lane);
#pragma unroll
      for (int i = 0; i < Count; ++i) add(sums[i], __ldcg(from + i * WARP));
    }
  }

  static __device__ __forceinline__ void add(float (&sums)[4], float4 part) {
    sums[0] += part.x;
    sums[1] += part.y;
    sums[2] += part.z;
    sums[3] += part.w;
  }

 private:
  template <int Count>
  __device__ __forceinline__ float4* part(int warp, int lane) const {
    return parts + int64_t(warp) * Count * WARP + lane;
  }
  __device__ __forceinline__ cuda::atomic_ref<int, cuda::thread_scope_device> is_ready(int warp) const {
    return cuda::atomic_ref<int, cuda::thread_scope_device>(ready[warp]);
  }
};

}  // namespace w4a16
