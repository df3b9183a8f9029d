// How the threads of gemm_sm80.cuh bring tiles of A and B from memory to shared memory, 16 bytes at a time, and warps fetch fragments there.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <ptxmma/cuda/fragment_moves.cuh>

namespace gemm_sm80 {

constexpr int WARP = 32, WARPS_DOWN = 2, WARPS_ACROSS = 4, THREADS = WARPS_DOWN * WARPS_ACROSS * WARP;
constexpr int UNIT = 16;  // bytes that cp.async copies at once

// If `wanted`, copies some of 16 bytes, and zeros for the rest. __pipeline_memcpy_async does so for a number that is a constant.
__device__ __forceinline__ void copy_async(uint32_t to, const void* from, bool wanted, int bytes) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %3;}"
               : : "r"(to), "l"(from), "r"(static_cast<int>(wanted)), "r"(bytes) : "memory");
}

// The units of 16 bytes that a thread copies to a tile, one every few lines, from (`inner` elements, `outer` lines) off its corner on.
template <class Input, class Tile>
struct Share {
  static constexpr bool along_k = Tile::majorness == PTXMMA_MAJORNESS_K;
  static constexpr int count = UNIT / sizeof(Input), units = (along_k ? Tile::k : Tile::x) / count, lines = THREADS / units;
  static constexpr int copies = Tile::bytes / UNIT / THREADS;
  static_assert(lines % 8 == 0, "the swizzle repeats itself after 8 lines");
  static __device__ int inner() { return threadIdx.x % units * count; }
  static __device__ int outer() { return threadIdx.x / units; }
  static __device__ uint32_t offset(int inner, int outer) { return along_k ? Tile::offset(outer, inner) : Tile::offset(inner, outer); }
  static __device__ const char* first(const Input* matrix, int pitch, int x) {
    return reinterpret_cast<const char*>(matrix + int64_t((along_k ? x : 0) + outer()) * pitch + (along_k ? 0 : x) + inner());
  }
  // Bytes between two of its units, and from a tile to the next along k.
  static __device__ int64_t stride(int pitch) { return int64_t(lines) * pitch * sizeof(Input); }
  static __device__ int64_t further(int pitch) { return int64_t(Tile::k) * (along_k ? 1 : pitch) * sizeof(Input); }
};

// Copies a tile, of which x_left by k_left elements exist. What lies beyond along k becomes 0; what lies beyond along x is multiplied to
// results that nobody writes.
template <class Input, class Tile>
__device__ __forceinline__ void copy(uint32_t tile, const char* from, int pitch, int x_left, int k_left) {
  using Mine = Share<Input, Tile>;
  const int bytes = min(max((Mine::along_k ? k_left : x_left) - Mine::inner(), 0), Mine::count) * int(sizeof(Input));
  const int lines_left = (Mine::along_k ? x_left : k_left) - Mine::outer();
  const uint32_t to = tile + Mine::offset(Mine::inner(), Mine::outer());
#pragma unroll
  for (int i = 0; i < Mine::copies; ++i) {
    const uint32_t unit = to + Mine::offset(0, i * Mine::lines);
    const char* source = from + i * Mine::stride(pitch);
    const bool exists = i * Mine::lines < lines_left;
    copy_async(unit, source, Mine::along_k ? exists : true, Mine::along_k || exists ? bytes : 0);
  }
}

// Fetches the fragment that begins at (x, k). The swizzle repeats itself from instruction to instruction along the lines of a tile, so that
// a step along them is a constant to the compiler, and only the position on a line is worked out for each thread.
template <class Fragment, class Tile>
__device__ __forceinline__ void fetch_fragment(uint32_t (&registers)[Fragment::registers], uint32_t start, int lane, int x, int k) {
  constexpr bool along_k = Tile::majorness == PTXMMA_MAJORNESS_K;
  const uint32_t line = start + (along_k ? Tile::offset(x, 0) : Tile::offset(0, k));
  ptxmma::load_fragment<Fragment, Tile>(registers, line, lane, along_k ? 0 : x, along_k ? k : 0);
}

}  // namespace gemm_sm80
