// The host's side of w4a16_sm90.cuh: describes the matrices to TMA, and launches the kernel.
#pragma once

#include <ptxmma/cuda/tensor_map.cuh>

#include "w4a16_plan.cuh"
#include "w4a16_sm90.cuh"

namespace w4a16_sm90 {

template <class Element, class Code>
class Plan : public Launch<Arguments<storage<Element>>> {
 public:
  using Input = storage<Element>;

  // Once, for a Plan. A row of X begins at a multiple of 16 bytes.
  cudaError_t prepare(int m, int n, int k, Matrix<const Input> x, const Weights<Input>& w, Matrix<Input> y) {
    if (!w.legal(m, n, k)) return cudaErrorInvalidValue;
    auto& arguments = this->arguments_;
    arguments = {{}, {}, {}, {}, y.data, nullptr, nullptr, m, n, k, y.pitch, w.group_bits()};
    return w.group == 32 ? prepare_span<32>(x, w) : w.group == 64 ? prepare_span<64>(x, w) : prepare_span<128>(x, w);
  }

 private:
  template <int Span>
  cudaError_t prepare_span(Matrix<const Input> x, const Weights<Input>& w) {
    const int m = this->arguments_.m;
    if (m <= 8) return prepare_product<Product<Element, Code, Span, 8>>(x, w);
    if (m <= 16) return prepare_product<Product<Element, Code, Span, 16>>(x, w);
    if (m <= 32) return prepare_product<Product<Element, Code, Span, 32>>(x, w);
    return prepare_product<Product<Element, Code, Span, 64>>(x, w);
  }

  // Numbers of which each 16 columns of W have a line. A stage takes some elements of a line for each warp.
  template <class P>
  static cudaError_t describe_lines(CUtensorMap& map, const void* data, CUtensorMapDataType type, uint64_t lines, uint64_t elements, uint64_t bytes,
                                     uint32_t taken) {
    const ptxmma::tensor_map<2> description = {type,
                                               {elements, lines},
                                               {elements * bytes},
                                               {taken, P::warps},
                                               {1, 1},
                                               CU_TENSOR_MAP_INTERLEAVE_NONE,
                                               CU_TENSOR_MAP_SWIZZLE_NONE,
                                               CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
    return description.encode(&map, data);
  }

  template <class P>
  cudaError_t prepare_product(Matrix<const Input> x, const Weights<Input>& w) {
    auto& arguments = this->arguments_;
    const int lines = arguments.n / 16, groups = ((arguments.k - 1) >> arguments.group_bits) + 1;
    cudaError_t status = ptxmma::tensor_map_of<typename P::X>(arguments.m, arguments.k, x.pitch * sizeof(Input)).encode(&arguments.x, x.data);
    if (status == cudaSuccess) status = describe_lines<P>(arguments.codes, w.codes, CU_TENSOR_MAP_DATA_TYPE_UINT64, lines, arguments.k, 8, P::depth);
    if (status == cudaSuccess) status = describe_lines<P>(arguments.scales, w.scales, CU_TENSOR_MAP_DATA_TYPE_UINT16, lines, groups * 16, 2, P::spans * 16);
    if (status == cudaSuccess && has_zeros<Code>) {
      status = describe_lines<P>(arguments.zeros, w.zeros, CU_TENSOR_MAP_DATA_TYPE_UINT16, lines, groups * 16, 2, P::spans * 16);
    }
    if (status != cudaSuccess) return status;
    return this->template use<P>(kernel<P>, sizeof(typename P::Shared), 1);
  }
};

}  // namespace w4a16_sm90
