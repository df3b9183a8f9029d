// C7515: registers of A are loaded between the fence and the instruction, while another that reads them may still run.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(128) wrong(Operand, Operand b, float* out, int steps) {
  const uint32_t* from = reinterpret_cast<const uint32_t*>(out);
  Sums sums = {};
  Multiply::a::type a;
  for (int step = 0; step < steps; ++step) {
    ptxmma::wgmma_fence();
    for (uint32_t& one : a) one = *from++;
    Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
  }
  ptxmma::wgmma_wait_group<0>();
  store(sums, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand, Operand b, float* out, int steps) {
  const uint32_t* from = reinterpret_cast<const uint32_t*>(out);
  Sums sums = {};
  Multiply::a::type a;
  ptxmma::fence_accumulator(sums);
  for (int step = 0; step < steps; ++step) {
    for (uint32_t& one : a) one = *from++;
    ptxmma::wgmma_fence();
    Multiply::call(sums, a, b, true);
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
  }
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}
