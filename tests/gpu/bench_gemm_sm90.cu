// Times gemm_sm90 against cuBLAS: its default, and the best of what cublasLt's heuristic offers. The argument is the number of sustained rounds.
#include <cublasLt.h>

#include "bench.cuh"
#include "gemm_sm90_plan.cuh"

using gemm_sm90::storage;

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

template <class Element, class Result>
void bench(cublasLtHandle_t library, Rows& rows, Size size, bool in_mean) {
  const auto [m, n, k] = size;
  using In = storage<Element>;
  using Out = storage<Result>;
  using Scalar = typename gemm_sm90::Plan<Element, Result>::Scalar;
  DeviceArray<In> a(size_t(m) * k), b(size_t(n) * k);
  DeviceArray<Out> d(size_t(m) * n);
  size_t work_size = size_t(1) << 30;  // large: none of the offers is left out
  DeviceArray<char> work(work_size);
  fill_normal<<<1024, 256>>>(a.data, a.size, 1);
  fill_normal<<<1024, 256>>>(b.data, b.size, 2);

  std::vector<Candidate> candidates;
  gemm_sm90::Plan<Element, Result> plan;
  CHECK(plan.prepare(m, n, k, 1, {a.data, k}, {b.data, k}, 0, {}, {d.data, n}));
  candidates.push_back({[&](cudaStream_t stream) { CHECK(plan.launch(stream)); }});

  // cuBLAS counts columns first: its A is our B.
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layout_a, layout_b, layout_d;
  cublasLtMatmulPreference_t preference;
  const cublasOperation_t transpose = CUBLAS_OP_T;
  const int8_t fast = std::is_same_v<Element, ptxmma::e4m3>;  // as wgmma sums; the default moves sums to other registers in between
  CHECK(cublasLtMatmulDescCreate(&operation, Library<Element>::compute, Library<Element>::scalar));
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
  CHECK(cublasLtMatrixLayoutCreate(&layout_a, Library<Element>::in, k, n, k));
  CHECK(cublasLtMatrixLayoutCreate(&layout_b, Library<Element>::in, k, m, k));
  CHECK(cublasLtMatrixLayoutCreate(&layout_d, Library<Element>::out, n, m, n));
  CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work_size, sizeof work_size));
  std::vector<cublasLtMatmulHeuristicResult_t> offers(64);
  int count = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(library, operation, layout_a, layout_b, layout_d, layout_d, preference,
                                       static_cast<int>(offers.size()), offers.data(), &count));
  const Scalar one = 1, zero = 0;
  for (int i = 0; i < count; ++i) {
    candidates.push_back({[&, i](cudaStream_t stream) {
                            CHECK(cublasLtMatmul(library, operation, &one, b.data, layout_a, a.data, layout_b, &zero, d.data, layout_d,
                                                 d.data, layout_d, &offers[i].algo, work.data, work_size, stream));
                          }});
  }
  rows.measure(size.text(), size.work(), candidates, in_mean);
  CHECK(cublasLtMatmulPreferenceDestroy(preference));
  for (cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_d}) CHECK(cublasLtMatrixLayoutDestroy(layout));
  CHECK(cublasLtMatmulDescDestroy(operation));
}

template <class Element, class Result>
void bench_all(cublasLtHandle_t library, const char* types, int rounds) {
  Rows rows("gemm_sm90", types, rounds);
  for (const Size& size : SIZES) bench<Element, Result>(library, rows, size, true);
  rows.means();
  // Rows that do not begin with a line of L2; few rows.
  constexpr int units = 16 / sizeof(storage<Element>);  // a row is a multiple of 16 bytes
  bench<Element, Result>(library, rows, {4096, 4096, 4096 + units}, false);
  for (const int m : {1, 16, 64, 128}) bench<Element, Result>(library, rows, {m, 8192, 8192}, false);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  bench_all<ptxmma::bf16, ptxmma::bf16>(library, "bf16", rounds);
  bench_all<ptxmma::f16, ptxmma::f16>(library, "f16", rounds);
  bench_all<ptxmma::e4m3, ptxmma::bf16>(library, "e4m3 to bf16", rounds);
  bench_all<ptxmma::s8, ptxmma::s32>(library, "s8 to s32", rounds);
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
