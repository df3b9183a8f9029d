// D = alpha * A * B on Blackwell with tcgen05: A is m x k and row-major, B is k x n and column-major, D is m x n, row-major, in bf16.
// It has not run on a chip of this generation. gemm_sm100_operands.cuh has the types of A and B.
//
// Two blocks are a pair, and share a tile of D of 256 x 256. A product of the pair takes half of A and half of B from each block, so that a
// block reads 128 columns of B in place of 256. One thread of the first block, the leader, issues it for both.
//
// A block has six warps, and three roles, which run at the same time:
//   produce   one thread: TMA brings this block's halves of A and B into a ring of stages in shared memory;
//   multiply  one thread of the leader: products of each stage; D adds up in tensor memory, 128 rows in each block;
//   write     four warps: D through registers and shared memory to TMA, while the next tile adds up in another accumulator.
// Blocks are persistent: as many as the chip runs at a time share the tiles of D.
//
// Barriers, and what completes a phase of each:
//   full[stage]         the leader's alone: it has announced the bytes of both blocks, and all have arrived
//   empty[stage]        each block's: products have read the stage in both blocks; the leader's commit tells both
//   filled[tile % 2]    each block's: all products of the tile are complete; the leader's commit tells both
//   drained[tile % 2]   the leader's alone: all threads that write, of both blocks, have read the accumulator; there is one where the
//                       accumulators overlap, and it says that the columns that they share have been read
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/ordering.cuh>
#include <ptxmma/cuda/stage_ring.cuh>
#include <ptxmma/cuda/tensor_moves.cuh>
#include <ptxmma/cuda/thread_groups.cuh>

#include "gemm_sm100_operands.cuh"

namespace gemm_sm100 {

using ptxmma::mbarrier_wait, ptxmma::stage_ring;

constexpr int WRITERS = 128, THREADS = WRITERS + 64;               // threads; a warp each produces and multiplies
constexpr int PRODUCER = WRITERS / 32, MULTIPLIER = PRODUCER + 1;  // warps
constexpr int TOGETHER = 1;                                        // named barrier of the writers; 0 is that of __syncthreads
constexpr uint16_t BOTH = (1 << PAIR) - 1;                         // blocks that a commit tells
constexpr int PART = 64, PARTS = COLUMNS / PART;                   // columns of D that a thread has in registers at a time
constexpr int TENSOR_MEMORY = 512;                                 // columns of a multiprocessor

using D = ptxmma::shared_tile<ptxmma::bf16, PTXMMA_MAJORNESS_K, SWIZZLE, ROWS / PAIR, PART>;

// Whether the accumulators share columns of tensor memory: one part. Then the next tile begins when that part of this one has been read.
// Else it begins when the tile before this one has been read, whose accumulator it takes.
template <class Operands>
constexpr bool overlap = Operands::second < COLUMNS;
template <class Operands>
constexpr int independent = overlap<Operands> ? 1 : 2;

template <class Operands>
struct Shared {
  typename Operands::Stage ring[Operands::stages];
  alignas(D::alignment) unsigned char d[2][D::bytes];  // one is written while TMA reads the other
  ptxmma::stage_barriers<Operands::stages> barriers;
  uint64_t filled[2], drained[independent<Operands>];
  uint32_t allocated;
};

template <class Operands>
struct Arguments {
  typename Operands::Source source;
  CUtensorMap d;
  int m, n, k;
  float alpha;
};

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

// The first row and column of a tile, of so many down and across. Tiles are counted down bands of eight: pairs that run at a time then work
// on about as many rows as columns, and need least from memory.
__host__ __device__ inline int2 corner(int tile, int down, int across) {
  constexpr int band = 8;
  const int top = tile / (band * across) * band, height = down - top < band ? down - top : band, rest = tile - top * across;
  return {(top + rest % height) * ROWS, rest / height * COLUMNS};
}

template <class Operands>
struct Gemm {
  using Product = typename Operands::Product;
  using Part = ptxmma::accumulator_part<Product, PART>;

