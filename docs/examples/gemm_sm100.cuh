// D = A * B on Blackwell with tcgen05: A is m x k and row-major, B is k x n and column-major, D is m x n and row-major, all in bf16.
//
// A block has four warps and one tile of D. One thread has TMA bring tiles of A and B into a ring of stages in shared memory. One thread of
// another warp has the tensor core multiply them; D adds up in tensor memory. Then each warp takes the 32 lanes that it reaches, a row
// in each, through registers and shared memory to D.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include <ptxmma/cuda/tcgen05_mma_product.cuh>
#include <ptxmma/cuda/tensor_moves.cuh>

#include "hopper.cuh"
#include "tensor_map.cuh"

namespace gemm_sm100 {

namespace ptx = cuda::ptx;
using hopper::wait;
using ptxmma::shared_address;

constexpr int ROWS = 128, COLUMNS = 256, DEPTH = 64, STAGES = 3, THREADS = 128;
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;

using Product = ptxmma::tcgen05_mma<ptxmma::shape<ROWS, COLUMNS>, PTXMMA_TCGEN05_KIND_F16, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
using A = Product::a_tile<PTXMMA_MAJORNESS_K, SWIZZLE, ROWS, DEPTH>;
using B = Product::b_tile<PTXMMA_MAJORNESS_K, SWIZZLE, COLUMNS, DEPTH>;
using D = ptxmma::shared_tile<ptxmma::bf16, PTXMMA_MAJORNESS_K, SWIZZLE, ROWS, COLUMNS>;
using Part = ptxmma::accumulator_part<Product, 64>;  // as many columns of D as a thread has in registers at a time

struct Stage {
  alignas(A::alignment) unsigned char a[A::bytes];
  alignas(B::alignment) unsigned char b[B::bytes];
};

struct Shared {
  Stage ring[STAGES];
  alignas(D::alignment) unsigned char d[D::bytes];
  uint64_t full[STAGES], empty[STAGES], done;
  uint32_t allocated;
};

// Brings a tile into shared memory, box after box.
template <class Tile>
__device__ __forceinline__ void load(const CUtensorMap& map, unsigned char* tile, int x, int k, uint64_t* full) {
#pragma unroll
  for (uint32_t box = 0; box < Tile::boxes; ++box) {
    const int32_t from[] = {k + int(Tile::box_k(box)), x + int(Tile::box_x(box))};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile + box * Tile::box_bytes, &map, from, full);
  }
}

__device__ __forceinline__ void produce(Shared& shared, const CUtensorMap& a, const CUtensorMap& b, int row, int column, int steps) {
  hopper::Ring<STAGES> ring;
  for (int step = 0; step < steps; ++step, ring.next()) {
    Stage& stage = shared.ring[ring.stage];
    uint64_t* full = &shared.full[ring.stage];
    wait(&shared.empty[ring.stage], ring.parity ^ 1);  // passes in the first round
    ptx::mbarrier_arrive_expect_tx(
        ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, uint32_t{A::transaction_bytes + B::transaction_bytes});
    load<A>(a, stage.a, row, step * DEPTH, full);
    load<B>(b, stage.b, column, step * DEPTH, full);
  }
}

__device__ __forceinline__ void multiply(Shared& shared, ptxmma::tensor_address d, int steps) {
  hopper::Ring<STAGES> ring;
  for (int step = 0; step < steps; ++step, ring.next()) {
    const Stage& stage = shared.ring[ring.stage];
    const auto a = A::descriptor(shared_address(stage.a));
    const auto b = B::descriptor(shared_address(stage.b));
    wait(&shared.full[ring.stage], ring.parity);
    ptxmma::tcgen05_fence_after_thread_sync();
#pragma unroll
    for (uint32_t i = 0; i < A::steps; ++i) Product::call(d, A::advance(a, i), B::advance(b, i), step > 0 || i > 0);
    ptxmma::tcgen05_commit_cta_group_1_shared_cluster(&shared.empty[ring.stage]);  // arrives when the stage has been read
  }
  ptxmma::tcgen05_commit_cta_group_1_shared_cluster(&shared.done);
}

