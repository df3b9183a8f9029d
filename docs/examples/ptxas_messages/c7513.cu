// C7513, C7519: registers of A are loaded between two instructions of a group.
#include "common.cuh"

__device__ __forceinline__ void load(Multiply::a::type& registers, const float* from) {
#pragma unroll
  for (uint32_t& one : registers) asm volatile("ld.global.b32 %0, [%1];" : "=r"(one) : "l"(from++));
}

extern "C" __global__ void __launch_bounds__(128) wrong(Operand, Operand b, float* out, int steps) {
  Sums sums = {};
  Multiply::a::type a;
  load(a, out);
  ptxmma::fence_accumulator(sums);
  ptxmma::wgmma_fence();
  for (int step = 0; step < steps; ++step) {
    Multiply::call(sums, a, b, true);
    load(a, out + step % 32);
    Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand, Operand b, float* out, int steps) {
  Sums sums = {};
  Multiply::a::type a[2];
  load(a[0], out);
  ptxmma::fence_accumulator(sums);
  for (int step = 0; step < steps; ++step) {
    load(a[1], out + step % 32);
    ptxmma::wgmma_fence();
#pragma unroll
    for (auto& registers : a) Multiply::call(sums, registers, b, true);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
#pragma unroll
    for (int i = 0; i < Multiply::a::registers; ++i) a[0][i] = a[1][i];
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}