  const Arguments<Operands>& arguments;
  Shared<Operands>& shared;
  const int rank = blockIdx.x % PAIR, pair = blockIdx.x / PAIR, pairs = gridDim.x / PAIR;
  const int down = ceil_div(arguments.m, ROWS), across = ceil_div(arguments.n, COLUMNS), tiles = down * across;
  const int steps = ceil_div(arguments.k, Operands::depth);

  __device__ __forceinline__ void produce() const {
    stage_ring<Operands::stages> ring;
    uint64_t* full = ptxmma::map_shared_rank(shared.barriers.full, 0);  // the leader's
    for (int tile = pair; tile < tiles; tile += pairs) {
      const auto [row, column] = corner(tile, down, across);
      for (int step = 0; step < steps; ++step, ring.next()) {
        shared.barriers.wait_empty(ring);
        if (rank == 0) shared.barriers.expect(ring, PAIR * Operands::bytes);
        Operands::load(arguments.source, shared.ring[ring.stage], row, column, step, rank, &full[ring.stage]);
      }
    }
    // No commit comes to a block that has left.
    for (int stage = 0; stage < Operands::stages; ++stage, ring.next()) shared.barriers.wait_empty(ring);
  }

  __device__ __forceinline__ void multiply(ptxmma::tensor_address memory) const {
    stage_ring<Operands::stages> ring;
    stage_ring<2> accumulator;
    stage_ring<independent<Operands>> room;
    for (int tile = pair; tile < tiles; tile += pairs, accumulator.next(), room.next()) {
      ptxmma::mbarrier_wait_in_cluster(&shared.drained[room.stage], room.parity ^ 1);  // at once for the first tiles
      ptxmma::tcgen05_fence_after_thread_sync();
      for (int step = 0; step < steps; ++step, ring.next()) {
        shared.barriers.wait_full(ring);
        ptxmma::tcgen05_fence_after_thread_sync();
        Operands::multiply(memory, memory + accumulator.stage * Operands::second, shared.ring[ring.stage], step > 0);
        ptxmma::tcgen05_commit_cta_group_2_shared_cluster_multicast_cluster(&shared.barriers.empty[ring.stage], BOTH);
      }
      ptxmma::tcgen05_commit_cta_group_2_shared_cluster_multicast_cluster(&shared.filled[accumulator.stage], BOTH);
    }
  }

  __device__ __forceinline__ void write(ptxmma::tensor_address memory, int thread) const {
    stage_ring<2> accumulator;
    stage_ring<independent<Operands>> room;
    uint64_t* drained = ptxmma::map_shared_rank(shared.drained, 0);  // the leader's
    for (int tile = pair; tile < tiles; tile += pairs, accumulator.next(), room.next()) {
      const auto [row, column] = corner(tile, down, across);
      mbarrier_wait(&shared.filled[accumulator.stage], accumulator.parity);
      ptxmma::tcgen05_fence_after_thread_sync();
#pragma unroll
      for (int i = 0; i < PARTS; ++i) {
        const int part = overlap<Operands> && accumulator.stage == 0 ? PARTS - 1 - i : i;  // the shared one first
        typename Part::type sums;
        Part::load(sums, memory + accumulator.stage * Operands::second + part * PART, thread);
        if (i == (overlap<Operands> ? 0 : PARTS - 1)) {
          ptxmma::tcgen05_fence_before_thread_sync();
          ptxmma::mbarrier_arrive_release_cluster_shared_cluster(&drained[room.stage]);
        }
        unsigned char* buffer = shared.d[i % 2];
        if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<1>();  // TMA has read this buffer
        ptxmma::named_barrier_sync(TOGETHER, WRITERS);
        round(sums, buffer, thread);
        ptxmma::fence_proxy_async_shared_cta();  // TMA sees what this thread has written
        ptxmma::named_barrier_sync(TOGETHER, WRITERS);
        if (thread == 0) {
          ptxmma::store_tile<D>(&arguments.d, row + rank * D::x, column + part * PART, buffer);
          ptxmma::cp_async_bulk_commit_group();
        }
      }
    }
    if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<0>();  // shared memory lives until TMA has read it
  }

