// The host's side of attention_sm90.cuh: describes the tensors to TMA, chooses the order of the tiles, launches the kernel.
#pragma once

#include <algorithm>
#include <array>
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
  using Type = ptxmma::storage<Element>;
  // Wide blocks of keys need fewer steps. Narrow ones leave out more of the keys that causal rows do not see, and leave registers for a third
  // consumer, which heads of 64 need: their exponentials take as long as their products.
  using Narrow = Attention<Element, causal, head, 128>;
  using Wide = Attention<Element, causal, head, head == 128 ? 176 : 128>;
  static constexpr int LONG = 8192;  // keys from which wide blocks are faster, if causal

 public:
  // Q and O have `heads` heads of `rows` rows; K and V have `key_heads`, which divides `heads`, of `keys` rows, at least one. `scale` is
  // positive. `counter` is a 0 on the device; launches that may run at the same time each need their own. `logarithms`, if given, is
  // [batch][head][row]: the natural logarithm of the sum of the exponentials of a row's scaled scores.
  cudaError_t prepare(int batch, int heads, int key_heads, int rows, int keys, float scale, Tensor<const Type> q, Tensor<const Type> k,
                      Tensor<const Type> v, Tensor<Type> o, int* counter, float* logarithms = nullptr) {
    arguments_.o = {o.data, o.row, o.head, o.batch};
    arguments_.batch = batch;
    arguments_.heads = heads;
    arguments_.heads_per_key = heads / key_heads;
    arguments_.rows = rows;
    arguments_.keys = keys;
    arguments_.scale = scale * static_cast<float>(M_LOG2E);
    arguments_.logarithms = logarithms;
    arguments_.next = counter;
    return causal && keys < LONG ? choose<Narrow>(key_heads, q, k, v) : choose<Wide>(key_heads, q, k, v);
  }

  cudaError_t launch(cudaStream_t stream = nullptr) const {
    kernel_<<<blocks_, threads_, shared_bytes_, stream>>>(arguments_);
    return cudaGetLastError();
  }

 private:
  template <class Kernel>
  cudaError_t choose(int key_heads, Tensor<const Type> q, Tensor<const Type> k, Tensor<const Type> v) {
    const auto [batch, heads, rows, keys] = std::array{arguments_.batch, arguments_.heads, arguments_.rows, arguments_.keys};
    kernel_ = kernel<Kernel>;
    threads_ = Kernel::threads;
    shared_bytes_ = sizeof(typename Kernel::Shared);
    int device = 0, multiprocessors = 0, cache = 0;
    for (const cudaError_t status :
         {cudaGetDevice(&device), cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device),
          describe<typename Kernel::Q>(arguments_.q, q, rows, heads, batch),
          describe<typename Kernel::K>(arguments_.k, k, keys, key_heads, batch),
          describe<typename Kernel::V>(arguments_.v, v, keys, key_heads, batch),
          cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_)}) {
      if (status != cudaSuccess) return status;
    }
    // Tiles of one head that run at the same time read the same keys. If causal, so many heads run beside each other that their K and V fill half
    // of L2: only then do tiles with few keys come last.
    const int64_t bytes = int64_t(keys) * 2 * head * sizeof(Type);  // of K and V of a head
    const int64_t fit = std::max<int64_t>(1, cache / 2 / bytes) * arguments_.heads_per_key;
    arguments_.together = causal ? static_cast<int>(std::min<int64_t>(int64_t(heads) * batch, fit)) : 1;
    blocks_ = std::min(multiprocessors, ceil_div(rows, Kernel::rows) * heads * batch);
    return cudaSuccess;
  }

  Arguments arguments_;
  void (*kernel_)(Arguments) = nullptr;
  int blocks_ = 0, threads_ = 0, shared_bytes_ = 0;
};

}  // namespace attention_sm90
