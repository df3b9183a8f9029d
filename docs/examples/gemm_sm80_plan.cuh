// The host's side of gemm_sm80.cuh: launches the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "gemm_sm80.cuh"

namespace gemm_sm80 {

template <class T>
struct Matrix {
  T* data;    // a multiple of 16 bytes
  int pitch;  // elements from one row (or column, if it is column-major) to the next: a multiple of 16 bytes
};

// An operation that is prepared once, for matrices at these addresses, and may be launched often. Only 16-bit types can be column-major (A) or
// row-major (B), or have a sparse A.
template <class Element, class Result, ptxmma_majorness major_a = PTXMMA_MAJORNESS_K, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K,
          bool sparse = false>
class Plan {
  using Kernel = Gemm<Element, Result, major_a, major_b, sparse>;

 public:
  using Input = typename Kernel::Input;
  using Output = typename Kernel::Output;
  using Scalar = typename Kernel::Scalar;

  // C is not read if beta is 0. C and D may be the same matrix. Rows of C and D are read and written in whole units of 8 bytes. A sparse A has m rows of
  // k / 2 values, its metadata lies in registers of mma_sp_m16n8k32_metadata_b16; m is a multiple of 16 and k of 32.
  cudaError_t prepare(int m, int n, int k, Scalar alpha, Matrix<const Input> a, Matrix<const Input> b, Scalar beta, Matrix<const Output> c,
                      Matrix<Output> d, const uint32_t* metadata = nullptr) {
    int device = 0, multiprocessors = 0;
    for (const cudaError_t status :
         {cudaGetDevice(&device), cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          cudaFuncSetAttribute(kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared)}) {
      if (status != cudaSuccess) return status;
    }
    arguments_ = {a.data, b.data, metadata, c.data, d.data, a.pitch, b.pitch, c.pitch, d.pitch, m, n, k, alpha, beta};
    blocks_ = std::min(multiprocessors, ceil_div(m, Kernel::rows) * ceil_div(n, Kernel::columns));
    return cudaSuccess;
  }

  cudaError_t launch(cudaStream_t stream = nullptr) const {
    kernel<Kernel><<<blocks_, THREADS, shared, stream>>>(arguments_);
    return cudaGetLastError();
  }

 private:
  static constexpr int shared = Kernel::stages * sizeof(typename Kernel::Stage);
  typename Kernel::Args arguments_;
  int blocks_ = 0;
};

}  // namespace gemm_sm80
