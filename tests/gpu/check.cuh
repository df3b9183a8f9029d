// What the checks of the example kernels for Hopper share: a product of random size against float64. Small integers have to come out exactly,
// random numbers within a bound.
#pragma once

#include <cstring>
#include <random>
#include <type_traits>

#include <ptxmma/shared_memory.h>

#include "compare.cuh"

constexpr ptxmma_majorness K = PTXMMA_MAJORNESS_K, MN = PTXMMA_MAJORNESS_MN;

struct Case {
  int m, n, k, padding;  // units of 16 bytes between rows
  bool integers;
  float alpha, beta;
  uint64_t seed;
};

// `multiply` is called with the case, the matrices on the device and their pitches; D takes the place of C.
template <class Element, class Result, bool sparse, class Multiply>
bool check(const Case& one, ptxmma_majorness major_a, ptxmma_majorness major_b, Multiply multiply) {
  using In = ptxmma::storage<Element>;
  using Out = ptxmma::storage<Result>;
  const auto [m, n, k, padding, integers, alpha, beta, seed] = one;
  const auto pitch = [gap = padding](int width, size_t size) { return int64_t(((width * size + 15) / 16 + gap) * 16 / size); };
  const int64_t lda = pitch(major_a == K ? k : m, sizeof(In)), ldb = pitch(major_b == K ? k : n, sizeof(In)), ldd = pitch(n, sizeof(Out));
  DeviceArray<In> a(lda * (major_a == K ? m : k)), b(ldb * (major_b == K ? n : k));
  DeviceArray<Out> c(ldd * m);
  DeviceArray<double> result(size_t(m) * n), magnitude(size_t(m) * n);
  if (integers) {
    fill_integers<<<256, 256>>>(a.data, a.size, seed, 2);
    fill_integers<<<256, 256>>>(b.data, b.size, seed + 1, 1);
  } else {
    fill_normal<<<256, 256>>>(a.data, a.size, seed);
    fill_normal<<<256, 256>>>(b.data, b.size, seed + 1);
  }
  if (sparse) drop_half<<<256, 256>>>(a.data, a.size, seed + 3);
  fill_integers<<<256, 256>>>(c.data, c.size, seed + 2, 3);
  const std::vector<Out> before = c.host();
  const Strides sa = major_a == K ? Strides{lda, 1} : Strides{1, lda}, sb = major_b == K ? Strides{1, ldb} : Strides{ldb, 1};
  product<<<dim3((n + 127) / 128, m), 128>>>(
      m, n, k, alpha, a.data, sa, b.data, sb, beta, c.data, Strides{ldd, 1}, result.data, magnitude.data);
  multiply(one, a.data, lda, b.data, ldb, c.data, ldd);
  CHECK(cudaDeviceSynchronize());

  const std::vector<Out> got = c.host();
  const std::vector<double> want = result.host(), terms = magnitude.host();
  for (int row = 0; row < m; ++row) {
    for (int64_t column = 0; column < ldd; ++column) {
      const double x = double(float(got[row * ldd + column]));
      double y = 0, error = 0;
      if (column >= n && (column - column % (16 / sizeof(Out))) < n) continue;  // TMA writes whole 16 bytes
      if (column >= n) {
        y = double(float(before[row * ldd + column]));  // what follows stays as it was
      } else {
        const size_t i = size_t(row) * n + column;
        y = want[i];
        if (integers) {
          y = double(float(Out(float(y))));
        } else {
          error = sum_error<Element>(k, sparse) * terms[i];
          error += rounding_error<Out>(std::fabs(y) + error);
        }
      }
      if (!(std::fabs(x - y) <= error)) {
        std::printf("wrong: %d x %d x %d, integers %d, alpha %g, beta %g: D[%d][%d] is %g, not %g +- %g\n", m, n, k, integers, alpha,
                    beta, row, int(column), x, y, error);
        return false;
      }
    }
  }
  return true;
}

template <class Element, class Result, bool sparse, class Multiply>
bool check_all(const char* name, int count, ptxmma_majorness major_a, ptxmma_majorness major_b, Multiply multiply) {
  std::mt19937 random(count);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < count; ++i) {
    // The first two sizes are a whole number of tiles, and less than one; the sixth is more than the chip computes at a time.
    // Some have few rows or few columns, and are long along k.
    const bool few_rows = i % 4 == 3, few_columns = i % 8 == 6;
    const int m = i == 0 ? 512 : i == 1 ? 1 : i == 5 ? 3000 : between(1, few_rows ? 128 : 700);
    const int n = i == 0 ? 352 : i == 1 ? 8 : i == 5 ? 5000 : between(1, few_columns ? 128 : 1000);
    const int k = i == 0 ? 256 : i == 1 ? 1 : between(1, few_rows || few_columns ? 6000 : 900);
    const bool integers = i % 2 == 0 || std::is_same_v<Element, ptxmma::s8>;
    const float alpha = i % 3 == 0 ? 2 : integers ? 1 : 0.75f, beta = i % 4 < 2 ? 0 : i % 4 == 2 ? -1 : 2;
    if (!check<Element, Result, sparse>({m, n, k, i % 5 == 4, integers, alpha, beta, uint64_t(i)}, major_a, major_b, multiply)) {
      std::printf("%s: FAILED\n", name);
      return false;
    }
  }
  std::printf("%s: %d sizes are right\n", name, count);
  return true;
}

// A chain of products with few rows or columns, each of which begins before the one in front of it has ended: with and without a pause after
// each, `data` has to end alike: an operand of the first product, and the result of the last.
template <class T, class Plan>
bool check_chain(const char* name, const Plan& there, const Plan& back, const DeviceArray<T>& data) {
  std::vector<T> results[2];
  for (const bool pause : {true, false}) {
    fill_normal<<<256, 256>>>(data.data, data.size, 1);
    for (int i = 0; i < 40; ++i) {
      CHECK((i % 2 == 0 ? there : back).launch());
      if (pause) CHECK(cudaDeviceSynchronize());
    }
    results[pause] = data.host();
  }
  const bool same = std::memcmp(results[0].data(), results[1].data(), data.size * sizeof(T)) == 0;
  std::printf("%s: launches in a row %s\n", name, same ? "wait for each other" : "do not wait: WRONG");
  return same;
}
