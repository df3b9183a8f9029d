// The host's side of w4a16_sm80.cuh: launches the kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "w4a16_sm80.cuh"

namespace w4a16_sm80 {

template <class T>
struct Matrix {
  T* data;    // a multiple of 16 bytes
  int pitch;  // elements from one row to the next; of X, a multiple of 16 bytes
};

// The weights as ptxmma.quantised.permute and permute_groups make them, of W's transpose, for A of mma m16n8k16.
template <class Input>
struct Weights {
  const uint32_t* codes;  // 8 in a word
  const Input* scales;
  const uint16_t* zeros;  // of uint4: what is subtracted from a code, 0 to 15
  int group;              // codes along k that share a scale: 32, 64, 128 or a larger power of two; 0: all
};

// A product that is prepared once, for matrices at these addresses, and may be launched often: one launch at a time, since a Plan has the memory in
// which blocks exchange sums.
template <class Element, class Code>
class Plan {
 public:
  using Input = storage<Element>;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    cudaFree(arguments_.parts);
    cudaFree(arguments_.ready);
  }

  // m is 1 to 64, n a multiple of 16, k a multiple of 64. Once, for a Plan.
  cudaError_t prepare(int m, int n, int k, Matrix<const Input> x, const Weights<Input>& w, Matrix<Input> y) {
    const bool power = w.group >= 0 && (w.group & (w.group - 1)) == 0;
    if (m < 1 || m > 64 || n < 16 || n % 16 != 0 || k < LOAD || k % LOAD != 0 || !power || (w.group != 0 && w.group < 32)) return cudaErrorInvalidValue;
    int group_bits = 31;  // of all of k
    for (int bits = 5; bits < 31; ++bits) {
      if (w.group == 1 << bits) group_bits = bits;
    }
    arguments_ = {x.data, reinterpret_cast<const uint4*>(w.codes), reinterpret_cast<const uint4*>(w.scales), reinterpret_cast<const uint4*>(w.zeros),
                  y.data, nullptr, nullptr, m, n, k, x.pitch, y.pitch, group_bits};
    return w.group == 32 ? prepare_span<32>() : w.group == 64 ? prepare_span<64>() : prepare_span<128>();
  }

  // What this launch writes is there for the next one. On Hopper and later, its copies of weights begin before the kernel in front of it ends: they
  // must not be that kernel's results, if it lets others begin before it has ended.
  cudaError_t launch(cudaStream_t stream = nullptr) const {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks_;
    config.blockDim = threads_;
    config.dynamicSmemBytes = shared_;
    config.stream = stream;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = may_overlap_ ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel_, arguments_);
  }

 private:
  // Few rows: few registers for sums, and more columns for a warp. The shapes fit twice into a multiprocessor of 228 KiB, and once into
  // the smallest; but for 32 rows, the one that is faster does not with small groups.
  template <int Span>
  cudaError_t prepare_span() {
    if (arguments_.m <= 8) return use_small<Span, Shape<8, 4, 2, 2, 4>>();
    if (arguments_.m <= 16) return use_small<Span, Shape<16, 4, 2, 2, 3>>();
    if (arguments_.m <= 32) {
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
    kernel_ = kernel<P>;
    threads_ = P::threads;
    shared_ = shared<P>;
    int device = 0, multiprocessors = 0, resident = 0, major = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_);
    if (status == cudaSuccess) status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel_, threads_, shared_);
    if (status == cudaSuccess && resident == 0) status = cudaErrorInvalidConfiguration;
    if (status != cudaSuccess) return status;
    const int units = ceil_div(arguments_.n, P::columns) * ceil_div(arguments_.k, P::deep * STEP);
    blocks_ = std::min(units, multiprocessors * std::min(resident, PER_MULTIPROCESSOR));
    may_overlap_ = major >= 9;
    status = cudaMalloc(&arguments_.parts, size_t(blocks_) * P::columns * P::rows * sizeof(float));
    if (status == cudaSuccess) status = cudaMalloc(&arguments_.ready, blocks_ * sizeof(int));
    if (status == cudaSuccess) status = cudaMemset(arguments_.ready, 0, blocks_ * sizeof(int));
    return status;
  }

  Arguments<Input> arguments_ = {};
  void (*kernel_)(Arguments<Input>) = nullptr;
  int threads_ = 0, shared_ = 0, blocks_ = 0;
  bool may_overlap_ = false;
};

}  // namespace w4a16_sm80
