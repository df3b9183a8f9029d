// The host's side of gemm_sm90.cuh: describes the matrices to TMA, chooses the tiles, launches the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/tensor_map.cuh>

#include "gemm_sm90_operands.cuh"
#include "prepared_kernel.cuh"

namespace gemm_sm90 {

template <class T>
struct Matrix {
  T* data;        // a multiple of 16 bytes
  int64_t pitch;  // elements from one row (or column, if it is column-major) to the next: a multiple of 16 bytes
};

// A matrix as TMA sees it, of which it moves tiles, or their parts if the cluster shares them.
template <class Tile, int sharers = 1, class T>
cudaError_t describe(CUtensorMap& map, Matrix<T> matrix, int x, int k) {
  return ptxmma::tensor_map_of<Tile, sharers>(x, k, matrix.pitch * sizeof(T), CU_TENSOR_MAP_L2_PROMOTION_L2_128B).encode(&map, matrix.data);
}

// The cheapest of some choices; of equal ones the first.
template <class Choice>
struct Best {
  double cost = 0;
  Choice choice = nullptr;
  void consider(double other_cost, Choice other) {
    if (choice != nullptr && cost <= other_cost) return;
    cost = other_cost;
    choice = other;
  }
};

// What all plans share: an operation that is prepared once, for matrices at these addresses, and may be launched often; one launch at a time.
// With few rows or columns, it begins before the kernel in front of it ends.
template <class Source, class Scalar>
class Launch : public examples::PreparedKernel<Arguments<Source, Scalar>> {
 public:
  ~Launch() {
    cudaFree(arguments_.sums);
    cudaFree(arguments_.finished);
  }

 protected:
  using Base = examples::PreparedKernel<Arguments<Source, Scalar>>;
  using Base::arguments_, Base::kernel_, Base::threads_, Base::shared_, Base::blocks_, Base::early_;

  cudaError_t begin(int m, int n, int k, Scalar alpha, Scalar beta) {
    int device = 0, multiprocessors = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    clusters_ = multiprocessors / CLUSTER;
    arguments_ = {{}, {}, {}, m, n, k, alpha, beta, 1, nullptr, nullptr};
    return status;
  }

  template <class G>
  int tiles() const {
    return ceil_div(arguments_.m, CLUSTER * G::rows) * ceil_div(arguments_.n, G::columns);
  }

  // Into how many parts k is split, so that every cluster has work. Each has some stages at least, and there are
  // few: the sums have to be added up.
  template <class G>
  int splits() const {
    constexpr int fewest = 8, most = 8;
    const int stages = ceil_div(arguments_.k, G::Operands::depth);
    const int splits = !G::few ? 1 : std::max(1, std::min({clusters_ / tiles<G>(), stages / fewest, most}));
    return ceil_div(stages, ceil_div(stages, splits));  // none is empty
  }

  // How long a kernel takes: the busiest cluster counts. A tile takes as long as its columns, and some more, whatever its width: more still
  // where rows do not begin with a line of L2, since each row of a tile then takes one line more. Nor does it begin or end at once: where the
  // consumers share a tile, nothing is multiplied while they write it.
  template <class G>
  double cost(bool aligned = true) const {
    constexpr int bytes = sizeof(typename G::Operands::Input), drain = G::sharers == 1 ? 110 : 280;  // as many bytes along k
    const int columns = G::columns + G::Operands::extra * (aligned ? 1 : 2), rounds = ceil_div(tiles<G>() * splits<G>(), clusters_);
    return double(rounds) * G::rows * columns * (double(arguments_.k) / splits<G>() + drain / bytes);
  }

