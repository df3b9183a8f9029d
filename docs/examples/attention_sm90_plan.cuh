// The host's side of attention_sm90.cuh: describes the tensors to TMA, chooses the order of the tiles, launches the kernel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/tensor_map.cuh>

#include "attention_sm90.cuh"

namespace attention_sm90 {

// Rows of 64 or 128 elements. Strides count elements from one row, head or batch to the next.
template <class T>
struct Tensor {
  T* data;  // a multiple of 16 bytes, as are the strides
  int64_t row, head, batch;
};

// A tensor as TMA sees it, of which it moves boxes of a tile.
template <class Tile, class T>
cudaError_t describe(CUtensorMap& map, Tensor<T> tensor, int rows, int heads, int batch) {
  constexpr bool k_major = Tile::majorness == K_MAJOR;
  const uint64_t counts[] = {uint64_t(heads), uint64_t(batch)}, strides[] = {tensor.head * sizeof(T), tensor.batch * sizeof(T)};
  return ptxmma::tensor_map_of<Tile>(k_major ? rows : Tile::x, k_major ? Tile::k : rows, tensor.row * sizeof(T), counts, strides,
                                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
      .encode(&map, tensor.data);
}

// An operation that is prepared once, for tensors at these addresses, and may be launched often.
template <class Element, bool causal, int head = 128>
class Plan {
  using Kernel = Attention<Element, causal, head>;
  using Type = typename Kernel::Type;

 public:
  // Q and O have `heads` heads of `rows` rows; K and V have `key_heads`, which divides `heads`, of `keys` rows, at least one. `scale` is
  // positive. `counter` is a 0 on the device; launches that may run at the same time each need their own. `logarithms`, if given, is
  // [batch][head][row]: the natural logarithm of the sum of the exponentials of a row's scaled scores.
  cudaError_t prepare(int batch, int heads, int key_heads, int rows, int keys, float scale, Tensor<const Type> q, Tensor<const Type> k,
                      Tensor<const Type> v, Tensor<Type> o, int* counter, float* logarithms = nullptr) {
    int device = 0, multiprocessors = 0, cache = 0;
    for (const cudaError_t status :
         {cudaGetDevice(&device), cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device),
          describe<typename Kernel::Q>(arguments_.q, q, rows, heads, batch),
          describe<typename Kernel::K>(arguments_.k, k, keys, key_heads, batch),
          describe<typename Kernel::V>(arguments_.v, v, keys, key_heads, batch),
          describe<typename Kernel::Q>(arguments_.o, o, rows, heads, batch),
          cudaFuncSetAttribute(kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(typename Kernel::Shared))}) {
      if (status != cudaSuccess) return status;
    }
    arguments_.batch = batch;
    arguments_.heads = heads;
    arguments_.heads_per_key = heads / key_heads;
    arguments_.rows = rows;
    arguments_.keys = keys;
    const int64_t bytes = int64_t(keys) * 2 * head * sizeof(Type);  // of K and V of a head, which should fill half of L2
    arguments_.together = std::min<int64_t>(int64_t(heads) * batch, std::max<int64_t>(1, cache / 2 / bytes) * arguments_.heads_per_key);
    arguments_.scale = scale * static_cast<float>(M_LOG2E);
    arguments_.logarithms = logarithms;
    arguments_.next = counter;
    blocks_ = std::min(multiprocessors, ceil_div(rows, Kernel::rows) * heads * batch);
    return cudaSuccess;
  }

  cudaError_t launch(cudaStream_t stream = nullptr) const {
    kernel<Kernel><<<blocks_, (1 + CONSUMERS) * WARPGROUP, sizeof(typename Kernel::Shared), stream>>>(arguments_);
    return cudaGetLastError();
  }

 private:
  Arguments arguments_;
  int blocks_ = 0;
};

}  // namespace attention_sm90
