// What the checks and benchmarks of the example kernels share: memory, random numbers, and a product in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const auto status_ = (call);                                                                      \
    if (static_cast<int>(status_) != 0) {                                                             \
      std::fprintf(stderr, "%s:%d: error %d: %s\n", __FILE__, __LINE__, static_cast<int>(status_), #call); \
      std::exit(EXIT_FAILURE);                                                                        \
    }                                                                                                 \
  } while (0)

template <class T>
struct DeviceArray {
  T* data = nullptr;
  size_t size;
  explicit DeviceArray(size_t size) : size(size) { CHECK(cudaMalloc(&data, size * sizeof(T))); }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  std::vector<T> host() const {
    std::vector<T> copy(size);
    CHECK(cudaMemcpy(copy.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }
};

__device__ inline uint64_t random_bits(uint64_t i, uint64_t seed) {  // splitmix64
  uint64_t x = i * 0x9e3779b97f4a7c15 + seed * 0xd1b54a32d192ed03 + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Standard normal numbers; of integers, 32 times as large.
template <class T>
__global__ void fill_normal(T* data, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) {
    const uint64_t bits = random_bits(i, seed);
    const float u = ((bits & 0xffffff) + 1) * 0x1p-24f, v = (bits >> 40) * 0x1p-24f;
    const float x = std::sqrt(-2 * std::log(u)) * cospif(2 * v);
    if constexpr (std::is_integral<T>::value) {
      data[i] = static_cast<T>(fminf(fmaxf(rintf(32 * x), -127), 127));
    } else {
      data[i] = static_cast<T>(x);
    }
  }
}

// Integers from -largest to largest.
template <class T>
__global__ void fill_integers(T* data, size_t size, uint64_t seed, int largest) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) {
    data[i] = static_cast<T>(static_cast<float>(static_cast<int>(random_bits(i, seed) % (2 * largest + 1)) - largest));
  }
}

// Makes two of each four neighbours zeros, at random.
template <class T>
__global__ void drop_half(T* data, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size / 4; i += size_t(gridDim.x) * blockDim.x) {
    const uint64_t bits = random_bits(i, seed);
    const int first = bits % 4, second = (first + 1 + bits / 4 % 3) % 4;
    data[4 * i + first] = data[4 * i + second] = static_cast<T>(0.0f);
  }
}

// Where the element (row, column) of a matrix lies.
struct Strides {
  int64_t row, column;
};

// result = alpha * A * B + beta * C, and the sum of the magnitudes of its terms, both m x n without gaps.
template <class In, class Out>
__global__ void product(int m, int n, int k, double alpha, const In* a, Strides sa, const In* b, Strides sb, double beta, const Out* c,
                        Strides sc, double* result, double* magnitude) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= n) return;
  double sum = 0, terms = 0;
  for (int i = 0; i < k; ++i) {
    const double x = static_cast<double>(static_cast<float>(a[row * sa.row + i * sa.column]));
    const double y = static_cast<double>(static_cast<float>(b[i * sb.row + column * sb.column]));
    sum += x * y;
    terms += std::fabs(x * y);
  }
  const double old = beta == 0 ? 0 : beta * static_cast<double>(static_cast<float>(c[row * sc.row + column * sc.column]));
  result[size_t(row) * n + column] = alpha * sum + old;
  magnitude[size_t(row) * n + column] = std::fabs(alpha) * terms + std::fabs(old);
}
