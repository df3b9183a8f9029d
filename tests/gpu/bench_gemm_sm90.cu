// Times gemm_sm90 against cuBLAS: its default, and the best of what cublasLt's heuristic offers. Arguments: those of Options.
#include "bench.cuh"
#include "cublas.cuh"
#include "gemm_sm90_plan.cuh"

using gemm_sm90::storage;

template <class Element, class Result>
void bench(cublasLtHandle_t library, Rows& rows, Size size, bool in_mean) {
  const auto [m, n, k] = size;
  using In = storage<Element>;
  using Out = storage<Result>;
  DeviceArray<In> a(size_t(m) * k), b(size_t(n) * k);
  DeviceArray<Out> d(size_t(m) * n);
  fill_integers<<<1024, 256>>>(a.data, a.size, 1, 2);
  fill_integers<<<1024, 256>>>(b.data, b.size, 2, 1);

  std::vector<Candidate> candidates;
  gemm_sm90::Plan<Element, Result> plan;
  CHECK(plan.prepare(m, n, k, 1, {a.data, k}, {b.data, k}, 0, {}, {d.data, n}));
  candidates.push_back({[&](cudaStream_t stream) { CHECK(plan.launch(stream)); }});
  expect_product(m, n, k, RowMajor<In>{a.data, k}, RowMajor<In>{b.data, k}, d, n, candidates[0].run);
  fill_normal<<<1024, 256>>>(a.data, a.size, 1);
  fill_normal<<<1024, 256>>>(b.data, b.size, 2);

  const CublasProduct<Element> theirs(library, size, a.data, b.data, d.data);
  theirs.add_to(candidates);
  rows.measure(size.text(), size.work(), candidates, in_mean);
}

template <class Element, class Result>
void bench_all(cublasLtHandle_t library, const Options& options, const char* types) {
  Rows rows(options, "gemm_sm90", types);
  for (const Size& size : SIZES) bench<Element, Result>(library, rows, size, true);
  rows.means();
  // Rows that do not begin with a line of L2; few rows.
  constexpr int units = 16 / sizeof(storage<Element>);  // a row is a multiple of 16 bytes
  bench<Element, Result>(library, rows, {4096, 4096, 4096 + units}, false);
  for (const int m : {1, 16, 64, 128}) bench<Element, Result>(library, rows, {m, 8192, 8192}, false);
}

int main(int argc, char** argv) {
  const Options options(argc, argv);
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  bench_all<ptxmma::bf16, ptxmma::bf16>(library, options, "bf16");
  bench_all<ptxmma::f16, ptxmma::f16>(library, options, "f16");
  bench_all<ptxmma::e4m3, ptxmma::bf16>(library, options, "e4m3 to bf16");
  bench_all<ptxmma::s8, ptxmma::s32>(library, options, "s8 to s32");
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
