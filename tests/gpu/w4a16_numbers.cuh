// What the checks and benchmarks of a few rows by 4-bit weights know of their numbers.
#pragma once

#include <cstdint>
#include <type_traits>

#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/mma/f16_f16.cuh>

template <class Code>
__host__ __device__ double value(uint32_t code);
template <>
__host__ __device__ inline double value<ptxmma::s4>(uint32_t code) { return int(code ^ 8) - 8; }
template <>
__host__ __device__ inline double value<ptxmma::u4>(uint32_t code) { return code; }
template <>
__host__ __device__ inline double value<ptxmma::e2m1>(uint32_t code) {
  constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * magnitudes[code & 7];
}

// The place of a column's scale or zero point: [n / 16][groups][8][2].
__host__ __device__ inline size_t place_in_groups(size_t column, size_t group, size_t groups) {
  return (column / 16 * groups + group) * 16 + column % 8 * 2 + column % 16 / 8;
}

// A word of eight codes, and where in it a code begins: words are [n / 16][k / 64][lane][4], and the even elements of a lane lie in the low half.
struct CodePlace {
  size_t word;
  int bit;
  __host__ __device__ CodePlace(size_t column, size_t i, size_t k) {
    using Layout = ptxmma::layout::mma_m16n8k16_a_b16;
    const uint32_t lane = Layout::lane(column % 16, i % 16), element = Layout::element(column % 16, i % 16);
    word = ((column / 16 * (k / 64) + i / 64) * 32 + lane) * 4 + i % 64 / 16;
    bit = 4 * (element / 2 + element % 2 * 4);
  }
};

// Weights as the kernels take them, in float64.
template <class Code, class T>
struct PermutedWeights {
  const uint32_t* codes;
  const T* scales;
  const uint16_t* zeros;
  int k, group;
  __device__ double operator()(int column, int i) const {
    const CodePlace place(column, i, k);
    const size_t of_group = place_in_groups(column, i / group, (k + group - 1) / group);
    const double zero = std::is_same_v<Code, ptxmma::u4> ? zeros[of_group] : 0;
    return (value<Code>(codes[place.word] >> place.bit & 15) - zero) * static_cast<double>(static_cast<float>(scales[of_group]));
  }
};
