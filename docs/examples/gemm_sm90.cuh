// D = alpha * A * B + beta * C on Hopper. A is m x k and B is k x n, each row-major or column-major; C and D are m x n, row-major.
//
// A block has three warpgroups. One thread of the first, the producer, has TMA bring tiles of A and B into a ring of stages in shared
// memory. The others, the consumers, multiply in turn (ping-pong): while one keeps the tensor cores busy, the other writes its tile of D.
// Two blocks make a cluster. Their tiles lie below each other and need the same columns of B: each block brings half of them for both.
// The blocks are persistent: as many as the chip can run at a time share the tiles. gemm_sm90_plan.cuh launches the kernel.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/e4m3_e4m3.cuh>
#include <ptxmma/wgmma/f16_f16.cuh>
#include <ptxmma/wgmma/s8_s8.cuh>

#include "hopper.cuh"

namespace gemm_sm90 {

namespace ptx = cuda::ptx;

// What C++ calls a type, and in what its products are summed.
template <class Element> struct Traits;
template <> struct Traits<ptxmma::bf16> { using Type = __nv_bfloat16; using Accumulator = ptxmma::f32; };
template <> struct Traits<ptxmma::f16> { using Type = __half; using Accumulator = ptxmma::f32; };
template <> struct Traits<ptxmma::e4m3> { using Type = __nv_fp8_e4m3; using Accumulator = ptxmma::f32; };
template <> struct Traits<ptxmma::s8> { using Type = int8_t; using Accumulator = ptxmma::s32; };
template <> struct Traits<ptxmma::f32> { using Type = float; };
template <> struct Traits<ptxmma::s32> { using Type = int32_t; };

// Two neighbours in a row of D.
__device__ inline __nv_bfloat162 pair(__nv_bfloat16, float x, float y) { return __floats2bfloat162_rn(x, y); }
__device__ inline __half2 pair(__half, float x, float y) { return __floats2half2_rn(x, y); }
__device__ inline float2 pair(float, float x, float y) { return {x, y}; }
__device__ inline int2 pair(int32_t, int32_t x, int32_t y) { return {x, y}; }

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

constexpr int WARP = 32, WARPGROUP = 128, CONSUMERS = 2, CLUSTER = 2;
constexpr uint32_t SHARED_BYTES = 227 * 1024;  // of a block
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;
constexpr int SPAN = ptxmma_describe_swizzle(SWIZZLE).bytes;  // a row of a tile, as wide as TMA swizzles

// Named barriers: whose turn it is to multiply, and the threads of a consumer among themselves. 0 is that of __syncthreads.
constexpr int TURN = 1, TOGETHER = TURN + CONSUMERS;

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// Brings a tile into shared memory, box after box. If the cluster shares it, each block brings half of every box for both.
template <class Tile, bool shared>
__device__ __forceinline__ void load(const CUtensorMap& map, unsigned char* tile, int x, int k, int rank, uint64_t* full) {
  constexpr int sharers = shared ? CLUSTER : 1;
  const int line = shared ? rank * Tile::box_outer / sharers : 0;
#pragma unroll
  for (int box = 0; box < Tile::boxes; ++box) {
    constexpr bool k_major = Tile::majorness == PTXMMA_MAJORNESS_K;
    unsigned char* to = tile + box * Tile::box_bytes + line * SPAN;
    const int box_x = x + Tile::box_x(box), box_k = k + Tile::box_k(box);
    const int32_t from[] = {k_major ? box_k : box_x, line + (k_major ? box_x : box_k)};
    if constexpr (shared) {
      constexpr uint16_t everyone = (1 << sharers) - 1;
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, from, full, everyone);
    } else {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, from, full);
    }
  }
}

// A place in a ring of stages, and the parity of the phase that its barriers complete next. Counting up takes few instructions. Dividing a
// running number by the stages instead takes so long that the tensor cores wait: it costs 2 % of the speed.
template <int stages>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void skip(int count) {
    parity ^= (stage + count) / stages % 2;
    stage = (stage + count) % stages;
  }
};

template <class Scalar>
struct Arguments {
  CUtensorMap a, b, c, d;
  int m, n, k;
  Scalar alpha, beta;
};

template <class Element, class Result, ptxmma_majorness major_a, ptxmma_majorness major_b, int width>
struct Gemm {
  using Input = typename Traits<Element>::Type;
  using Output = typename Traits<Result>::Type;
  template <int n>  // it reads 32 bytes along k
  using Instruction =
      ptxmma::wgmma<ptxmma::shape<64, n, 32 / sizeof(Input)>, typename Traits<Element>::Accumulator, Element, Element>;