  template <class G, class T>
  cudaError_t use(Matrix<const T> c, Matrix<T> d) {
    kernel_ = kernel<G>;
    threads_ = G::threads;
    early_ = G::few;
    shared_ = sizeof(typename G::Shared);
    const int all = tiles<G>() * splits<G>(), shares = tiles<G>() * CLUSTER;
    blocks_ = CLUSTER * std::min(all, G::blocks * clusters_);
    arguments_.splits = splits<G>();
    cudaError_t status = describe<typename G::D>(arguments_.d, d, arguments_.m, arguments_.n);
    if (status == cudaSuccess && arguments_.beta != 0) status = describe<typename G::D>(arguments_.c, c, arguments_.m, arguments_.n);
    if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_);
    if (arguments_.splits > 1) {
      if (status == cudaSuccess) status = cudaMalloc(&arguments_.sums, size_t(all) * CLUSTER * G::rows * G::columns * sizeof(Scalar));
      if (status == cudaSuccess) status = cudaMalloc(&arguments_.finished, shares * sizeof(int));
      if (status == cudaSuccess) status = cudaMemset(arguments_.finished, 0, shares * sizeof(int));
    }
    return status;
  }

 private:
  int clusters_ = 0;
};

// D = alpha * A * B + beta * C with dense matrices. C is not read if beta is 0. C and D may be the same matrix. Rows of D are written in
// whole units of 16 bytes.
template <class Element, class Result, ptxmma_majorness major_a = PTXMMA_MAJORNESS_K, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K,
          From from = From::SHARED>
class Plan : public Launch<DenseSource, typename Dense<Element, major_a, major_b, 128, 128, from>::Multiply::d::register_type> {
  template <int width, bool together = false>
  using Tiles = Gemm<Dense<Element, major_a, major_b, 128, width, from>, Result, together>;
  // For few rows: D is the transpose of a product of B's columns by A's rows, which may be fewer than a warpgroup multiplies from the left.
  template <int width>
  using Flat = Gemm<Dense<Element, major_b, major_a, 64, width, From::SHARED>, Result, false, PTXMMA_MAJORNESS_MN>;
  using Input = storage<Element>;
  using Output = storage<Result>;
  using A = Matrix<const Input>;
  using C = Matrix<const Output>;

 public:
  using Scalar = typename Tiles<128>::Scalar;

  cudaError_t prepare(int m, int n, int k, Scalar alpha, A a, A b, Scalar beta, C c, Matrix<Output> d) {
    if constexpr (from == From::SHARED) {
      if (m <= 128) {
        const cudaError_t status = this->begin(n, m, k, alpha, beta);
        if (status != cudaSuccess) return status;
        if constexpr (major_a == PTXMMA_MAJORNESS_K) {  // where its columns are neighbours, a block's half of a tile is at least a span wide
          if (m <= 16) return choose<Flat<16>>(b, a, c, d);
          if (m <= 32) return choose<Flat<32>>(b, a, c, d);
          if (m <= 64) return choose<Flat<64>>(b, a, c, d);
        }
        return choose<Flat<128>>(b, a, c, d);
      }
    }
    const cudaError_t status = this->begin(m, n, k, alpha, beta);
    if (status != cudaSuccess) return status;
    constexpr int line = 128;  // bytes
    const bool aligned = a.pitch * sizeof(Input) % line == 0 && b.pitch * sizeof(Input) % line == 0;
    constexpr int wide = from == From::SHARED ? 192 : 144;  // A takes registers, too
    Best<Choose> best;
    consider<Tiles<wide>>(best, aligned);
    consider<Tiles<176>>(best, aligned);
    consider<Tiles<128>>(best, aligned);
    if constexpr (from == From::SHARED) {
      consider<Tiles<256, true>>(best, aligned);
    }
    return (this->*best.choice)(a, b, c, d);
  }

 protected:
  using Choose = cudaError_t (Plan::*)(A, A, C, Matrix<Output>);

  template <class G>
  void consider(Best<Choose>& best, bool aligned) const {
    best.consider(this->template cost<G>(aligned), &Plan::template choose<G>);
  }

  template <class G>
  cudaError_t choose(A a, A b, C c, Matrix<Output> d) {
    auto& arguments = this->arguments_;
    cudaError_t status = describe<typename G::Operands::A>(arguments.source.a, a, arguments.m, arguments.k);
    if (status == cudaSuccess) status = describe<typename G::Operands::B, CLUSTER>(arguments.source.b, b, arguments.n, arguments.k);
    return status == cudaSuccess ? this->template use<G>(c, d) : status;
  }
};

}  // namespace gemm_sm90
