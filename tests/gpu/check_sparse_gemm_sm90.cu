// Holds sparse_gemm_sm90 against a product in float64, as check_gemm_sm90.cu does, and its compressor against weights that are not sparse.
// The argument is the number of sizes for each combination.
#include "check.cuh"
#include "sparse_gemm_sm90_plan.cuh"

using ptxmma::storage;

template <class Element, class Result, ptxmma_majorness major_b>
bool check_all(const char* name, int count) {
  return check_all<Element, Result, true>(
      name, count, K, major_b,
      [](const Case& one, const storage<Element>* a, int64_t lda, const storage<Element>* b, int64_t ldb, storage<Result>* c, int64_t ldc) {
        sparse_gemm_sm90::Weights<Element> weights;
        sparse_gemm_sm90::SparsePlan<Element, Result, major_b> plan;
        CHECK(weights.compress(one.m, one.k, a, lda));
        CHECK(plan.prepare(weights, one.n, one.alpha, {b, ldb}, one.beta, {c, ldc}, {c, ldc}));
        CHECK(plan.launch());
        CHECK(cudaDeviceSynchronize());
      });
}

bool dense_weights_are_refused() {
  DeviceArray<__half> a(64 * 64);
  fill_normal<<<1, 256>>>(a.data, a.size, 1);
  sparse_gemm_sm90::Weights<ptxmma::f16> weights;
  const bool refused = weights.compress(64, 64, a.data, 64) == cudaErrorInvalidValue;
  std::printf("weights that are not sparse are %s\n", refused ? "refused" : "taken: WRONG");
  return refused;
}

// B of each product is D of the one before; where B is column-major, C is, too.
bool chains_are_right() {
  const int m = 2048, n = 128, few = 16;
  DeviceArray<__half> a(m * m), x(m * n), y(m * n), b(few * m), d(m * few);
  fill_normal<<<256, 256>>>(a.data, a.size, 2);
  drop_half<<<256, 256>>>(a.data, a.size, 3);
  fill_normal<<<256, 256>>>(b.data, b.size, 4);
  const float alpha = 1 / std::sqrt(m / 2.f);
  sparse_gemm_sm90::Weights<ptxmma::f16> weights;
  CHECK(weights.compress(m, m, a.data, m));
  sparse_gemm_sm90::SparsePlan<ptxmma::f16, ptxmma::f16, MN> there, back;
  CHECK(there.prepare(weights, n, alpha, {x.data, n}, 0, {}, {y.data, n}));
  CHECK(back.prepare(weights, n, alpha, {y.data, n}, 0, {}, {x.data, n}));
  sparse_gemm_sm90::SparsePlan<ptxmma::f16, ptxmma::f16> again;
  CHECK(again.prepare(weights, few, alpha, {b.data, m}, -1, {d.data, few}, {d.data, few}));
  return check_chain("B row-major", there, back, x) && check_chain("B column-major", again, again, d);
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 20;
  using namespace ptxmma;
  const bool right[] = {
      check_all<f16, f16, K>("2:4 f16, B column-major", count),
      check_all<f16, f16, MN>("2:4 f16, B row-major", count),
      check_all<bf16, bf16, K>("2:4 bf16, B column-major", count),
      check_all<bf16, bf16, MN>("2:4 bf16, B row-major", count),
      check_all<f16, f32, K>("2:4 f16 to f32", count),
      check_all<e4m3, bf16, K>("2:4 e4m3 to bf16", count),
      check_all<e4m3, f32, K>("2:4 e4m3 to f32", count),
      dense_weights_are_refused(),
      chains_are_right(),
  };
  for (const bool one : right) {
    if (!one) return EXIT_FAILURE;
  }
  std::printf("all right\n");
  return EXIT_SUCCESS;
}
