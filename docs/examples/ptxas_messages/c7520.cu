// C7520: the fence is missing where only some threads multiply, as far as the assembler can tell.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  if (threadIdx.x / 128 < steps) {
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
      ptxmma::wgmma_commit_group();
      ptxmma::wgmma_wait_group<0>();
    }
  }
  store(sums, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  if (__shfl_sync(0xffffffff, threadIdx.x / 128, 0) < steps) {
    for (int step = 0; step < steps; ++step) {
      ptxmma::fence_accumulator(sums);
      ptxmma::wgmma_fence();
#pragma unroll
      for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
      ptxmma::wgmma_commit_group();
      ptxmma::wgmma_wait_group<0>();
      ptxmma::fence_accumulator(sums);
    }
  }
  store(sums, out);
}
