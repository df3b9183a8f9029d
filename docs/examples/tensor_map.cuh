// What the kernels with TMA share on the host: the call that describes a tensor to it.
#pragma once

#include <algorithm>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <ptxmma/shared_layout.h>

// Describes a tensor of which TMA moves boxes into tiles of this type. `size` and `box` count elements along each dimension. Neighbours along
// the first are neighbours in memory; `pitch` has the bytes from one element to the next along each of the others.
template <class Tile, int rank>
cudaError_t make_tensor_map(CUtensorMap& map, const void* data, const cuuint64_t (&size)[rank], const cuuint64_t (&pitch)[rank - 1],
                            const cuuint32_t (&box)[rank], CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult support;
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &support);
  if (status != cudaSuccess) return status;
  cuuint32_t stride[rank];
  std::fill(stride, stride + rank, 1);
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encode)(
      &map, PTXMMA_TENSOR_MAP_DATA_TYPE(Tile::type), rank, const_cast<void*>(data), size, pitch, box, stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
      PTXMMA_TENSOR_MAP_SWIZZLE(Tile::swizzle), promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
