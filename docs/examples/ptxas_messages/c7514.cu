// C7514, C7517: the accumulator is read before the wait, and the assembler does not find a place for a wait of its own.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
  Sums sums, totals = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, i > 0);
    ptxmma::wgmma_commit_group();
#pragma unroll
    for (int i = 0; i < Multiply::d::elements; ++i) totals[i] += sums[i];
    ptxmma::wgmma_wait_group<0>();
  }
  store(totals, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand a, Operand b, float* out, int steps) {
  Sums sums, totals = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::fence_accumulator(sums);
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) Multiply::call(sums, a, b, i > 0);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(sums);
#pragma unroll
    for (int i = 0; i < Multiply::d::elements; ++i) totals[i] += sums[i];
  }
  store(totals, out);
}
