// What kernels for Hopper share, and that for Blackwell, on the device: what the toolkit's <cuda/ptx> does not have yet, and a ring of stages.
#pragma once

#include <cstdint>

#include <cuda/ptx>

namespace hopper {

constexpr int WARP = 32, WARPGROUP = 128;  // threads

// Registers for each thread of the warpgroup that calls it. A warpgroup gives some away before others can take them.
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(registers));
}

// True in one thread of a warp. All of its threads have to call it.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected));
  return elected != 0;
}

// The same place in the shared memory of another block of the cluster.
template <class T>
__device__ __forceinline__ T* map_to_rank(T* pointer, uint32_t rank) {
  T* remote;
  asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(pointer), "r"(rank));
  return remote;
}

// Brings the description of a tensor into the cache, so that the first copy does not wait for it.
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

// Barriers 1 to 15 of a block, for some of its warps; 0 is that of __syncthreads. `threads` counts those that wait and those that arrive.
__device__ __forceinline__ void barrier_sync(int barrier, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

// Waits for the end of a phase of a barrier in shared memory.
__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t parity) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// A place in a ring of stages, and the parity of the phase that its barriers complete next. Counting up takes few instructions. Dividing a
// running number by the stages instead takes so long that the tensor cores wait: it costs 2 % of the speed.
template <int stages>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void skip(int count) {
    parity ^= (stage + count) / stages % 2;
    stage = (stage + count) % stages;
  }
};

// 2 to the power of x, to a relative error of 2^-22; what is below 2^-126 becomes 0.
__device__ __forceinline__ float exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace hopper
