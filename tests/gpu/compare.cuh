// How checks and benchmarks of the example kernels judge a product: the error that it may have, and a comparison with float64 that takes milliseconds.
#pragma once

#include <algorithm>
#include <type_traits>

#include <ptxmma/cuda/storage.cuh>

#include "numbers.cuh"

// How far a sum of k products may be from the exact one, as a fraction of the sum of their magnitudes. An instruction sums its products and
// the accumulator after cutting each off, relative to the largest, below 2^-23, or 2^-13 (8-bit floating point on Hopper).
// Where half of A are zeros, it takes twice as many columns at a time.
template <class Element>
double sum_error(int k, bool sparse = false) {
  if (std::is_same_v<Element, ptxmma::s8>) return 0;
  const bool fp8 = std::is_same_v<Element, ptxmma::e4m3>;
  const int depth = fp8 ? 32 : std::is_same_v<Element, ptxmma::tf32> ? 8 : 16, columns = sparse ? 2 * depth : depth;
  return (k + columns - 1) / columns * (depth + 1) * (fp8 ? 0x1p-13 : 0x1p-23);
}

// Half a unit in the last place of a number of this magnitude when it is written.
template <class Out>
double rounding_error(double magnitude) {
  if (std::is_same_v<Out, int32_t>) return 0;
  if (std::is_same_v<Out, __nv_bfloat16>) return magnitude * 0x1p-8;
  if (std::is_same_v<Out, __half>) return std::max(magnitude * 0x1p-11, 0x1p-25);  // near zero f16 has steps of 2^-24
  return magnitude * 0x1p-22;                                                      // alpha * sum + beta * c in float
}

template <class T>
__device__ double exactly(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return static_cast<float>(x);
  }
}

template <class T>
struct RowMajor {
  const T* data;
  int64_t pitch;
  __device__ double operator()(int row, int column) const { return exactly(data[row * pitch + column]); }
};

struct Difference {
  int count, row, column;  // of wrong elements; one of them
  double got, want;
};

// One element of each square of `step` rows and columns of D, at random, by a warp. `a` is called with a row and an index along k, `b` with a
// column and that index.
template <class A, class B, class Out>
__global__ void compare(int m, int n, int k, int step, A a, B b, RowMajor<Out> d, Difference* difference) {
  const int lane = threadIdx.x % 32, across = (n + step - 1) / step, down = (m + step - 1) / step;
  const int square = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (square >= across * down) return;
  const int first_row = square / across * step, first_column = square % across * step;
  const uint64_t bits = random_bits(square, 0);
  const int row = first_row + static_cast<int>((bits & 0xffff) % min(step, m - first_row));
  const int column = first_column + static_cast<int>((bits >> 16 & 0xffff) % min(step, n - first_column));
  double sum = 0;
  for (int i = lane; i < k; i += 32) sum += a(row, i) * b(column, i);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  const double got = d(row, column), want = exactly(static_cast<Out>(static_cast<float>(sum)));
  if (lane == 0 && got != want && atomicAdd(&difference->count, 1) == 0) {
    difference->row = row;
    difference->column = column;
    difference->got = got;
    difference->want = want;
  }
}

// Ends the program if D, as `launch` leaves it, is not exactly A * B: the elements are integers so small that no sum of them is rounded.
template <class A, class B, class Out, class Launch>
void expect_product(int m, int n, int k, A a, B b, const DeviceArray<Out>& d, int64_t pitch, Launch launch) {
  constexpr double affordable = 0x1p32;  // multiplications
  int step = 1;
  while (double((m + step - 1) / step) * ((n + step - 1) / step) * k > affordable) step *= 2;
  const int squares = ((m + step - 1) / step) * ((n + step - 1) / step);
  DeviceArray<Difference> difference(1);
  CHECK(cudaMemset(difference.data, 0, sizeof(Difference)));
  CHECK(cudaMemset(d.data, 0xff, d.size * sizeof(Out)));
  launch(nullptr);
  compare<<<(squares + 7) / 8, 256>>>(m, n, k, step, a, b, RowMajor<Out>{d.data, pitch}, difference.data);
  CHECK(cudaGetLastError());
  const Difference found = difference.host()[0];
  if (found.count == 0) return;
  std::fprintf(stderr, "%d x %d x %d is wrong: %d of %d elements differ; D[%d][%d] is %g, not %g\n", m, n, k, found.count, squares, found.row,
               found.column, found.got, found.want);
  std::exit(EXIT_FAILURE);
}
