// What the programs beside this file share. One warpgroup multiplies tiles in shared memory, again and again.
#pragma once

#include <ptxmma/wgmma/bf16_bf16.cuh>

using Multiply = ptxmma::wgmma<ptxmma::shape<64, 128, 16>, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
using Sums = Multiply::d::type;
using Operand = ptxmma::matrix_descriptor<PTXMMA_MAJORNESS_K, ptxmma::bf16>;

constexpr int DEPTH = 4;  // instructions of a group

template <class Array>
__device__ __forceinline__ void store(const Array& sums, float* out) {
#pragma unroll
  for (auto sum : sums) out[threadIdx.x] = sum, out += blockDim.x;
}
