// A program that multiplies a few rows of f16 by int4 weights, checks the result, and prints the time: main() of w4a16_sm80.cu and w4a16_sm90.cu.
//
// It puts the codes into the order in which lanes read them; ptxmma.quantised.permute does it for arrays of NumPy and PyTorch.
// Small integers make every sum exact, so the result must equal the host's bit for bit.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <ptxmma/mma/f16_f16.cuh>

#include "w4a16_plan.cuh"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  } while (0)

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// The layout of A of mma.m16n8k16: where element i of a lane is.
using A = ptxmma::layout::mma_m16n8k16_a_b16;

// Eight codes of a lane in a word. The conversion makes the low half of register r of code r, and the high half of code r + 4.
uint32_t word_of(const std::vector<int>& codes, int k, int tile, int first, int lane) {
  uint32_t word = 0;
  for (int i = 0; i < 8; ++i) {
    const int column = tile * 16 + A::row(lane, i), depth = first + A::col(lane, i);
    word |= (codes[size_t(column) * k + depth] & 15u) << 4 * (i / 2 + i % 2 * 4);
  }
  return word;
}

template <template <class, class> class Plan>
int run() {
  const int m = 13, n = 8192, k = 8192, group = 128, groups = k / group, launches = 100;
  std::vector<__half> x(size_t(m) * k), y(size_t(m) * n), scale(size_t(n) * groups), scales(scale.size());
  std::vector<int> codes(size_t(n) * k);  // [n][k], -8 to 7
  for (auto& value : x) value = __half(float(std::rand() % 3 - 1));
  for (auto& code : codes) code = std::rand() % 16 - 8;
  for (auto& value : scale) value = __half(float(std::rand() % 2 + 1));

  std::vector<uint32_t> words;  // [n / 16][k / 64][lane][4]
  for (int tile = 0; tile < n / 16; ++tile) {
    for (int first = 0; first < k; first += 64) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int word = 0; word < 4; ++word) words.push_back(word_of(codes, k, tile, first + word * 16, lane));
      }
    }
  }
  for (size_t i = 0; i < scales.size(); ++i) {  // [n / 16][groups][lane / 4][2]
    const size_t column = i / 16 / groups * 16 + A::row(i / 2 % 8 * 4, i % 2 * 2);
    scales[i] = scale[column * groups + i / 16 % groups];
  }

  __half *device_x = to_device(x), *device_y = to_device(y), *device_scales = to_device(scales);
  uint32_t* device_words = to_device(words);
  Plan<ptxmma::f16, ptxmma::s4> plan;
  CHECK(plan.prepare(m, n, k, {device_x, k}, {device_words, device_scales, /* no zero points: */ nullptr, group}, {device_y, n}));
  CHECK(plan.launch());
  CHECK(cudaMemcpy(y.data(), device_y, y.size() * sizeof(__half), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < y.size(); i += 97) {
    const size_t row = i / n, column = i % n;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += float(x[row * k + l]) * codes[column * k + l] * float(scale[column * groups + l / group]);
    if (float(y[i]) != float(__half(sum))) {
      std::printf("wrong: Y[%zu][%zu] is %g, not %g\n", row, column, float(y[i]), float(__half(sum)));
      return EXIT_FAILURE;
    }
  }

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < launches; ++i) CHECK(plan.launch());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::printf("OK, %.1f us (the weights may come from L2)\n", 1e3 * ms / launches);
  CHECK(cudaFree(device_words));
  for (__half* memory : {device_x, device_y, device_scales}) CHECK(cudaFree(memory));
  return EXIT_SUCCESS;
}
