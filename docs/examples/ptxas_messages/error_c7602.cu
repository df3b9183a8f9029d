// C7602: 24 warps leave each thread 80 registers, and one instruction needs 90.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(768) wrong(Operand a, Operand b, float* out) {
  Sums sums = {};
  ptxmma::fence_accumulator(sums);
  ptxmma::wgmma_fence();
  Multiply::call(sums, a, b, true);
  ptxmma::wgmma_commit_group();
  ptxmma::wgmma_wait_group<0>();
  ptxmma::fence_accumulator(sums);
  store(sums, out);
}
