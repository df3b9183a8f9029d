// The host's side of gemm_sm90.cuh: describes the matrices to TMA, chooses the width of the tiles, launches the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "gemm_sm90.cuh"

namespace gemm_sm90 {

template <class T>
struct Matrix {
  T* data;        // a multiple of 16 bytes
  int64_t pitch;  // elements from one row (or column, if it is column-major) to the next: a multiple of 16 bytes
};

// A matrix as TMA sees it, of which it moves tiles, or halves of their boxes if the cluster shares them.
template <class Tile, class T>
cudaError_t describe(CUtensorMap& map, Matrix<T> matrix, int x, int k, int sharers = 1) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult support;
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &support);
  if (status != cudaSuccess) return status;
  constexpr bool k_major = Tile::majorness == PTXMMA_MAJORNESS_K;
  const cuuint64_t size[] = {cuuint64_t(k_major ? k : x), cuuint64_t(k_major ? x : k)}, pitch[] = {matrix.pitch * sizeof(T)};
  const cuuint32_t box[] = {Tile::box_inner, Tile::box_outer / sharers}, stride[] = {1, 1};
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encode)(
      &map, PTXMMA_TENSOR_MAP_DATA_TYPE(Tile::type), 2, const_cast<void*>(static_cast<const void*>(matrix.data)), size, pitch, box, stride,
      CU_TENSOR_MAP_INTERLEAVE_NONE, PTXMMA_TENSOR_MAP_SWIZZLE(Tile::swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

// An operation that is prepared once, for matrices at these addresses, and may be launched often.
template <class Element, class Result, ptxmma_majorness major_a = PTXMMA_MAJORNESS_K, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K>
class Plan {
  using Input = typename Traits<Element>::Type;
  using Output = typename Traits<Result>::Type;
  template <int width>
  using Kernel = Gemm<Element, Result, major_a, major_b, width>;

 public:
  using Scalar = typename Kernel<112>::Scalar;

  // C is not read if beta is 0. C and D may be the same matrix. Rows of D are written in whole units of 16 bytes.
  cudaError_t prepare(int m, int n, int k, Scalar alpha, Matrix<const Input> a, Matrix<const Input> b, Scalar beta, Matrix<const Output> c,
                      Matrix<Output> d) {
    int device = 0, multiprocessors = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (status != cudaSuccess) return status;
    arguments_ = {{}, {}, {}, {}, m, n, k, alpha, beta};
    // The busiest cluster counts. A tile takes as long as its columns, and about 8 more, whatever its width.
    const int clusters = multiprocessors / CLUSTER, wide = ceil_div(tiles<176>(), clusters) * (176 + 8),
              narrow = ceil_div(tiles<112>(), clusters) * (112 + 8);
    return wide <= narrow ? choose<176>(clusters, a, b, c, d) : choose<112>(clusters, a, b, c, d);
  }

  cudaError_t launch(cudaStream_t stream = nullptr) const {
    kernel_<<<blocks_, (1 + CONSUMERS) * WARPGROUP, shared_, stream>>>(arguments_);
    return cudaGetLastError();
  }

 private:
  template <int width>
  int tiles() const {
    return ceil_div(arguments_.m, CLUSTER * Kernel<width>::rows) * ceil_div(arguments_.n, width);
  }

  template <int width>
  cudaError_t choose(int clusters, Matrix<const Input> a, Matrix<const Input> b, Matrix<const Output> c, Matrix<Output> d) {
    using G = Kernel<width>;
    kernel_ = kernel<G>;
    shared_ = sizeof(typename G::Shared);
    blocks_ = CLUSTER * std::min(tiles<width>(), clusters);
    const int m = arguments_.m, n = arguments_.n, k = arguments_.k;
    for (const cudaError_t status :
         {describe<typename G::A>(arguments_.a, a, m, k), describe<typename G::B>(arguments_.b, b, n, k, CLUSTER),
          arguments_.beta == 0 ? cudaSuccess : describe<typename G::D>(arguments_.c, c, m, n),
          describe<typename G::D>(arguments_.d, d, m, n),
          cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_)}) {
      if (status != cudaSuccess) return status;
    }
    return cudaSuccess;
  }

  Arguments<Scalar> arguments_;
  void (*kernel_)(Arguments<Scalar>) = nullptr;
  int shared_ = 0, blocks_ = 0;
};

}  // namespace gemm_sm90
