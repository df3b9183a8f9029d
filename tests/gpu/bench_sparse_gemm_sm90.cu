// Times sparse_gemm_sm90 against cuSPARSELt: its default, and the best of all its algorithms and of its own search. Arguments:
// those of Options.
#include <cusparseLt.h>

#include <memory>

#include "bench.cuh"
#include "sparse_gemm_sm90_plan.cuh"

using gemm_sm90::storage;

template <class Element>
constexpr cudaDataType data_type() {
  return std::is_same_v<Element, ptxmma::f16> ? CUDA_R_16F : std::is_same_v<Element, ptxmma::bf16> ? CUDA_R_16BF : CUDA_R_8F_E4M3;
}

struct Algorithm {
  cusparseLtMatmulAlgSelection_t selection;
  cusparseLtMatmulPlan_t plan;
};

template <class Element, class Result>
void bench(cusparseLtHandle_t* library, Rows& rows, const char* types, Size size, bool in_mean) {
  const auto [m, n, k] = size;
  using In = storage<Element>;
  using Out = storage<Result>;
  const int width = (n + 15) / 16 * 16;  // cuSPARSELt's
  DeviceArray<In> a(size_t(m) * k), b(size_t(width) * k);
  DeviceArray<Out> d(size_t(m) * width);
  std::vector<Candidate> candidates;
  sparse_gemm_sm90::Weights<Element> small_weights, weights;
  sparse_gemm_sm90::SparsePlan<Element, Result> small_plan, plan;
  fill_integers<<<1024, 256>>>(a.data, a.size, 1, 2);
  fill_integers<<<1024, 256>>>(b.data, b.size, 2, 1);
  drop_half<<<1024, 256>>>(a.data, a.size, 3);
  CHECK(small_weights.compress(m, k, a.data, k));
  CHECK(small_plan.prepare(small_weights, n, 1, {b.data, k}, 0, {}, {d.data, width}));
  expect_product(m, n, k, RowMajor<In>{a.data, k}, RowMajor<In>{b.data, k}, d, width, [&](cudaStream_t stream) { CHECK(small_plan.launch(stream)); });

  fill_normal<<<1024, 256>>>(a.data, a.size, 1);
  fill_normal<<<1024, 256>>>(b.data, b.size, 2);
  drop_half<<<1024, 256>>>(a.data, a.size, 3);
  CHECK(weights.compress(m, k, a.data, k));
  CHECK(plan.prepare(weights, n, 1, {b.data, k}, 0, {}, {d.data, width}));
  candidates.push_back({[&](cudaStream_t stream) { CHECK(plan.launch(stream)); }});

  // B is n x k, row-major, and used transposed.
  cusparseLtMatDescriptor_t sparse, dense, result;
  cusparseLtMatmulDescriptor_t operation;
  constexpr int alignment = 16;
  CHECK(cusparseLtStructuredDescriptorInit(
      library, &sparse, m, k, k, alignment, data_type<Element>(), CUSPARSE_ORDER_ROW, CUSPARSELT_SPARSITY_50_PERCENT));
  CHECK(cusparseLtDenseDescriptorInit(library, &dense, width, k, k, alignment, data_type<Element>(), CUSPARSE_ORDER_ROW));
  CHECK(cusparseLtDenseDescriptorInit(library, &result, m, width, width, alignment, data_type<Result>(), CUSPARSE_ORDER_ROW));
  CHECK(cusparseLtMatmulDescriptorInit(library, &operation, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE, &sparse,
                                       &dense, &result, &result, CUSPARSE_COMPUTE_32F));
  size_t compressed_size, buffer_size;
  CHECK(cusparseLtSpMMACompressedSize2(library, &sparse, &compressed_size, &buffer_size));
  DeviceArray<char> compressed(compressed_size), buffer(buffer_size + 1), work(256 << 20);
  CHECK(cusparseLtSpMMACompress2(
      library, &sparse, 1, CUSPARSE_OPERATION_NON_TRANSPOSE, a.data, compressed.data, buffer.data, nullptr));

  const float one = 1, zero = 0;
  int last = 0;
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  const auto add = [&](int id) {  // -1: the default
    algorithms.push_back(std::make_unique<Algorithm>());
    Algorithm* made = algorithms.back().get();
    CHECK(cusparseLtMatmulAlgSelectionInit(library, &made->selection, &operation, CUSPARSELT_MATMUL_ALG_DEFAULT));
    if (id < 0) {
      CHECK(cusparseLtMatmulAlgGetAttribute(library, &made->selection, CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID, &last, sizeof last));
    } else if (cusparseLtMatmulAlgSetAttribute(library, &made->selection, CUSPARSELT_MATMUL_ALG_CONFIG_ID, &id, sizeof id) != 0) {
      return;
    }
    size_t needed = 0;
    if (cusparseLtMatmulPlanInit(library, &made->plan, &operation, &made->selection) != 0) return;
    if (cusparseLtMatmulGetWorkspace(library, &made->plan, &needed) != 0 || needed > work.size) return;
    const auto run = [&, made](cudaStream_t stream) {
      return cusparseLtMatmul(
          library, &made->plan, &one, compressed.data, b.data, &zero, d.data, d.data, work.data, &stream, 1);
    };
    if (run(nullptr) == 0) candidates.push_back({[run](cudaStream_t stream) { CHECK(run(stream)); }});
  };
  add(-1);
  for (int id = 0; id < last; ++id) add(id);
  add(-1);
  CHECK(cusparseLtMatmulSearch(library, &algorithms.back()->plan, &one, compressed.data, b.data, &zero, d.data, d.data, work.data, nullptr, 0));
  std::fprintf(stderr, "%s: %zu algorithms\n", types, candidates.size() - 1);
  rows.measure(size.text(), size.work(), candidates, in_mean);
}

template <class Element, class Result>
void bench_all(cusparseLtHandle_t* library, const Options& options, const char* types) {
  Rows rows(options, "sparse_gemm_sm90", types);
  for (const Size& size : SIZES) bench<Element, Result>(library, rows, types, size, true);
  rows.means();
  // Columns of B that do not begin with a line of L2; few columns.
  bench<Element, Result>(library, rows, types, {4096, 4096, 4096 + 32}, false);
  for (const int n : {1, 16, 64, 128}) bench<Element, Result>(library, rows, types, {8192, n, 8192}, false);
}

int main(int argc, char** argv) {
  const Options options(argc, argv);
  cusparseLtHandle_t library;
  CHECK(cusparseLtInit(&library));
  bench_all<ptxmma::f16, ptxmma::f16>(&library, options, "2:4 f16");
  bench_all<ptxmma::bf16, ptxmma::bf16>(&library, options, "2:4 bf16");
  bench_all<ptxmma::e4m3, ptxmma::bf16>(&library, options, "2:4 e4m3 to bf16");
  CHECK(cusparseLtDestroy(&library));
  return EXIT_SUCCESS;
}
