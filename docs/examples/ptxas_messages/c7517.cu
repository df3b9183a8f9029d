// C7517: the accumulator is used before the wait.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
#pragma unroll
    for (float& sum : sums) sum *= 0.5f;
  }
  ptxmma::wgmma_wait_group<0>();
  store(sums, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand a, Operand b, float* out, int steps) {
  Sums sums = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::fence_accumulator(sums);
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(sums);
#pragma unroll
    for (float& sum : sums) sum *= 0.5f;
  }
  store(sums, out);
}
