// The softmax of attention_sm90.cuh. It turns the scores of one block of keys after the other into probabilities, relative to the largest
// score so far; what was summed before is multiplied with a factor when a larger one comes.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace attention_sm90 {

// Two neighbours in a row, in one register.
__device__ inline uint32_t pair(__nv_bfloat16, float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(both);
}
__device__ inline uint32_t pair(__half, float x, float y) {
  const __half2 both = __floats2half2_rn(x, y);
  return reinterpret_cast<const uint32_t&>(both);
}

// A thread has elements of two rows of an accumulator: one value for each.
using PerRow = float[2];
template <class Fragment>
__device__ constexpr int row_of(int i) {
  return Fragment::row(0, i) != 0;
}

// 2 to the power of x, to a relative error of 2^-22; what is below 2^-126 becomes 0.
__device__ __forceinline__ float exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Turns scores into probabilities, as far as they are known, and adds them to the totals of this thread. Sums of earlier blocks are to be
// multiplied with `factors`. If `masked`, a score may be minus infinity, and all that a row has seen so far. `scale` is that of the scores,
// times log2(e).
template <class Scores, bool masked>
__device__ __forceinline__ void soften(
    typename Scores::type& scores, PerRow& largest, PerRow& totals, PerRow& factors, float scale) {
  PerRow before = {largest[0], largest[1]}, base;
#pragma unroll
  for (int i = 0; i < Scores::elements; ++i) largest[row_of<Scores>(i)] = fmaxf(largest[row_of<Scores>(i)], scores[i]);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int lanes = 1; lanes <= 2; lanes *= 2) largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffff, largest[r], lanes));
    base[r] = masked && largest[r] == -INFINITY ? 0 : largest[r] * scale;  // a row that sees no key yet
    factors[r] = exp2(before[r] * scale - base[r]);
    totals[r] *= factors[r];
  }
#pragma unroll
  for (int i = 0; i < Scores::elements; ++i) {
    scores[i] = exp2(scores[i] * scale - base[row_of<Scores>(i)]);
    totals[row_of<Scores>(i)] += scores[i];
  }
}

// The natural logarithm of the sum of the exponentials of scaled scores; minus infinity of a row that sees no key. `scale` is times log2(e).
__device__ __forceinline__ float log_of_sum(float largest, float total, float scale) {
  return total == 0 ? -INFINITY : (largest * scale + log2f(total)) * static_cast<float>(M_LN2);
}

// What the sums of a row are to be multiplied with at the end: 1 over the totals of all four threads that have elements of it.
__device__ __forceinline__ void invert(PerRow& totals, PerRow& inverse) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int lanes = 1; lanes <= 2; lanes *= 2) totals[r] += __shfl_xor_sync(0xffffffff, totals[r], lanes);
    inverse[r] = totals[r] == 0 ? 0 : __fdividef(1, totals[r]);  // 0: a row that sees no key
  }
}

}  // namespace attention_sm90
