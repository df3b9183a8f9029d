// Holds gemm_sm80 against a product in float64: every combination of types and majornesses, A dense and sparse, random sizes with ragged
// ones, pitches wider than the matrices, alpha and beta. Small integers have to come out exactly, random numbers within a bound.
//
// The argument is the number of sizes for each combination.
#include <random>
#include <type_traits>

#include <ptxmma/cuda/sparse.cuh>

#include "compare.cuh"
#include "gemm_sm80_plan.cuh"

using gemm_sm80::storage;
constexpr ptxmma_majorness K = PTXMMA_MAJORNESS_K, MN = PTXMMA_MAJORNESS_MN;

// Leaves the bits of tf32: the instruction does not read those below.
__global__ void keep_tf32(float* data, size_t size) {
  for (size_t i = threadIdx.x; i < size; i += blockDim.x) data[i] = __uint_as_float(__float_as_uint(data[i]) & 0xffffe000);
}

// Clears two of four neighbours.
template <class T>
__global__ void prune(T* data, size_t size, uint64_t seed) {
  for (size_t i = threadIdx.x; i < size / 4; i += blockDim.x) {
    const int first = random_bits(i, seed) % 4, second = (first + 1 + random_bits(i, seed + 1) % 3) % 4;
    data[4 * i + first] = data[4 * i + second] = T(0.f);
  }
}

template <class Element> struct Kind;
template <> struct Kind<ptxmma::bf16> { using Type = ptxmma::sparse::kind_2_4_bf16; };
template <> struct Kind<ptxmma::f16> { using Type = ptxmma::sparse::kind_2_4_f16; };

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, bool sparse>
bool check(int m, int n, int k, int padding, bool integers, float alpha, float beta, uint64_t seed) {
  using In = storage<Element>;
  using Out = storage<Result>;
  const auto pitch = [&](int width, size_t size) {
    const int unit = sparse ? 32 : 16;  // the compressed rows are half as long
    return int((width * size + unit - 1) / unit + padding) * unit / int(size);
  };
  const int lda = pitch(major_a == K ? k : m, sizeof(In)), ldb = pitch(major_b == K ? k : n, sizeof(In)), ldd = pitch(n, sizeof(Out));
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
  if constexpr (std::is_same_v<Element, ptxmma::tf32>) {
    keep_tf32<<<1, 1024>>>(a.data, a.size);
    keep_tf32<<<1, 1024>>>(b.data, b.size);
  }
  DeviceArray<In> values(sparse ? a.size / 2 : 1);
  DeviceArray<uint32_t> metadata(sparse ? size_t(m) / 16 * ((k + 63) / 64) * 32 : 1);
  if constexpr (sparse) {
    prune<<<1, 1024>>>(a.data, a.size, seed + 3);
    CHECK((ptxmma::sparse::compress<typename Kind<Element>::Type, ptxmma::sparse::mma_sp_m16n8k32_metadata_b16>(
        m, k, a.data, lda, values.data, lda / 2, metadata.data, nullptr)));
  }
  fill_integers<<<256, 256>>>(c.data, c.size, seed + 2, 3);
  const std::vector<Out> before = c.host();
  const Strides sa = major_a == K ? Strides{lda, 1} : Strides{1, lda}, sb = major_b == K ? Strides{1, ldb} : Strides{ldb, 1};
  product<<<dim3((n + 127) / 128, m), 128>>>(
      m, n, k, alpha, a.data, sa, b.data, sb, beta, c.data, Strides{ldd, 1}, result.data, magnitude.data);
  gemm_sm80::Plan<Element, Result, major_a, major_b, sparse> plan;
  const In* first = sparse ? values.data : a.data;
  CHECK(plan.prepare(m, n, k, alpha, {first, sparse ? lda / 2 : lda}, {b.data, ldb}, beta, {c.data, ldd}, {c.data, ldd}, metadata.data));
  CHECK(plan.launch());
  CHECK(cudaDeviceSynchronize());

  const std::vector<Out> got = c.host();
  const std::vector<double> want = result.host(), terms = magnitude.host();
  for (int row = 0; row < m; ++row) {
    for (int64_t column = 0; column < ldd; ++column) {
      const double x = double(float(got[row * ldd + column]));
      double y = 0, error = 0;
      if (column >= n && column - column % (8 / int(sizeof(Out))) < n) continue;  // units of 8 bytes are written whole
      if (column >= n) {
        y = double(float(before[row * ldd + column]));  // what follows stays as it was
      } else {
        const size_t i = size_t(row) * n + column;
        y = want[i];
        if (integers) {
          y = double(float(Out(float(y))));
        } else {
          error = sum_error<Element>(k) * terms[i];
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

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, bool sparse = false>
bool check_all(const char* name, int count) {
  std::mt19937 random(count);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < count; ++i) {
    // The first two sizes are a whole number of tiles, and less than one; the sixth is more than the chip computes at a time.
    int m = i == 0 ? 512 : i == 1 ? 1 : i == 5 ? 3000 : between(1, 700), k = i == 0 ? 256 : i == 1 ? 1 : between(1, 900);
    const int n = i == 0 ? 512 : i == 1 ? 8 : i == 5 ? 5000 : between(1, 1000);
    if (sparse) {
      m = (m + 15) / 16 * 16;
      k = (k + 31) / 32 * 32;
    }
    const bool integers = i % 2 == 0 || std::is_same_v<Element, ptxmma::s8>;
    const float alpha = i % 3 == 0 ? 2 : integers ? 1 : 0.75f, beta = i % 4 < 2 ? 0 : i % 4 == 2 ? -1 : 2;
    if (!check<Element, Result, major_a, major_b, sparse>(m, n, k, i % 5 == 4, integers, alpha, beta, i)) {
      std::printf("%s: FAILED\n", name);
      return false;
    }
  }
  std::printf("%s: %d sizes are right\n", name, count);
  return true;
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
      check_all<tf32, f32, K, K>("tf32 to f32", count),
      check_all<s8, s32, K, K>("s8 to s32", count),
      check_all<bf16, bf16, K, K, true>("sparse bf16, B column-major", count),
      check_all<bf16, bf16, K, MN, true>("sparse bf16, B row-major", count),
      check_all<f16, f16, K, K, true>("sparse f16, B column-major", count),
      check_all<f16, f16, K, MN, true>("sparse f16, B row-major", count),
  };
  for (const bool one : right) {
    if (!one) return EXIT_FAILURE;
  }
  std::printf("all right\n");
  return EXIT_SUCCESS;
}
