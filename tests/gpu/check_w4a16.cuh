// Holds the kernels of a few rows by 4-bit weights against a product in float64: each type of X and of codes, random sizes with ragged
// ones, pitches wider than the matrices, each size of a group. Small integers have to come out exactly, random numbers within a bound, and a
// second launch the same bits.
//
// The weights are put into the order of lanes here, by the layout of the fragment and the order of codes that dequantise.cuh states: it is
// independent of ptxmma.quantised.
#pragma once

#include <cstring>
#include <random>

#include "numbers.cuh"
#include "w4a16_numbers.cuh"
#include "w4a16_plan.cuh"

using w4a16::storage;

__global__ void fill_codes(uint8_t* codes, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) codes[i] = random_bits(i, seed) % 16;
}

// Codes are [n][k], one in a byte.
__global__ void permute(int n, int k, const uint8_t* codes, uint32_t* words) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size_t(n) * k; i += size_t(gridDim.x) * blockDim.x) {
    const CodePlace place(i / k, i % k, k);
    atomicOr(words + place.word, uint32_t(codes[i]) << place.bit);
  }
}

// From [n][groups].
template <class T>
__global__ void permute_groups(int n, int groups, const T* values, T* permuted) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size_t(n) * groups; i += size_t(gridDim.x) * blockDim.x) {
    permuted[place_in_groups(i / groups, i % groups, groups)] = values[i];
  }
}

template <class Code, class T>
__global__ void reference(int n, int k, int group, const T* x, int pitch, const uint8_t* codes, const T* scales, const uint16_t* zeros, double* y,
                          double* magnitude) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, groups = (k + group - 1) / group;
  if (column >= n) return;
  double sum = 0, terms = 0;
  for (int i = 0; i < k; ++i) {
    const size_t of_group = size_t(column) * groups + i / group;
    const double weight = value<Code>(codes[size_t(column) * k + i]) - (std::is_same<Code, ptxmma::u4>::value ? int(zeros[of_group]) : 0);
    const double term = double(float(x[size_t(row) * pitch + i])) * weight * double(float(scales[of_group]));
    sum += term;
    terms += std::fabs(term);
  }
  y[size_t(row) * n + column] = sum;
  magnitude[size_t(row) * n + column] = terms;
}

