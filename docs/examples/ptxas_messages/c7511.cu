// C7511: two accumulators of 64 x 256 need 256 registers, and there are 255.
#include "common.cuh"

template <int n>
using Columns = ptxmma::wgmma<ptxmma::shape<64, n, 16>, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
using Wide = Columns<256>;
using Narrow = Columns<192>;

extern "C" __global__ void __launch_bounds__(128) wrong(Operand a, Operand b, float* out, int steps) {
  Wide::d::type left = {}, right = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::fence_accumulator(left);
    ptxmma::fence_accumulator(right);
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) {
      Wide::call(left, a, b, true);
      Wide::call(right, a, b, true);
    }
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(left);
    ptxmma::fence_accumulator(right);
  }
  store(left, out);
  store(right, out);
}

extern "C" __global__ void __launch_bounds__(128) right(Operand a, Operand b, float* out, int steps) {
  Narrow::d::type left = {}, right = {};
  for (int step = 0; step < steps; ++step) {
    ptxmma::fence_accumulator(left);
    ptxmma::fence_accumulator(right);
    ptxmma::wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) {
      Narrow::call(left, a, b, true);
      Narrow::call(right, a, b, true);
    }
    ptxmma::wgmma_commit_group();
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(left);
    ptxmma::fence_accumulator(right);
  }
  store(left, out);
  store(right, out);
}
