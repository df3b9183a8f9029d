// C7508: the number of registers at the kernel's start is not known without launch bounds that name the blocks of a multiprocessor.
#include "common.cuh"

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(registers));
}
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(registers));
}

extern "C" __global__ void wrong(Operand a, Operand b, float* out, int steps) {
  if (threadIdx.x < 128) {
    give_registers<24>();
  } else {
    take_registers<240>();
    Sums sums = {};
    ptxmma::fence_accumulator(sums);
    for (int step = 0; step < steps; ++step) {
      ptxmma::wgmma_fence();
#pragma unroll
      for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
      ptxmma::wgmma_commit_group();
      ptxmma::wgmma_wait_group<0>();
    }
    ptxmma::fence_accumulator(sums);
    store(sums, out);
  }
}

extern "C" __global__ void __launch_bounds__(384, 1) right(Operand a, Operand b, float* out, int steps) {
  if (threadIdx.x < 128) {
    give_registers<24>();
  } else {
    take_registers<240>();
    Sums sums = {};
    ptxmma::fence_accumulator(sums);
    for (int step = 0; step < steps; ++step) {
      ptxmma::wgmma_fence();
#pragma unroll
      for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
      ptxmma::wgmma_commit_group();
      ptxmma::wgmma_wait_group<0>();
    }
    ptxmma::fence_accumulator(sums);
    store(sums, out);
  }
}