// Rounds a thread's row of D to bf16 and lays it out for TMA.
__device__ __forceinline__ void write(unsigned char* tile, ptxmma::tensor_address d, int thread) {
#pragma unroll
  for (uint32_t first = 0; first < COLUMNS; first += Part::columns) {
    Part::type sums;
    Part::load(sums, d, thread, first);
#pragma unroll
    for (uint32_t i = 0; i < Part::elements; i += 8) {  // 8 neighbours are 16 bytes
      alignas(16) __nv_bfloat162 pairs[4];
      for (int j = 0; j < 4; ++j) pairs[j] = __floats2bfloat162_rn(sums[i + 2 * j], sums[i + 2 * j + 1]);
      const uint32_t row = Part::row(thread, i), column = Part::col(thread, i, first);
      *reinterpret_cast<uint4*>(tile + D::offset(row, column)) = reinterpret_cast<const uint4&>(pairs);
    }
  }
}

__global__ void __launch_bounds__(THREADS, 1) kernel(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap d, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared*>(memory);
  const int row = blockIdx.x * ROWS, column = blockIdx.y * COLUMNS, steps = (k + DEPTH - 1) / DEPTH;
  const int thread = threadIdx.x, warp = __shfl_sync(0xffffffff, thread / 32, 0);  // the compiler sees that a warp's threads agree
  if (thread == 0) {
    for (uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
    for (uint64_t& barrier : shared.empty) ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  if (warp == 1) {  // its threads are together; thread 0 may have left those of its warp
    ptxmma::tcgen05_alloc_cta_group_1_shared_cta(&shared.allocated, Product::d_columns);
    ptxmma::tcgen05_relinquish_alloc_permit_cta_group_1();
  }
  ptxmma::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptxmma::tcgen05_fence_after_thread_sync();
  const ptxmma::tensor_address accumulator{shared.allocated};

  if (warp == 0 && hopper::elect_one()) produce(shared, a, b, row, column, steps);
  if (warp == 1 && hopper::elect_one()) multiply(shared, accumulator, steps);
  __syncwarp();  // the threads of a warp load together
  wait(&shared.done, 0);
  ptxmma::tcgen05_fence_after_thread_sync();
  write(shared.d, accumulator, thread);

  ptx::fence_proxy_async(ptx::space_shared);  // TMA sees what the threads wrote
  ptxmma::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 1) {
    ptxmma::tcgen05_fence_after_thread_sync();
    ptxmma::tcgen05_dealloc_cta_group_1(accumulator.bits, Product::d_columns);
  }
  if (thread == 0) {
    for (uint32_t box = 0; box < D::boxes; ++box) {
      const int32_t to[] = {column + int(D::box_k(box)), row + int(D::box_x(box))};
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &d, to, shared.d + box * D::box_bytes);
    }
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // shared memory lives until TMA has read it
  }
}

// A matrix of `x` rows (or columns, of B), each with `k` elements that are neighbours and `pitch` elements after the one before.
template <class Tile>
cudaError_t describe(CUtensorMap& map, const void* data, int x, int k, int64_t pitch) {
  const cuuint64_t size[] = {cuuint64_t(k), cuuint64_t(x)}, bytes[] = {pitch * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {Tile::box_inner, Tile::box_outer};
  return make_tensor_map<Tile>(map, data, size, bytes, box);
}

// Matrices start at 16 bytes, k and n are multiples of 8, so that their rows do, too; k is not 0.
inline cudaError_t launch(
    int m, int n, int k, const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, cudaStream_t stream = nullptr) {
  CUtensorMap maps[3];
  cudaError_t status = describe<A>(maps[0], a, m, k, k);
  if (status == cudaSuccess) status = describe<B>(maps[1], b, n, k, k);
  if (status == cudaSuccess) status = describe<D>(maps[2], d, m, n, n);
  if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (status != cudaSuccess) return status;
  const dim3 tiles((m + ROWS - 1) / ROWS, (n + COLUMNS - 1) / COLUMNS);
  kernel<<<tiles, THREADS, sizeof(Shared), stream>>>(maps[0], maps[1], maps[2], k);
  return cudaGetLastError();
}

}  // namespace gemm_sm100
