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
  static constexpr int row_multiple = CLUSTER * 128, column_multiple = SPAN / sizeof(Input);

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

template <class Element, class Result, ptxmma_majorness major_b, int width, bool together = false>
using SparseGemm = Gemm<Sparse<Element, major_b, 128, width>, Result, together>;

// D = alpha * A * B + beta * C with compressed weights as A, which outlive the plan. B is k x n, row-major or column-major.
template <class Element, class Result, ptxmma_majorness major_b = PTXMMA_MAJORNESS_K>
class SparsePlan : public Launch<SparseSource, float> {
  using Shared = SparseGemm<Element, Result, major_b, 256, true>;
  using Wide = SparseGemm<Element, Result, major_b, sizeof(storage<Element>) == 1 ? 176 : 192>;  // metadata takes registers, too
  using Medium = SparseGemm<Element, Result, major_b, 176>;
  using Narrow = SparseGemm<Element, Result, major_b, 128>;
  using Input = storage<Element>;
  using Output = storage<Result>;

 public:
  cudaError_t prepare(const Weights<Element>& a, int n, float alpha, Matrix<const Input> b, float beta, Matrix<const Output> c,
                      Matrix<Output> d) {
    const cudaError_t status = begin(a.m(), n, a.k(), alpha, beta);
    if (status != cudaSuccess) return status;
    const int shared = cost<Shared>(), wide = cost<Wide>(), medium = cost<Medium>(), narrow = cost<Narrow>();
    if (shared < wide && shared < medium && shared < narrow) return choose<Shared>(a, b, c, d);
    if (medium <= wide && medium <= narrow) return choose<Medium>(a, b, c, d);
    return wide <= narrow ? choose<Wide>(a, b, c, d) : choose<Narrow>(a, b, c, d);
  }

 protected:
  template <class G>
  cudaError_t choose(const Weights<Element>& a, Matrix<const Input> b, Matrix<const Output> c, Matrix<Output> d) {
    SparseSource& source = arguments_.source;
    source.metadata = a.metadata();
    source.words = a.words();
    cudaError_t status = describe<typename G::Operands::A>(source.a, a.values(), a.m(), round_up(a.k(), Weights<Element>::column_multiple) / 2);
    if (status == cudaSuccess) status = describe<typename G::Operands::B, CLUSTER>(source.b, b, arguments_.n, arguments_.k);
    return status == cudaSuccess ? use<G>(c, d) : status;
  }
};

}  // namespace sparse_gemm_sm90
