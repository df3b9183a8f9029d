// The host's side of sparse_gemm_sm90.cuh: compresses weights on the device, launches the kernel.
#pragma once

#include "sparse_gemm_sm90.cuh"

namespace sparse_gemm_sm90 {

constexpr int round_up(int x, int multiple) { return ceil_div(x, multiple) * multiple; }

// Weights, m x k: a matrix with at least two zeros in each four neighbours of a row, compressed. They are filled up with zeros to what
// the kernel reads at a time.
template <class Element>
class Weights {
  using Input = storage<Element>;
  using Kind = typename Sparsity<Element>::Kind;
  using Metadata = typename Sparsity<Element>::Metadata;

 public:
  static constexpr int row_multiple = CLUSTER * 128, column_multiple = 2 * SPAN / sizeof(Input);

  Weights() = default;
  Weights(const Weights&) = delete;
  ~Weights() {
    cudaFree(values_);
    cudaFree(metadata_);
  }

  // Row-major, with `pitch` elements from one row to the next. cudaErrorInvalidValue if four neighbours have fewer than two zeros.
  cudaError_t compress(int m, int k, const Input* dense, int64_t pitch) {
    using namespace ptxmma::sparse;
    m_ = m;
    k_ = k;
    rows_ = round_up(m, row_multiple);
    columns_ = round_up(k, column_multiple);
    const size_t row = columns_ * sizeof(Input), size = rows_ * row, words = registers_for<Metadata>(rows_, columns_);
    Input* filled = nullptr;
    fault_word *fault = nullptr, result = no_fault;
    cudaError_t status = cudaMalloc(&filled, size);
    if (status == cudaSuccess) status = cudaMalloc(&fault, sizeof *fault);
    if (status == cudaSuccess) status = cudaMalloc(&values_, size / 2);
    if (status == cudaSuccess) status = cudaMalloc(&metadata_, words * sizeof *metadata_);
    if (status == cudaSuccess) status = cudaMemset(filled, 0, size);
    if (status == cudaSuccess) {
      status = cudaMemcpy2D(filled, row, dense, pitch * sizeof(Input), k * sizeof(Input), m, cudaMemcpyDeviceToDevice);
    }
    if (status == cudaSuccess) {
      status = ptxmma::sparse::compress<Kind, Metadata>(rows_, columns_, filled, columns_, values_, columns_ / 2, metadata_, fault);
    }
    if (status == cudaSuccess) status = cudaMemcpy(&result, fault, sizeof result, cudaMemcpyDeviceToHost);
    cudaFree(filled);
    cudaFree(fault);
    return status == cudaSuccess && result != no_fault ? cudaErrorInvalidValue : status;
  }

  int m() const { return m_; }
  int k() const { return k_; }
  Matrix<const Input> values() const { return {values_, columns_ / 2}; }
  const uint32_t* metadata() const { return metadata_; }
  int words() const { return columns_ / (Metadata::chunks * Metadata::chunk_elements * Metadata::selectors); }

 private:
  int m_ = 0, k_ = 0, rows_ = 0, columns_ = 0;
  Input* values_ = nullptr;
  uint32_t* metadata_ = nullptr;
};

// D = alpha * A * B + beta * C with compressed weights as A, which outlive the plan. B is k x n, row-major or column-major.
template <class Element, class Result, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K>
class SparsePlan : public Launch<SparseSource, float> {
  template <int rows, int width, bool together = false>
  using Tiles = Gemm<Sparse<Element, major_b, rows, width>, Result, together>;
  using Input = storage<Element>;
  using Output = storage<Result>;
  using B = Matrix<const Input>;
  using C = Matrix<const Output>;

 public:
  cudaError_t prepare(const Weights<Element>& a, int n, float alpha, B b, float beta, C c, Matrix<Output> d) {
    const cudaError_t status = begin(a.m(), n, a.k(), alpha, beta);
    if (status != cudaSuccess) return status;
    if constexpr (major_b == PTXMMA_MAJORNESS_K) {  // where its columns are neighbours, a block's half of a tile is at least a span wide
      if (n <= 16) return choose<Tiles<64, 16>>(a, b, c, d);
      if (n <= 32) return choose<Tiles<64, 32>>(a, b, c, d);
      if (n <= 64) return choose<Tiles<64, 64>>(a, b, c, d);
    }
    if (n <= 128) return choose<Tiles<64, 128>>(a, b, c, d);
    constexpr int wide = sizeof(Input) == 1 ? 176 : 192;  // metadata takes registers, too
    Best<cudaError_t (SparsePlan::*)(const Weights<Element>&, B, C, Matrix<Output>)> best;
    best.consider(cost<Tiles<128, 256, true>>(), &SparsePlan::choose<Tiles<128, 256, true>>);
    best.consider(cost<Tiles<128, wide>>(), &SparsePlan::choose<Tiles<128, wide>>);
    best.consider(cost<Tiles<128, 176>>(), &SparsePlan::choose<Tiles<128, 176>>);
    best.consider(cost<Tiles<128, 128>>(), &SparsePlan::choose<Tiles<128, 128>>);
    return (this->*best.choice)(a, b, c, d);
  }

 protected:
  template <class G>
  cudaError_t choose(const Weights<Element>& a, B b, C c, Matrix<Output> d) {
    SparseSource& source = arguments_.source;
    source.metadata = a.metadata();
    source.words = a.words();
    cudaError_t status = describe<typename G::Operands::A>(source.a, a.values(), a.m(), round_up(a.k(), Weights<Element>::column_multiple) / 2);
    if (status == cudaSuccess) status = describe<typename G::Operands::B, CLUSTER>(source.b, b, arguments_.n, arguments_.k);
    return status == cudaSuccess ? use<G>(c, d) : status;
  }
};

}  // namespace sparse_gemm_sm90
