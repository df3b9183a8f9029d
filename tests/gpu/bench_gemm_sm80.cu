// Times gemm_sm80 against other kernels that use mma.sync: those of cublasLt that are named after Ampere, and CUTLASS's (cutlass_sm80.cu).
// Arguments: those of Options.
#include <set>
#include <string>

#include <cuda.h>

#include "cublas.cuh"
#include "gemm_sm80_plan.cuh"

int cutlass_bf16(int choice, int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream);
int cutlass_f16(int choice, int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream);

// The names of the kernels that an algorithm launches.
template <class Element>
std::string kernels_of(const CublasProduct<Element>& product, const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const cublasStatus_t status = product.run(algorithm, stream);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  std::string names;
  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  for (cudaGraphNode_t node : nodes) {
    CUgraphNodeType type;
    CHECK(cuGraphNodeGetType(node, &type));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    CHECK(cuGraphKernelNodeGetParams(node, &parameters));
    const char* name = nullptr;
    if (parameters.func != nullptr) {
      CHECK(cuFuncGetName(&name, parameters.func));
    } else {
      CHECK(cuKernelGetName(&name, parameters.kern));
    }
    names += std::string(names.empty() ? "" : "+") + name;
  }
  CHECK(cudaGraphDestroy(graph));
  return status == CUBLAS_STATUS_SUCCESS ? names : "";
}

bool for_ampere(const std::string& names) {
  return names.find("+") == std::string::npos && (names.find("ampere") != std::string::npos || names.find("sm80") != std::string::npos);
}

// The algorithms that run one kernel with mma.sync, one for each kernel and order of tiles.
template <class Element>
std::vector<std::pair<std::string, cublasLtMatmulAlgo_t>> ampere_algorithms(cublasLtHandle_t library, const CublasProduct<Element>& product,
                                                                            cudaStream_t stream) {
  constexpr auto type = Library<Element>::in, scalar = Library<Element>::scalar;
  constexpr auto compute = Library<Element>::compute;
  std::vector<std::pair<std::string, cublasLtMatmulAlgo_t>> algorithms;
  std::set<std::string> seen;
  std::vector<int> ids(256);
  int count = 0;
  CHECK(cublasLtMatmulAlgoGetIds(library, compute, scalar, type, type, type, type, static_cast<int>(ids.size()), ids.data(), &count));
  for (int i = 0; i < count; ++i) {
    cublasLtMatmulAlgo_t algorithm;
    CHECK(cublasLtMatmulAlgoInit(library, compute, scalar, type, type, type, type, ids[i], &algorithm));
    const auto choices = [&](cublasLtMatmulAlgoCapAttributes_t what) {
      size_t bytes = 0;
      cublasLtMatmulAlgoCapGetAttribute(&algorithm, what, nullptr, 0, &bytes);
      std::vector<int> values(bytes / sizeof(int));
      if (bytes > 0) CHECK(cublasLtMatmulAlgoCapGetAttribute(&algorithm, what, values.data(), bytes, &bytes));
      if (values.empty()) values.push_back(0);
      return values;
    };
    for (const int tile : choices(CUBLASLT_ALGO_CAP_TILE_IDS)) {
      for (const int stages : choices(CUBLASLT_ALGO_CAP_STAGES_IDS)) {
        for (const int swizzle : {0, 1}) {
          cublasLtMatmulAlgo_t one = algorithm;
          cublasLtMatmulAlgoConfigSetAttribute(&one, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile);
          cublasLtMatmulAlgoConfigSetAttribute(&one, CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof stages);
          cublasLtMatmulAlgoConfigSetAttribute(&one, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, &swizzle, sizeof swizzle);
          if (!product.takes(one)) continue;
          const std::string name = kernels_of(product, one, stream);
          if (!for_ampere(name) || !seen.insert(name + std::to_string(swizzle)).second) continue;
          algorithms.push_back({name, one});
        }
      }
    }
  }
  return algorithms;
}

template <class Element>
void bench(cublasLtHandle_t library, Rows& rows, Size size, bool in_mean) {
  const int m = size.m, n = size.n, k = size.k;
  using T = ptxmma::storage<Element>;
  DeviceArray<T> a(size_t(m) * k), b(size_t(n) * k), d(size_t(m) * n);
  fill_integers<<<1024, 256>>>(a.data, a.size, 1, 2);
  fill_integers<<<1024, 256>>>(b.data, b.size, 2, 1);

  gemm_sm80::Plan<Element, Element> plan;
  CHECK(plan.prepare(m, n, k, 1, {a.data, k}, {b.data, k}, 0, {}, {d.data, n}));
  std::vector<Candidate> candidates;
  candidates.push_back({[&](cudaStream_t on) { CHECK(plan.launch(on)); }});
  expect_product(m, n, k, RowMajor<T>{a.data, k}, RowMajor<T>{b.data, k}, d, n, candidates[0].run);
  fill_normal<<<1024, 256>>>(a.data, a.size, 1);
  fill_normal<<<1024, 256>>>(b.data, b.size, 2);
  CHECK(cudaDeviceSynchronize());
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));

  const CublasProduct<Element> product(library, size, a.data, b.data, d.data);
  std::vector<std::string> names = {"ours"};
  const auto algorithms = ampere_algorithms(library, product, stream);
  for (const auto& [kernel, algorithm] : algorithms) {
    candidates.push_back(product.candidate(algorithm));
    names.push_back(kernel);
  }
  const auto cutlass = std::is_same_v<Element, ptxmma::bf16> ? cutlass_bf16 : cutlass_f16;
  for (int choice = 0; choice < 5; ++choice) {
    candidates.push_back({[&, choice](cudaStream_t on) { CHECK(cutlass(choice, m, n, k, a.data, b.data, d.data, on)); }});
    names.push_back("CUTLASS " + std::to_string(choice));
  }

  // A few rounds tell which of each library is fastest; it is measured with care. Without a kernel of cuBLAS, CUTLASS's is the default.
  measure(candidates, 3, 1, stream);
  const auto fastest = [&](size_t first, size_t last) {
    size_t best = first;
    for (size_t i = first; i < last; ++i) best = candidates[i].time() < candidates[best].time() ? i : best;
    return best;
  };
  const size_t of_cutlass = fastest(algorithms.size() + 1, candidates.size());
  const size_t of_cublas = algorithms.empty() ? of_cutlass : fastest(1, algorithms.size() + 1);
  std::fprintf(stderr, "%s, %s\n", names[of_cublas].c_str(), names[of_cutlass].c_str());
  rows.measure(size.text(), size.work(), {{candidates[0].run}, {candidates[of_cublas].run}, {candidates[of_cutlass].run}}, in_mean);
  CHECK(cudaStreamDestroy(stream));
}

template <class Element>
void bench_all(cublasLtHandle_t library, const Options& options, const char* types) {
  Rows rows(options, "gemm_sm80", types);
  for (const Size& size : SIZES) bench<Element>(library, rows, size, true);
  rows.means();
  // Rows that do not begin with a line of L2; few rows.
  bench<Element>(library, rows, {4096, 4096, 4096 + 16 / sizeof(ptxmma::storage<Element>)}, false);
  for (const int m : {16, 128}) bench<Element>(library, rows, {m, 8192, 8192}, false);
}

int main(int argc, char** argv) {
  const Options options(argc, argv);
  CHECK(cuInit(0));
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  bench_all<ptxmma::bf16>(library, options, "bf16");
  bench_all<ptxmma::f16>(library, options, "f16");
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