template <template <class, class> class Plan, class Element, class Code>
bool check(int m, int n, int k, int group, int padding, bool integers, uint64_t seed) {
  using T = storage<Element>;
  const int pitch = k + padding * 8, pitch_y = n + padding, size = group == 0 ? k : group, groups = (k + size - 1) / size;
  DeviceArray<T> x(size_t(m) * pitch), y(size_t(m) * pitch_y), scales(size_t(n) * groups), permuted_scales(scales.size);
  DeviceArray<uint8_t> codes(size_t(n) * k);
  DeviceArray<uint32_t> words(codes.size / 8);
  DeviceArray<uint16_t> zeros(scales.size), permuted_zeros(scales.size);
  DeviceArray<double> result(size_t(m) * n), magnitude(size_t(m) * n);
  fill_codes<<<256, 256>>>(codes.data, codes.size, seed);
  if (integers) {
    fill_integers<<<256, 256>>>(x.data, x.size, seed + 1, 1);
    fill_integers<<<256, 256>>>(scales.data, scales.size, seed + 2, 2);
  } else {
    fill_normal<<<256, 256>>>(x.data, x.size, seed + 1);
    fill_normal<<<256, 256>>>(scales.data, scales.size, seed + 2);
  }
  std::vector<uint16_t> integers16(zeros.size);
  for (size_t i = 0; i < zeros.size; ++i) integers16[i] = (i * 7 + seed) % 16;
  CHECK(cudaMemcpy(zeros.data, integers16.data(), zeros.size * sizeof(uint16_t), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(words.data, 0, words.size * sizeof(uint32_t)));
  permute<<<256, 256>>>(n, k, codes.data, words.data);
  permute_groups<<<256, 256>>>(n, groups, scales.data, permuted_scales.data);
  permute_groups<<<256, 256>>>(n, groups, zeros.data, permuted_zeros.data);
  reference<Code><<<dim3((n + 127) / 128, m), 128>>>(n, k, size, x.data, pitch, codes.data, scales.data, zeros.data, result.data, magnitude.data);
  CHECK(cudaMemset(y.data, 0xff, y.size * sizeof(T)));
  const std::vector<T> before = y.host();

  Plan<Element, Code> plan;
  CHECK(plan.prepare(m, n, k, {x.data, pitch}, {words.data, permuted_scales.data, permuted_zeros.data, group}, {y.data, pitch_y}));
  CHECK(plan.launch());
  CHECK(cudaDeviceSynchronize());
  const std::vector<T> got = y.host();
  for (int i = 0; i < 3; ++i) CHECK(plan.launch());
  CHECK(cudaDeviceSynchronize());
  if (std::memcmp(got.data(), y.host().data(), got.size() * sizeof(T)) != 0) {
    std::printf("wrong: %d x %d x %d, group %d: another launch gives another result\n", m, n, k, group);
    return false;
  }
  const std::vector<double> want = result.host(), terms = magnitude.host();
  const double unit = std::is_same<T, __half>::value ? 0x1p-11 : 0x1p-8;  // half of the last place, as a fraction
  const double steps = (k + 15) / 16 * 17 + 2. * groups + 600;            // sums in f32, each cut off or rounded below 2^-23
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < pitch_y; ++column) {
      const size_t i = size_t(row) * pitch_y + column, j = size_t(row) * n + column;
      if (column >= n) {
        if (std::memcmp(&got[i], &before[i], sizeof(T)) == 0) continue;
        std::printf("wrong: %d x %d x %d: wrote beyond Y[%d]\n", m, n, k, row);
        return false;
      }
      const double sum_error = integers ? 0 : steps * 0x1p-23 * terms[j];
      const double exact = integers ? double(float(T(float(want[j])))) : want[j];
      const double error = integers ? 0 : sum_error + unit * (std::fabs(exact) + sum_error) + 0x1p-24;
      if (!(std::fabs(double(float(got[i])) - exact) <= error)) {
        std::printf("wrong: %d x %d x %d, group %d, integers %d: Y[%d][%d] is %g, not %g +- %g\n", m, n, k, group, integers, row, column,
                    double(float(got[i])), exact, error);
        return false;
      }
    }
  }
  return true;
}

template <template <class, class> class Plan, class Element, class Code>
bool check_all(const char* name, int count) {
  std::mt19937 random(count);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int rows[] = {1, 8, 16, 32, 64, 13, 5, 27, 50}, groups[] = {128, 64, 32, 0, 256};
  for (int i = 0; i < count; ++i) {
    // Less than a tile, a whole number of tiles, more than the chip computes at a time; then random ones.
    const int m = i < 9 ? rows[i] : between(1, 64), n = i == 0 ? 16 : i == 1 ? 4096 : i == 2 ? 20000 : 16 * between(1, 300);
    const int k = i == 0 ? 64 : i == 1 ? 4096 : i == 2 ? 320 : 64 * between(1, 80);
    if (!check<Plan, Element, Code>(m, n, k, groups[i % 5], i % 3, i % 2 == 0, i)) {
      std::printf("%s: FAILED\n", name);
      return false;
    }
  }
  std::printf("%s: %d sizes are right\n", name, count);
  return true;
}

// The argument of the program is the number of sizes for each combination.
template <template <class, class> class Plan>
int check_types(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 20;
  using namespace ptxmma;
  const bool right[] = {
      check_all<Plan, f16, s4>("f16, int4", count),
      check_all<Plan, bf16, s4>("bf16, int4", count),
      check_all<Plan, f16, e2m1>("f16, e2m1", count),
      check_all<Plan, bf16, e2m1>("bf16, e2m1", count),
      check_all<Plan, f16, u4>("f16, uint4 with zero points", count),
      check_all<Plan, bf16, u4>("bf16, uint4 with zero points", count),
  };
  for (const bool one : right) {
    if (!one) return EXIT_FAILURE;
  }
  std::printf("all right\n");
  return EXIT_SUCCESS;
}
