// The host's side of w4a16_sm80.cuh: launches the kernel.
#pragma once

#include "w4a16_plan.cuh"
#include "w4a16_sm80.cuh"

namespace w4a16_sm80 {

template <class Element, class Code>
class Plan : public Launch<Arguments<storage<Element>>> {
 public:
  using Input = storage<Element>;

  // Once, for a Plan.
  cudaError_t prepare(int m, int n, int k, Matrix<const Input> x, const Weights<Input>& w, Matrix<Input> y) {
    if (!w.legal(m, n, k)) return cudaErrorInvalidValue;
    this->arguments_ = {x.data, reinterpret_cast<const uint4*>(w.codes), reinterpret_cast<const uint4*>(w.scales), reinterpret_cast<const uint4*>(w.zeros),
                        y.data, nullptr, nullptr, m, n, k, x.pitch, y.pitch, w.group_bits()};
    return w.group == 32 ? prepare_span<32>() : w.group == 64 ? prepare_span<64>() : prepare_span<128>();
  }

 private:
  // Few rows: few registers for sums, and more columns for a warp. The shapes fit twice into a multiprocessor of 228 KiB, and once into
  // the smallest; but for 32 rows, the one that is faster does not with small groups.
  template <int Span>
  cudaError_t prepare_span() {
    if (this->arguments_.m <= 8) return use_small<Span, Shape<8, 4, 2, 2, 4>>();
    if (this->arguments_.m <= 16) return use_small<Span, Shape<16, 4, 2, 2, 3>>();
    if (this->arguments_.m <= 32) {
      using Fast = Product<Element, Code, Span, Shape<32, 4, 2, 2, 3>>;
      int device = 0, limit = 0;
      cudaError_t status = cudaGetDevice(&device);
      if (status == cudaSuccess) status = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      if (status != cudaSuccess) return status;
      return shared<Fast> <= limit ? use<Fast>() : use_small<Span, Shape<32, 4, 4, 1, 3>>();
    }
    return use_small<Span, Shape<64, 2, 4, 1, 3>>();
  }

  template <class P>
  static constexpr int shared = P::stages * sizeof(typename P::Stage);  // bytes

  // Uses a product that each chip from Ampere on has the shared memory for: sm_86 has least.
  template <int Span, class Shape>
  cudaError_t use_small() {
    using P = Product<Element, Code, Span, Shape>;
    static_assert(shared<P> <= 99 * 1024, "the stages fit into the shared memory of sm_86");
    return use<P>();
  }

  template <class P>
  cudaError_t use() {
    return Launch<Arguments<Input>>::template use<P>(kernel<P>, shared<P>, PER_MULTIPROCESSOR);
  }
};

}  // namespace w4a16_sm80
