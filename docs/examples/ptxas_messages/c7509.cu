// C7509: a call that the assembler cannot see through, here a recursive one, anywhere in the kernel.
#include "common.cuh"

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int fibonacci_in_a_loop(int n) {
  int last = 1, number = 0;
  for (; n > 0; --n) {
    const int next = last + number;
    last = number;
    number = next;
  }
  return number;
}

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
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
  out[0] = fibonacci(steps % 8);
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
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
  out[0] = fibonacci_in_a_loop(steps % 8);
}