  // A consumer's tile of D is two instructions high: both read the same B. Its width need not fill the spans of a B that is N-major.
  using Multiply = Instruction<width>;
  using Sums = typename Multiply::d;
  using Scalar = typename Sums::register_type;
  static constexpr int parts = 2, rows = parts * Multiply::m, columns = width, span = SPAN / sizeof(Input);
  using A = typename Multiply::template a_tile<major_a, SWIZZLE, rows, span>;
  using B = typename Multiply::template b_tile<
      major_b, SWIZZLE, major_b == PTXMMA_MAJORNESS_K ? columns : ceil_div(columns, span) * span, span>;

  // D leaves through shared memory, in chunks that are as high as an instruction and one span wide. Where the last one would reach
  // beyond the tile, it starts earlier and writes some columns once more.
  static constexpr int chunk = SPAN / sizeof(Output), chunks = ceil_div(columns, chunk);
  using D = ptxmma::shared_tile<Result, PTXMMA_MAJORNESS_K, SWIZZLE, Multiply::m, chunk>;

  struct Shared {
    static constexpr int stages = (SHARED_BYTES - 1024 - CONSUMERS * D::bytes) / (A::bytes + B::bytes);
    alignas(A::alignment) unsigned char a[stages][A::bytes];
    alignas(B::alignment) unsigned char b[stages][B::bytes];
    alignas(D::alignment) unsigned char d[CONSUMERS][D::bytes];
    uint64_t full[stages], empty[stages], loaded[CONSUMERS];
  };

  const Arguments<Scalar>& arguments;
  Shared& shared;
  int rank = blockIdx.x % CLUSTER, cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
  int down = ceil_div(arguments.m, CLUSTER * rows), across = ceil_div(arguments.n, columns), steps = ceil_div(arguments.k, A::k);

  // The row and the column of D where a tile begins. Clusters take the tiles down a band of a few rows, then one column to the right, and
  // so on. The tiles in work at a time form a rectangle, as square as can be, and what they read stays in L2.
  __device__ __forceinline__ int2 corner(int tile) const {
    constexpr int band = 8;
    const int top = tile / (band * across) * band, height = min(band, down - top), rest = tile - top * across;
    return {((top + rest % height) * CLUSTER + rank) * rows, rest / height * columns};
  }

  __device__ __forceinline__ void produce() {
    Ring<Shared::stages> ring;
    for (int tile = cluster; tile < down * across; tile += clusters) {
      const auto [row, column] = corner(tile);
      for (int k = 0; k < steps * A::k; k += A::k, ring.next()) {
        const int stage = ring.stage;
        wait(&shared.empty[stage], ring.parity ^ 1);  // passes in the first round
        ptx::mbarrier_arrive_expect_tx(
            ptx::sem_release, ptx::scope_cta, ptx::space_shared, &shared.full[stage], A::bytes + B::bytes);
        load<A, false>(arguments.a, shared.a[stage], row, k, rank, &shared.full[stage]);
        load<B, true>(arguments.b, shared.b[stage], column, k, rank, &shared.full[stage]);
      }
    }
  }

  // Tells both blocks, since both write to it, that a stage has been read. It was the tensor cores that read it, and that is over: there is
  // nothing for the arrival to order, so it can be relaxed. A release at the scope of the cluster would more than double the time.
  static __device__ __forceinline__ void release(uint64_t* empty, int thread) {
    if (thread < CLUSTER) ptx::mbarrier_arrive(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, empty);
  }

  // Multiplies a tile. `empty` are the barriers of the block that this thread tells.
  __device__ __forceinline__ void multiply(
      typename Sums::type (&sums)[parts], Ring<Shared::stages>& ring, uint64_t* empty, int consumer, int thread) {
    int previous = 0;
    for (int step = 0; step < steps; ++step, ring.next()) {
      const int stage = ring.stage;
      wait(&shared.full[stage], ring.parity);
      ptxmma::wgmma_fence();
      const uint32_t a = shared_address(shared.a[stage]), b = shared_address(shared.b[stage]);
#pragma unroll
      for (int k = 0; k < A::k; k += Multiply::k) {
#pragma unroll
        for (int p = 0; p < parts; ++p) {
          Multiply::call(sums[p], A::descriptor(a, p * Multiply::m, k), B::descriptor(b, 0, k), step + k > 0);
        }
      }
      ptxmma::wgmma_commit_group();
      ptxmma::wgmma_wait_group<1>();  // of the stage before: this one keeps the tensor cores busy while the next is issued
      if (step > 0) release(empty + previous, thread);
      previous = stage;
    }
    hopper::barrier_arrive(TURN + 1 - consumer, CONSUMERS * WARPGROUP);  // now it is the other's turn
    ptxmma::wgmma_wait_group<0>();
    release(empty + previous, thread);
  }

