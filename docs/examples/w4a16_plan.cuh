// What the host's sides of w4a16_sm80.cuh and w4a16_sm90.cuh share: the arguments of a product, and its launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "prepared_kernel.cuh"
#include "w4a16.cuh"

namespace w4a16 {

template <class T>
struct Matrix {
  T* data;    // a multiple of 16 bytes
  int pitch;  // elements from one row to the next; of X, a multiple of 16 bytes
};

// The weights as ptxmma.quantised.permute and permute_groups make them, of W's transpose, for A of mma m16n8k16. Addresses are multiples of 16 bytes.
template <class Input>
struct Weights {
  const uint32_t* codes;  // 8 in a word
  const Input* scales;
  const uint16_t* zeros;  // of uint4: what is subtracted from a code, 0 to 15
  int group;              // codes along k that share a scale: 32, 64, 128 or a larger power of two; 0: all

  // m is 1 to 64, n a multiple of 16, k a multiple of 64.
  bool legal(int m, int n, int k) const {
    const bool power = group >= 0 && (group & (group - 1)) == 0;
    return m >= 1 && m <= 64 && n >= 16 && n % 16 == 0 && k >= LOAD && k % LOAD == 0 && power && (group == 0 || group >= 32);
  }

  // A group is 2^group_bits along k: with 31, all of it.
  int group_bits() const {
    for (int bits = 5; bits < 31; ++bits) {
      if (group == 1 << bits) return bits;
    }
    return 31;
  }
};

// A product that is prepared once, for matrices at these addresses, and may be launched often: one launch at a time, since it has the memory in
// which blocks exchange sums.
//
// What a launch writes is there for the next one. On Hopper and later, its copies of weights begin before the kernel in front of it ends: they must
// not be that kernel's results, if it lets others begin before it has ended.
template <class Arguments>
class Launch : public examples::PreparedKernel<Arguments> {
 public:
  ~Launch() {
    cudaFree(arguments_.parts);
    cudaFree(arguments_.ready);
  }

 protected:
  using Base = examples::PreparedKernel<Arguments>;
  using Base::arguments_, Base::kernel_, Base::threads_, Base::shared_, Base::blocks_, Base::early_;

  // Chooses the kernel of a product P, whose blocks need so many bytes of shared memory. They take more if need be, so that a multiprocessor has no
  // room for more blocks than `most`: those of the next launch would begin there early, and leave the rest spread unevenly.
  template <class P>
  cudaError_t use(void (*kernel)(Arguments), int shared, int most) {
    kernel_ = kernel;
    threads_ = P::threads;
    int device = 0, multiprocessors = 0, resident = 0, major = 0, room = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    shared_ = std::max(shared, room / (most + 1));
    if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_);
    if (status == cudaSuccess) status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads_, shared_);
    if (status == cudaSuccess && resident == 0) status = cudaErrorInvalidConfiguration;
    if (status != cudaSuccess) return status;
    const int units = ceil_div(arguments_.n, P::columns) * ceil_div(arguments_.k, P::depth);
    // With as many units for each block, as far as they go: the last block of more would take as long, and runs now often end with a tile.
    blocks_ = ceil_div(units, ceil_div(units, multiprocessors * resident));
    early_ = major >= 9;
    status = cudaMalloc(&arguments_.parts, size_t(blocks_) * P::columns * P::rows * sizeof(float));
    const size_t flags = size_t(blocks_) * P::warps * sizeof(int);
    if (status == cudaSuccess) status = cudaMalloc(&arguments_.ready, flags);
    if (status == cudaSuccess) status = cudaMemset(arguments_.ready, 0, flags);
    return status;
  }
};

}  // namespace w4a16
