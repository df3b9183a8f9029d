// C7518: the accumulator is read before the wait, and only some threads read it.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  ptxmma::fence_accumulator(sums);
  for (int step = 0; step < steps; ++step) {
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
    if (out[threadIdx.x] > 0) {
      store(sums, out);
      __syncwarp();
    }
    ptxmma::wgmma_wait_group<0>();
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  ptxmma::fence_accumulator(sums);
  for (int step = 0; step < steps; ++step) {
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(sums);
    if (out[threadIdx.x] > 0) {
      store(sums, out);
      __syncwarp();
    }
    ptxmma::fence_accumulator(sums);
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}
