// A product of cublasLt, by the algorithms that its heuristic offers or by others.
#pragma once

#include <type_traits>

#include <cublasLt.h>

#include <ptxmma/cuda/config.cuh>

#include "bench.cuh"

template <class Element>
struct Library;
template <>
struct Library<ptxmma::bf16> {
  static constexpr cudaDataType_t in = CUDA_R_16BF, out = CUDA_R_16BF, scalar = CUDA_R_32F;
  static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <>
struct Library<ptxmma::f16> {
  static constexpr cudaDataType_t in = CUDA_R_16F, out = CUDA_R_16F, scalar = CUDA_R_32F;
  static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <>
struct Library<ptxmma::e4m3> {
  static constexpr cudaDataType_t in = CUDA_R_8F_E4M3, out = CUDA_R_16BF, scalar = CUDA_R_32F;
  static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <>
struct Library<ptxmma::s8> {
  static constexpr cudaDataType_t in = CUDA_R_8I, out = CUDA_R_32I, scalar = CUDA_R_32I;
  static constexpr cublasComputeType_t compute = CUBLAS_COMPUTE_32I;
};

// D = A * B, A row-major and B column-major.
template <class Element>
class CublasProduct {
  using Types = Library<Element>;

 public:
  CublasProduct(cublasLtHandle_t library, Size size, const void* a, const void* b, void* d)
      : library_(library), a_(a), b_(b), d_(d), work_(size_t(1) << 30) {  // a large workspace: no algorithm is left out
    const auto [m, n, k] = size;
    const cublasOperation_t transpose = CUBLAS_OP_T;
    const int8_t fast = std::is_same_v<Element, ptxmma::e4m3>;  // as wgmma sums; the default moves sums to other registers in between
    CHECK(cublasLtMatmulDescCreate(&operation_, Types::compute, Types::scalar));
    CHECK(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
    CHECK(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
    // cuBLAS counts columns first: its A is our B.
    CHECK(cublasLtMatrixLayoutCreate(&layout_a_, Types::in, k, n, k));
    CHECK(cublasLtMatrixLayoutCreate(&layout_b_, Types::in, k, m, k));
    CHECK(cublasLtMatrixLayoutCreate(&layout_d_, Types::out, n, m, n));
  }
  ~CublasProduct() {
    for (cublasLtMatrixLayout_t layout : {layout_a_, layout_b_, layout_d_}) CHECK(cublasLtMatrixLayoutDestroy(layout));
    CHECK(cublasLtMatmulDescDestroy(operation_));
  }
  CublasProduct(const CublasProduct&) = delete;
  CublasProduct& operator=(const CublasProduct&) = delete;

  // Adds all that the heuristic offers, its default first.
  void add_to(std::vector<Candidate>& candidates) const {
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work_.size, sizeof work_.size));
    std::vector<cublasLtMatmulHeuristicResult_t> offers(64);
    int count = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(library_, operation_, layout_a_, layout_b_, layout_d_, layout_d_, preference,
                                         static_cast<int>(offers.size()), offers.data(), &count));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    for (int i = 0; i < count; ++i) candidates.push_back(candidate(offers[i].algo));
  }

  Candidate candidate(const cublasLtMatmulAlgo_t& algorithm) const {
    return {[this, algorithm](cudaStream_t stream) { CHECK(run(algorithm, stream)); }};
  }

  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) const {
    const Scalar one = 1, zero = 0;
    return cublasLtMatmul(library_, operation_, &one, b_, layout_a_, a_, layout_b_, &zero, d_, layout_d_, d_, layout_d_, &algorithm, work_.data,
                          work_.size, stream);
  }

  bool takes(const cublasLtMatmulAlgo_t& algorithm) const {
    cublasLtMatmulHeuristicResult_t result;
    return cublasLtMatmulAlgoCheck(library_, operation_, layout_a_, layout_b_, layout_d_, layout_d_, &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= work_.size;
  }

 private:
  using Scalar = std::conditional_t<Types::scalar == CUDA_R_32I, int32_t, float>;
  cublasLtHandle_t library_;
  const void *a_, *b_;
  void* d_;
  DeviceArray<char> work_;
  cublasLtMatmulDesc_t operation_;
  cublasLtMatrixLayout_t layout_a_, layout_b_, layout_d_;
};