  // Rounds a thread's part of a row of D to bf16 and lays it out for TMA.
  __device__ __forceinline__ void round(const typename Part::type& sums, unsigned char* tile, int thread) const {
    const float alpha = arguments.alpha;
#pragma unroll
    for (uint32_t i = 0; i < Part::elements; i += 8) {  // 8 neighbours are 16 bytes
      alignas(16) __nv_bfloat162 pairs[4];
      for (int j = 0; j < 4; ++j) pairs[j] = __floats2bfloat162_rn(alpha * sums[i + 2 * j], alpha * sums[i + 2 * j + 1]);
      *reinterpret_cast<uint4*>(tile + D::offset(Part::row(thread, i), Part::col(thread, i))) = reinterpret_cast<const uint4&>(pairs);
    }
  }
};

template <class Operands>
__global__ void __cluster_dims__(PAIR) __launch_bounds__(THREADS, 1) kernel(const __grid_constant__ Arguments<Operands> arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<Operands>*>(memory);
  const int thread = threadIdx.x, warp = __shfl_sync(0xffffffff, thread / 32, 0);  // the compiler sees that a warp's threads agree
  if (thread == 0) {
    arguments.source.prefetch();
    ptxmma::prefetch_tensor_map(&arguments.d);
    shared.barriers.init(1, 1);
    for (uint64_t& barrier : shared.filled) ptxmma::mbarrier_init_shared(&barrier, 1);
    for (uint64_t& barrier : shared.drained) ptxmma::mbarrier_init_shared(&barrier, PAIR * WRITERS);
    ptxmma::fence_mbarrier_init();
  }
  __syncwarp();
  ptxmma::cluster_sync();  // both blocks run, and their barriers exist
  if (warp == MULTIPLIER) {  // a warp of each block: they allocate together
    ptxmma::tcgen05_alloc_cta_group_2_shared_cta(&shared.allocated, TENSOR_MEMORY);
    ptxmma::tcgen05_relinquish_alloc_permit_cta_group_2();
  }
  ptxmma::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptxmma::tcgen05_fence_after_thread_sync();
  const ptxmma::tensor_address tensor_memory{shared.allocated};

  const Gemm<Operands> gemm{arguments, shared};
  if (warp < PRODUCER) gemm.write(tensor_memory, thread);
  if (warp == PRODUCER && ptxmma::elect_one()) gemm.produce();
  if (warp == MULTIPLIER && gemm.rank == 0 && ptxmma::elect_one()) gemm.multiply(tensor_memory);

  __syncwarp();
  ptxmma::tcgen05_fence_before_thread_sync();
  ptxmma::cluster_sync();  // neither block reads tensor memory or tells the other anything any more
  if (warp == MULTIPLIER) {
    ptxmma::tcgen05_fence_after_thread_sync();
    ptxmma::tcgen05_dealloc_cta_group_2(tensor_memory.bits, TENSOR_MEMORY);
  }
}

// Matrices start at 16 bytes, and so do their rows (columns, of B): n is a multiple of 8, k of 16 bytes; k is not 0.
template <class Operands>
cudaError_t launch(int m, int n, int k, float alpha, typename Operands::Matrix a, typename Operands::Matrix b, __nv_bfloat16* d,
                   cudaStream_t stream = nullptr) {
  int device = 0, multiprocessors = 0;
  Arguments<Operands> arguments{{}, {}, m, n, k, alpha};
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) status = arguments.source.describe(m, n, k, a, b);
  if (status == cudaSuccess) status = describe<D>(arguments.d, d, m, n);
  if (status == cudaSuccess) {
    status = cudaFuncSetAttribute(kernel<Operands>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<Operands>));
  }
  if (status != cudaSuccess) return status;
  const int tiles = ceil_div(m, ROWS) * ceil_div(n, COLUMNS), most = multiprocessors / PAIR;
  kernel<Operands><<<PAIR * (tiles < most ? tiles : most), THREADS, sizeof(Shared<Operands>), stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace gemm_sm100