  // Writes a chunk to (row, column) of D: the columns from `left` on of a part of a tile. Those before `done` have been written before.
  __device__ __forceinline__ void write(
      typename Sums::type& sums, int left, int done, int row, int column, int consumer, int thread, uint32_t parity) {
    using Pair = decltype(pair(Output(), Scalar(), Scalar()));
    using Chunk = typename Instruction<chunk>::d;
    const Scalar alpha = arguments.alpha, beta = arguments.beta;
    unsigned char* buffer = shared.d[consumer];
    uint64_t* loaded = &shared.loaded[consumer];
    if (thread == 0) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // TMA has read what the buffer held before
      if (beta != 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, loaded, uint32_t{D::bytes});
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, buffer, &arguments.c, {column, row}, loaded);
      }
    }
    hopper::barrier_sync(TOGETHER + consumer, WARPGROUP);
    if (beta != 0) wait(loaded, parity);

    Pair pairs[Chunk::elements / 2];
#pragma unroll
    for (int i = 0; i < Chunk::elements; i += 2) {
      Scalar &x = sums[left / 2 + i], &y = sums[left / 2 + i + 1];  // a thread has half as many sums as there are columns
      if (left + Chunk::col(0, i) >= done) {
        x *= alpha;
        y *= alpha;
        if (beta != 0) {
          const Pair old = *reinterpret_cast<const Pair*>(buffer + D::offset(Chunk::row(thread, i), Chunk::col(thread, i)));
          x += beta * static_cast<Scalar>(old.x);
          y += beta * static_cast<Scalar>(old.y);
        }
      }
      pairs[i / 2] = pair(Output(), x, y);
    }
    ptxmma::store_fragment<Chunk, D>(
        shared_address(buffer), reinterpret_cast<const uint32_t(&)[sizeof pairs / sizeof(uint32_t)]>(pairs), thread);
    ptx::fence_proxy_async(ptx::space_shared);  // TMA sees what the threads wrote
    hopper::barrier_sync(TOGETHER + consumer, WARPGROUP);
    if (thread == 0) {
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &arguments.d, {column, row}, buffer);
      ptx::cp_async_bulk_commit_group();
    }
  }

  __device__ __forceinline__ void consume(int consumer, int thread) {
    typename Sums::type sums[parts];
    Ring<Shared::stages> ring;
    uint64_t* empty = hopper::map_to_rank(shared.empty, thread % CLUSTER);
    uint32_t parity = 0;
    if (consumer == 1) {
      hopper::barrier_arrive(TURN, CONSUMERS * WARPGROUP);  // the other takes the first turn
      ring.skip(steps);
    }
    for (int tile = cluster + consumer * clusters; tile < down * across; tile += CONSUMERS * clusters) {
      hopper::barrier_sync(TURN + consumer, CONSUMERS * WARPGROUP);
#pragma unroll
      for (auto& registers : sums) ptxmma::fence_accumulator(registers);
      multiply(sums, ring, empty, consumer, thread);
      ring.skip(steps);
#pragma unroll
      for (auto& registers : sums) ptxmma::fence_accumulator(registers);

      const auto [row, column] = corner(tile);
#pragma unroll
      for (int p = 0; p < parts; ++p) {
#pragma unroll
        for (int i = 0; i < chunks; ++i, parity ^= 1) {
          const int done = i * chunk, left = done + chunk < columns ? done : columns - chunk;
          write(sums[p], left, done, row + p * Multiply::m, column + left, consumer, thread, parity);
        }
      }
    }
    if (thread == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // shared memory lives until TMA has read it
  }
};

template <class G>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__((1 + CONSUMERS) * WARPGROUP, 1)
    kernel(const __grid_constant__ Arguments<typename G::Scalar> arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename G::Shared*>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch_tensor_map(&arguments.a);
    hopper::prefetch_tensor_map(&arguments.b);
    hopper::prefetch_tensor_map(&arguments.d);
    for (uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
    for (uint64_t& barrier : shared.empty) ptx::mbarrier_init(&barrier, CLUSTER);
    for (uint64_t& barrier : shared.loaded) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::barrier_cluster_arrive();  // the barriers of both blocks exist
  ptx::barrier_cluster_wait();

  G gemm{arguments, shared};
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp's threads agree
  if (warpgroup == 0) {
    hopper::give_registers<24>();
    if (threadIdx.x < WARP && hopper::elect_one()) gemm.produce();
  } else {
    hopper::take_registers<240>();
    gemm.consume(warpgroup - 1, threadIdx.x % WARPGROUP);
  }
  ptx::barrier_cluster_arrive();  // a block stays until the other has nothing more to write to it
  ptx::barrier_cluster_wait();
}

}  // namespace gemm_sm90
