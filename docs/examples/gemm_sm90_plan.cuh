// The host's side of gemm_sm90.cuh: describes the matrices to TMA, chooses the tiles, launches the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include "gemm_sm90_operands.cuh"
#include "tensor_map.cuh"

namespace gemm_sm90 {

template <class T>
struct Matrix {
  T* data;        // a multiple of 16 bytes
  int64_t pitch;  // elements from one row (or column, if it is column-major) to the next: a multiple of 16 bytes
};

// A matrix as TMA sees it, of which it moves tiles, or their parts if the cluster shares them.
template <class Tile, int sharers = 1, class T>
cudaError_t describe(CUtensorMap& map, Matrix<T> matrix, int x, int k) {
  constexpr bool k_major = Tile::majorness == PTXMMA_MAJORNESS_K;
  const cuuint64_t size[] = {cuuint64_t(k_major ? k : x), cuuint64_t(k_major ? x : k)}, pitch[] = {matrix.pitch * sizeof(T)};
  const cuuint32_t box[] = {Tile::box_inner, Tile::template share<sharers>::outer};
  return make_tensor_map<Tile>(map, matrix.data, size, pitch, box);
}

// What all plans share: an operation that is prepared once, for matrices at these addresses, and may be launched often.
template <class Source, class Scalar>
class Launch {
 public:
  cudaError_t launch(cudaStream_t stream = nullptr) const {
    kernel_<<<blocks_, (1 + CONSUMERS) * WARPGROUP, shared_, stream>>>(arguments_);
    return cudaGetLastError();
  }

 protected:
  cudaError_t begin(int m, int n, int k, Scalar alpha, Scalar beta) {
    int device = 0, multiprocessors = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    clusters_ = multiprocessors / CLUSTER;
    arguments_ = {{}, {}, {}, m, n, k, alpha, beta};
    return status;
  }

  template <class G>
  int tiles() const {
    return ceil_div(arguments_.m, CLUSTER * G::rows) * ceil_div(arguments_.n, G::columns);
  }

  // How long a kernel takes: the busiest cluster counts. A tile takes as long as its columns, and some more, whatever its width; where
  // the consumers share it, nothing is multiplied while they write it. That takes longer in proportion where multiplying is faster.
  template <class G>
  int cost() const {
    const int extra = G::Operands::extra + (G::sharers == 1 ? 0 : 14 / int(sizeof(typename G::Operands::Input)));
    return ceil_div(tiles<G>(), clusters_) * G::rows * (G::columns + extra);
  }

  template <class G, class T>
  cudaError_t use(Matrix<const T> c, Matrix<T> d) {
    kernel_ = kernel<G>;
    shared_ = sizeof(typename G::Shared);
    blocks_ = CLUSTER * std::min(tiles<G>(), clusters_);
    cudaError_t status = describe<typename G::D>(arguments_.d, d, arguments_.m, arguments_.n);
    if (status == cudaSuccess && arguments_.beta != 0) status = describe<typename G::D>(arguments_.c, c, arguments_.m, arguments_.n);
    if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_);
    return status;
  }

  Arguments<Source, Scalar> arguments_;

 private:
  void (*kernel_)(Arguments<Source, Scalar>) = nullptr;
  int shared_ = 0, blocks_ = 0, clusters_ = 0;
};

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, From from, int width>
using DenseGemm = Gemm<Dense<Element, major_a, major_b, 128, width, from>, Result, false>;

// D = alpha * A * B + beta * C with dense matrices. C is not read if beta is 0. C and D may be the same matrix. Rows of D are written in
// whole units of 16 bytes.
template <class Element, class Result, ptxmma_majorness major_a = PTXMMA_MAJORNESS_K, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K,
          From from = From::SHARED>
class Plan : public Launch<typename DenseGemm<Element, Result, major_a, major_b, from, 176>::Source,
                           typename DenseGemm<Element, Result, major_a, major_b, from, 176>::Scalar> {
  using Wide = DenseGemm<Element, Result, major_a, major_b, from, from == From::SHARED ? 192 : 144>;  // A takes registers, too
  using Medium = DenseGemm<Element, Result, major_a, major_b, from, 176>;
  using Narrow = DenseGemm<Element, Result, major_a, major_b, from, 128>;
  using Input = storage<Element>;
  using Output = storage<Result>;

 public:
  using Scalar = typename Wide::Scalar;

  cudaError_t prepare(int m, int n, int k, Scalar alpha, Matrix<const Input> a, Matrix<const Input> b, Scalar beta, Matrix<const Output> c,
                      Matrix<Output> d) {
    const cudaError_t status = this->begin(m, n, k, alpha, beta);
    if (status != cudaSuccess) return status;
    const int wide = this->template cost<Wide>(), medium = this->template cost<Medium>(), narrow = this->template cost<Narrow>();
    if (medium <= wide && medium <= narrow) return choose<Medium>(a, b, c, d);
    return wide <= narrow ? choose<Wide>(a, b, c, d) : choose<Narrow>(a, b, c, d);
  }

 protected:
  template <class G>
  cudaError_t choose(Matrix<const Input> a, Matrix<const Input> b, Matrix<const Output> c, Matrix<Output> d) {
    auto& arguments = this->arguments_;
    cudaError_t status = describe<typename G::Operands::A>(arguments.source.a, a, arguments.m, arguments.k);
    if (status == cudaSuccess) status = describe<typename G::Operands::B, CLUSTER>(arguments.source.b, b, arguments.n, arguments.k);
    return status == cudaSuccess ? this->template use<G>(c, d) : status;
  }
};

}  // namespace gemm_sm90
