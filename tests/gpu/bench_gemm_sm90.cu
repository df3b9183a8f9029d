// Times gemm_sm90 against cuBLAS: its default, and the best of what cublasLt's heuristic offers. Prints a table with commas; `make bench-gpu`
// runs it.
//
// All of them run in one process, in an order that changes at random from round to round, a few milliseconds each; medians count. So they
// share what the chip's clock does when it reaches the limit of its power.
#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include <cublasLt.h>

#include "gemm_sm90_plan.cuh"
#include "numbers.cuh"

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

struct Candidate {
  std::function<void()> run;
  std::vector<float> times;  // ms
  float median() {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }
};

void measure(std::vector<Candidate>& candidates, int rounds, float ms) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  const auto time = [&](const Candidate& candidate, int launches) {
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < launches; ++i) candidate.run();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    float elapsed;
    CHECK(cudaEventElapsedTime(&elapsed, start, stop));
    return elapsed / launches;
  };
  std::vector<int> launches, order(candidates.size());
  for (const Candidate& candidate : candidates) {
    time(candidate, 1);
    launches.push_back(std::max(1, static_cast<int>(ms / time(candidate, 2))));
  }
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order) {
      time(candidates[i], launches[i]);  // brings the clock to where this candidate's power leaves it
      candidates[i].times.push_back(time(candidates[i], launches[i]));
    }
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
}

struct Ratios {
  double first = 1, best = 1;
};

template <class Element, class Result>
Ratios bench(cublasLtHandle_t library, const char* name, int m, int n, int k, int rounds) {
  using In = storage<Element>;
  using Out = storage<Result>;
  using Scalar = typename gemm_sm90::Plan<Element, Result>::Scalar;
  DeviceArray<In> a(size_t(m) * k), b(size_t(n) * k);
  DeviceArray<Out> d(size_t(m) * n);
  size_t work_size = 64 << 20;
  DeviceArray<char> work(work_size);
  fill_normal<<<1024, 256>>>(a.data, a.size, 1);
  fill_normal<<<1024, 256>>>(b.data, b.size, 2);

  std::vector<Candidate> candidates;
  gemm_sm90::Plan<Element, Result> plan;
  CHECK(plan.prepare(m, n, k, 1, {a.data, k}, {b.data, k}, 0, {}, {d.data, n}));
  candidates.push_back({[&] { CHECK(plan.launch()); }, {}});

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
    candidates.push_back({[&, i] {
                            CHECK(cublasLtMatmul(library, operation, &one, b.data, layout_a, a.data, layout_b, &zero, d.data, layout_d,
                                                 d.data, layout_d, &offers[i].algo, work.data, work_size, nullptr));
                          },
                          {}});
  }
  measure(candidates, rounds, 5);

  const float ours = candidates[0].median(), first = candidates[1].median();
  float best = first;
  for (size_t i = 1; i < candidates.size(); ++i) best = std::min(best, candidates[i].median());
  const double work_done = 2e-9 * m * n * k;
  std::printf("%s,%d x %d x %d,%.0f,%.0f,%.0f,%.3f,%.3f\n", name, m, n, k, work_done / ours, work_done / first, work_done / best,
              first / ours, best / ours);
  std::fflush(stdout);
  CHECK(cublasLtMatmulPreferenceDestroy(preference));
  for (cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_d}) CHECK(cublasLtMatrixLayoutDestroy(layout));
  CHECK(cublasLtMatmulDescDestroy(operation));
  return {first / ours, best / ours};
}

template <class Element, class Result>
void bench_all(cublasLtHandle_t library, const char* name, int rounds) {
  Ratios product;
  const int sizes[][3] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}};
  for (const auto& size : sizes) {
    const Ratios ratios = bench<Element, Result>(library, name, size[0], size[1], size[2], rounds);
    product.first *= ratios.first;
    product.best *= ratios.best;
  }
  std::printf("%s,geometric mean,,,,%.3f,%.3f\n", name, std::cbrt(product.first), std::cbrt(product.best));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  std::printf("types,m x n x k,TFLOP/s,cuBLAS,its best,ratio to cuBLAS,ratio to its best\n");
  bench_all<ptxmma::bf16, ptxmma::bf16>(library, "bf16", rounds);
  bench_all<ptxmma::f16, ptxmma::f16>(library, "f16", rounds);
  bench_all<ptxmma::e4m3, ptxmma::bf16>(library, "e4m3 to bf16", rounds);
  bench_all<ptxmma::s8, ptxmma::s32>(library, "s8 to s32", rounds);
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
