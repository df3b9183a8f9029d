// Holds gemm_sm90 against a product in float64: every combination of types and majornesses, random sizes with ragged ones, pitches wider
// than the matrices, alpha and beta. The argument is the number of sizes for each combination.
#include "check.cuh"
#include "gemm_sm90_plan.cuh"

using gemm_sm90::From;
using ptxmma::storage;

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, From from = From::SHARED>
bool check_all(const char* name, int count) {
  return check_all<Element, Result, false>(
      name, count, major_a, major_b,
      [](const Case& one, const storage<Element>* a, int64_t lda, const storage<Element>* b, int64_t ldb, storage<Result>* c, int64_t ldc) {
        gemm_sm90::Plan<Element, Result, major_a, major_b, from> plan;
        CHECK(plan.prepare(one.m, one.n, one.k, one.alpha, {a, lda}, {b, ldb}, one.beta, {c, ldc}, {c, ldc}));
        CHECK(plan.launch());
      });
}

// A of each product is D of the one before.
bool check_chain(int m) {
  const int n = 2048;
  DeviceArray<__half> x(m * n), y(m * n), w(n * n);
  fill_normal<<<256, 256>>>(w.data, w.size, 2);
  const float alpha = 1 / std::sqrt(float(n));
  gemm_sm90::Plan<ptxmma::f16, ptxmma::f16> there, back;
  CHECK(there.prepare(m, n, n, alpha, {x.data, n}, {w.data, n}, 0, {}, {y.data, n}));
  CHECK(back.prepare(m, n, n, alpha, {y.data, n}, {w.data, n}, 0, {}, {x.data, n}));
  return check_chain("f16, few rows", there, back, x);
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 20;
  using namespace ptxmma;
  const bool right[] = {
      check_all<bf16, bf16, K, K>("bf16, A row-major, B column-major", count),
      check_all<bf16, bf16, K, MN>("bf16, A row-major, B row-major", count),
      check_all<bf16, bf16, MN, K>("bf16, A column-major, B column-major", count),
      check_all<bf16, bf16, MN, MN>("bf16, A column-major, B row-major", count),
      check_all<f16, f16, K, K>("f16, A row-major, B column-major", count),
      check_all<f16, f16, K, MN>("f16, A row-major, B row-major", count),
      check_all<f16, f16, MN, K>("f16, A column-major, B column-major", count),
      check_all<f16, f16, MN, MN>("f16, A column-major, B row-major", count),
      check_all<bf16, f32, K, K>("bf16 to f32", count),
      check_all<e4m3, bf16, K, K>("e4m3 to bf16", count),
      check_all<e4m3, f32, K, K>("e4m3 to f32", count),
      check_all<s8, s32, K, K>("s8 to s32", count),
      check_all<bf16, bf16, K, K, From::REGISTERS>("bf16, A from registers, row-major", count),
      check_all<f16, f16, MN, MN, From::REGISTERS>("f16, A from registers, column-major, B row-major", count),
      check_all<e4m3, bf16, K, K, From::REGISTERS>("e4m3 to bf16, A from registers", count),
      check_all<s8, s32, K, K, From::REGISTERS>("s8 to s32, A from registers", count),
      check_chain(16),
      check_chain(128),
  };
  for (const bool one : right) {
    if (!one) return EXIT_FAILURE;
  }
  std::printf("all right\n");
  return EXIT_SUCCESS;
}
