// D = alpha * A * B + beta * C on Hopper. C and D are m x n, row-major. How A and B lie in memory and are multiplied is up to `Operands`:
// gemm_sm90_operands.cuh has dense ones, sparse_gemm_sm90.cuh those with a sparse A. gemm_sm90_plan.cuh launches the kernel.
//
// A block has three warpgroups. One thread of the first, the producer, has TMA bring tiles of A and B into a ring of stages in shared
// memory. The others, the consumers, multiply in turn (ping-pong): while one keeps the tensor cores busy, the other writes its tile of D.
// Or they share a tile that is larger (`together`): less has to be moved, but nothing is multiplied while they write.
// Tiles of few rows or columns have one consumer: a block seldom has more than one of them.
// Two blocks make a cluster. Their tiles lie below each other and need the same columns of B: each block brings half of them for both.
// The blocks are persistent: as many as the chip can run at a time share the tiles.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/stage_ring.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/cuda/thread_groups.cuh>
#include <ptxmma/cuda/tile_transfers.cuh>
#include <ptxmma/griddepcontrol.cuh>
#include <ptxmma/setmaxnreg.cuh>

namespace gemm_sm90 {

using ptxmma::shared_address;
using ptxmma::storage;

constexpr int WARP = 32, WARPGROUP = 128;  // threads

// Two neighbours in a row of D.
__device__ inline __nv_bfloat162 pair(__nv_bfloat16, float x, float y) { return __floats2bfloat162_rn(x, y); }
__device__ inline __half2 pair(__half, float x, float y) { return __floats2half2_rn(x, y); }
__device__ inline float2 pair(float, float x, float y) { return {x, y}; }
__device__ inline int2 pair(int32_t, int32_t x, int32_t y) { return {x, y}; }

__host__ __device__ constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }
__host__ __device__ constexpr int min_of(int x, int y) { return x < y ? x : y; }

// The swizzle of tiles whose rows are as wide as its span.
constexpr ptxmma_swizzle swizzle_of(int bytes) {
  return bytes == 32 ? PTXMMA_SWIZZLE_32B : bytes == 64 ? PTXMMA_SWIZZLE_64B : PTXMMA_SWIZZLE_128B;
}

constexpr int CONSUMERS = 2, CLUSTER = 2;
constexpr int SHARED_KB = 228;  // of a multiprocessor; a block takes 1 KB more than it asks for
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;
constexpr int SPAN = ptxmma_describe_swizzle(SWIZZLE).bytes;  // a row of a tile, as wide as TMA swizzles

// Registers of a thread. Three threads, one of each warpgroup, have 504 together; a block that takes more waits for ever.
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

// Named barriers: whose turn it is to multiply, the threads of a consumer among themselves, and whose turn it is to write. 0 is that of
// __syncthreads.
constexpr int TURN = 1, TOGETHER = TURN + CONSUMERS, WRITE = TOGETHER + CONSUMERS;

template <class Source, class Scalar>
struct Arguments {
  Source source;  // of A and B
  CUtensorMap c, d;
  int m, n, k;
  Scalar alpha, beta;
  int splits;     // of k: so many clusters share a tile of D
  Scalar* sums;   // if they do: what each found, in the order of its registers
  int* finished;  // and how many have, for each tile of a block; zeros before and after a launch
};

// `Operands` have, beside `rows` and `columns` of a block's tile of D and the `Multiply` that makes it:
//   Source                                           what the kernel gets to know of A and B: tensor maps `a` and `b`, and more if need be
//   Stage, bytes, depth                              their tiles in shared memory, what TMA brings there, and elements along k
//   extra                                            what a tile costs beside its columns, in columns
//   load_a(source, stage, row, k, full)              has TMA bring the tile of A
//   load_b(source, stage, column, k, rank, full)     the same for B
//   a_is_there                                       whether no kernel in front writes A, so that it may be read before that has ended
//   multiply(sums, registers, stage, row, thread, accumulate)
//                                                    multiplies B by the rows of A from `row` on, as many as `sums` are for
//   Registers, sets                                  what it reads until the next stage but one begins; with two sets, stages take turns
//   read_by_threads                                  whether threads read something of a stage themselves, not the tensor cores alone
template <class Inputs, class Result, bool together, ptxmma_majorness major_d = PTXMMA_MAJORNESS_K>
struct Gemm {
  using Operands = Inputs;
  using Output = storage<Result>;
  using Multiply = typename Operands::Multiply;
  using Stage = typename Operands::Stage;
  using Sums = typename Multiply::d;
  using Scalar = typename Sums::register_type;
  using Source = typename Operands::Source;
  static constexpr int rows = Operands::rows, columns = Operands::columns;
  // With few rows or columns, a launch begins before the kernel in front has ended, and k may be split: higher tiles leave no registers to add
  // the sums of others. If A needs not wait, two blocks have room on a multiprocessor, so that it arrives before the kernel in front has ended.
  static constexpr bool few = rows == Multiply::m;
  static constexpr int consumers = few ? 1 : CONSUMERS, threads = (1 + consumers) * WARPGROUP;
  static constexpr int blocks = few && Operands::a_is_there && columns <= 32 ? 2 : 1;
  static constexpr int sharers = together ? consumers : 1;      // consumers that read a stage
  static constexpr bool in_turn = sharers < consumers;
  static constexpr int arrivals = sharers * (Operands::read_by_threads ? WARPGROUP + CLUSTER - 1 : CLUSTER);  // that free a stage
  static constexpr int parts = rows / (sharers * Multiply::m);  // instructions on top of each other, which read the same B

  // D leaves through shared memory, in chunks that are as high as an instruction and one span wide, or as the tile. Where the last one would
  // reach beyond the tile, it starts earlier and writes some columns once more. If D is column-major, a chunk has all columns.
  static constexpr bool row_major = major_d == PTXMMA_MAJORNESS_K;
  static constexpr int chunk = row_major ? min_of(columns, SPAN / int(sizeof(Output))) : columns, chunks = ceil_div(columns, chunk);
  using D = ptxmma::shared_tile<Result, major_d, row_major ? swizzle_of(chunk * sizeof(Output)) : SWIZZLE, Multiply::m, chunk>;

  // With two buffers for chunks, TMA reads one while the other is filled. Consumers that take turns write in turn, too, and share them.
  static constexpr int buffers = 2, writers = sharers;

  struct Shared {
    static constexpr int stages = ((SHARED_KB / blocks - 2) * 1024 - writers * buffers * D::bytes) / sizeof(Stage);
    Stage ring[stages];
    alignas(D::alignment) unsigned char d[writers][buffers][D::bytes];
    ptxmma::stage_barriers<stages> barriers;
    uint64_t loaded[CONSUMERS];
    int finished[CONSUMERS];
  };

  const Arguments<Source, Scalar>& arguments;
  Shared& shared;
  int rank = blockIdx.x % CLUSTER, cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
  int down = ceil_div(arguments.m, CLUSTER * rows), across = ceil_div(arguments.n, columns), tiles = down * across;
  int stages_along_k = ceil_div(arguments.k, Operands::depth), split = ceil_div(stages_along_k, arguments.splits);

  // A turn is a tile of D, or a split of one: the first splits of all tiles come first. The last split of a tile may be shorter.
  __device__ __forceinline__ int first_step(int turn) const { return turn / tiles * split; }
  __device__ __forceinline__ int steps(int turn) const { return min(split, stages_along_k - first_step(turn)); }

  // The row and the column of D where a tile begins. Clusters take the tiles down a band of a few rows, then one column to the right, and
  // so on. The tiles in work at a time form a rectangle, as square as can be, and what they read stays in L2.
  __device__ __forceinline__ int2 corner(int tile) const {
    constexpr int band = 8;
    const int top = tile / (band * across) * band, height = min(band, down - top), rest = tile - top * across;
    return {((top + rest % height) * CLUSTER + rank) * rows, rest / height * columns};
  }

  // Announces the bytes of a stage, and has TMA bring its tile of A.
  __device__ __forceinline__ void load_a(int stage, int row, int step) {
    uint64_t* full = shared.barriers.expect({stage}, Operands::bytes);
    Operands::load_a(arguments.source, shared.ring[stage], row, step * Operands::depth, full);
  }

  __device__ __forceinline__ void produce() {
    ptxmma::stage_ring<Shared::stages> ring;
    int early = 0;  // stages whose tile of A is on its way
    if constexpr (few && Operands::a_is_there) {
      const int row = corner(cluster % tiles).x, first = first_step(cluster);
      for (; early < min(steps(cluster), Shared::stages); ++early) load_a(early, row, first + early);
    }
    if constexpr (few) ptxmma::griddepcontrol_wait();
    for (int turn = cluster; turn < tiles * arguments.splits; turn += clusters) {
      const auto [row, column] = corner(turn % tiles);
      const int first = first_step(turn), end = first + steps(turn);
      for (int step = first; step < end; ++step, ring.next()) {
        if (--early < 0) {
          shared.barriers.wait_empty(ring);
          load_a(ring.stage, row, step);
        }
        Operands::load_b(
            arguments.source, shared.ring[ring.stage], column, step * Operands::depth, rank, &shared.barriers.full[ring.stage]);
      }
    }
  }

  // Tells both blocks, since both write to it, that a stage has been read. What tensor cores read has been read when the multiplications are
  // complete: there is nothing for the arrival to order, so one thread tells each block for all of a consumer, and it can be relaxed. A
  // release at the scope of the cluster would more than double the time. What threads read was brought by this block alone: each of them tells
  // it, with a release at the scope of the block.
  __device__ __forceinline__ void release(uint64_t* empty, const ptxmma::stage_ring<Shared::stages>& ring, int thread) const {
    if constexpr (Operands::read_by_threads) shared.barriers.release(ring);
    if (thread < CLUSTER && !(Operands::read_by_threads && thread == rank)) {
      ptxmma::stage_barriers<Shared::stages>::release_in_cluster_relaxed(empty, ring);
    }
  }

  // Waits until a stage is full. To ask takes shared memory's time, which the tensor cores need most where the consumers share a tile: one
  // warp asks for all. Where they take turns there is no time for a barrier.
  __device__ __forceinline__ void wait_for_stage(const ptxmma::stage_ring<Shared::stages>& ring, int consumer, int thread) {
    if constexpr (together) {
      if (thread < WARP) shared.barriers.wait_full(ring);
      ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);
    } else {
      shared.barriers.wait_full(ring);
    }
  }

  // Multiplies a tile, or the consumer's part of it. `empty` are the barriers of the block that this thread tells.
  __device__ __forceinline__ void multiply(
      typename Sums::type (&sums)[parts], ptxmma::stage_ring<Shared::stages>& ring, int steps, uint64_t* empty, int consumer, int thread) {
    const int row = together ? consumer * parts * Multiply::m : 0;
    ptxmma::stage_ring<Shared::stages> previous;
    int step = 0;
    typename Operands::Registers registers[Operands::sets];
    const auto multiply_stage = [&](int set) {
      wait_for_stage(ring, consumer, thread);
      Operands::multiply(sums, registers[set], shared.ring[ring.stage], row, thread, step > 0);
      ptxmma::wgmma_wait_group<1>();  // of the stage before: this one keeps the tensor cores busy while the next is issued
      if (step > 0) release(empty, previous, thread);
      previous = ring;
      ++step;
      ring.next();
    };
    // Where stages take turns with sets of registers, the assembler has to see that each turn is a whole one.
    while (step + Operands::sets <= steps) {
#pragma unroll
      for (int set = 0; set < Operands::sets; ++set) multiply_stage(set);
    }
    if constexpr (Operands::sets == 2) {
      if (step < steps) multiply_stage(0);
    }
    if constexpr (in_turn) ptxmma::named_barrier_arrive(TURN + 1 - consumer, CONSUMERS * WARPGROUP);  // now it is the other's turn
    ptxmma::wgmma_wait_group<0>();
    release(empty, previous, thread);
  }

  // Writes a chunk to (row, column) of D: the columns from `left` on of a part of a tile, already scaled. Those before `done` have been
  // written before.
  __device__ __forceinline__ void write(
      typename Sums::type& sums, int left, int done, int row, int column, int consumer, int thread, uint32_t parity) {
    const Scalar beta = arguments.beta;
    unsigned char* buffer = shared.d[consumer % writers][parity % buffers];
    uint64_t* loaded = &shared.loaded[consumer];
    if (thread == 0) {
      ptxmma::cp_async_bulk_wait_group_read<buffers - 1>();  // TMA has read what the buffer held before
      if (beta != 0) {
        uint64_t state;
        ptxmma::mbarrier_arrive_expect_tx_shared(state, loaded, D::bytes);
        ptxmma::load_tile<D>(buffer, &arguments.c, row, column, loaded);
      }
    }
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);

    auto& part = ptxmma::columns<Sums, chunk>(sums, left);
    constexpr int count = sizeof part / sizeof(Scalar);
    using Pair = decltype(pair(Output(), Scalar(), Scalar()));
    Pair pairs[count / 2];
    auto& words = reinterpret_cast<uint32_t(&)[sizeof pairs / sizeof(uint32_t)]>(pairs);
    if (beta != 0) {
      ptxmma::mbarrier_wait(loaded, parity);
      ptxmma::load_fragment<Sums, D>(words, shared_address(buffer), thread);
    }
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      if (beta != 0 && left + Sums::col(0, i) >= done) {
        part[i] += beta * static_cast<Scalar>(pairs[i / 2].x);
        part[i + 1] += beta * static_cast<Scalar>(pairs[i / 2].y);
      }
      pairs[i / 2] = pair(Output(), part[i], part[i + 1]);
    }
    ptxmma::store_fragment<Sums, D>(shared_address(buffer), words, thread);
    ptxmma::fence_proxy_async_shared_cta();  // TMA sees what the threads wrote
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);
    if (thread == 0) {
      ptxmma::store_tile<D>(&arguments.d, row, column, buffer);
      ptxmma::cp_async_bulk_commit_group();
    }
  }

  // Leaves the sums of a split in memory. The last of a tile's splits adds them up, always in the same order, and returns true.
  __device__ __forceinline__ bool add_splits(typename Sums::type (&sums)[parts], int turn, int consumer, int thread) {
    constexpr int registers = sizeof sums[0] / sizeof(Scalar);
    constexpr int stride = WARPGROUP * registers * parts;  // numbers of a consumer
    const int share = (turn % tiles * CLUSTER + rank) * sharers + (together ? consumer : 0), shares = tiles * CLUSTER * sharers;
    const auto place = [&](int split) { return arguments.sums + (int64_t(split) * shares + share) * stride + thread; };
    Scalar* mine = place(turn / tiles);
#pragma unroll
    for (int p = 0; p < parts; ++p) {
#pragma unroll
      for (int i = 0; i < registers; ++i) __stcg(mine + (p * registers + i) * WARPGROUP, sums[p][i]);
    }
    __threadfence();
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);  // all have written
    if (thread == 0) shared.finished[consumer] = atomicAdd(&arguments.finished[share], 1);
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);
    if (shared.finished[consumer] != arguments.splits - 1) return false;
    __threadfence();
    if (thread == 0) arguments.finished[share] = 0;
#pragma unroll
    for (int p = 0; p < parts; ++p) {
#pragma unroll
      for (int i = 0; i < registers; ++i) sums[p][i] = __ldcg(place(0) + (p * registers + i) * WARPGROUP);
    }
    for (int split = 1; split < arguments.splits; ++split) {
#pragma unroll
      for (int p = 0; p < parts; ++p) {
#pragma unroll
        for (int i = 0; i < registers; ++i) sums[p][i] += __ldcg(place(split) + (p * registers + i) * WARPGROUP);
      }
    }
    return true;
  }

  __device__ __forceinline__ void write_tile(typename Sums::type (&sums)[parts], int turn, int consumer, int thread, uint32_t& parity) {
    if (arguments.alpha != 1) {
#pragma unroll
      for (auto& registers : sums) {
#pragma unroll
        for (Scalar& sum : registers) sum *= arguments.alpha;
      }
    }
    const auto [row, column] = corner(turn % tiles);
    const int top = row + (together ? consumer * parts * Multiply::m : 0);
#pragma unroll
    for (int p = 0; p < parts; ++p) {
#pragma unroll
      for (int i = 0; i < chunks; ++i, parity ^= 1) {
        const int done = i * chunk, left = done + chunk < columns ? done : columns - chunk;
        write(sums[p], left, done, top + p * Multiply::m, column + left, consumer, thread, parity);
      }
    }
  }

  __device__ __forceinline__ void consume(int consumer, int thread) {
    typename Sums::type sums[parts];
    ptxmma::stage_ring<Shared::stages> ring;
    uint64_t* empty = ptxmma::map_shared_rank(shared.barriers.empty, thread % CLUSTER);
    uint32_t parity = 0;
    if constexpr (few) ptxmma::griddepcontrol_wait();  // the kernel in front may use D, or be this one, with its own use of the sums
    if (in_turn && consumer == 1) {
      ptxmma::named_barrier_arrive(TURN, CONSUMERS * WARPGROUP);  // the other takes the first turn
      ptxmma::named_barrier_arrive(WRITE, CONSUMERS * WARPGROUP);
      ring.skip(steps(cluster));
    }
    for (int turn = cluster + (in_turn ? consumer * clusters : 0); turn < tiles * arguments.splits; turn += consumers / sharers * clusters) {
      if constexpr (in_turn) ptxmma::named_barrier_sync(TURN + consumer, CONSUMERS * WARPGROUP);
#pragma unroll
      for (auto& registers : sums) ptxmma::fence_accumulator(registers);
      multiply(sums, ring, steps(turn), empty, consumer, thread);
      if constexpr (in_turn) ring.skip(steps(turn + clusters));  // the other's turn
#pragma unroll
      for (auto& registers : sums) ptxmma::fence_accumulator(registers);

      const bool whole = !few || arguments.splits == 1 || add_splits(sums, turn, consumer, thread);
      if constexpr (in_turn) ptxmma::named_barrier_sync(WRITE + consumer, CONSUMERS * WARPGROUP);
      if (whole) write_tile(sums, turn, consumer, thread, parity);
      if constexpr (in_turn) {
        if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<0>();  // the buffers are the other's now
        ptxmma::named_barrier_arrive(WRITE + 1 - consumer, CONSUMERS * WARPGROUP);
      }
    }
    if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<0>();  // shared memory lives until TMA has read it
  }
};

template <class G>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(G::threads, G::blocks)
    kernel(const __grid_constant__ Arguments<typename G::Source, typename G::Scalar> arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename G::Shared*>(memory);
  if (threadIdx.x == 0) {
    ptxmma::prefetch_tensor_map(&arguments.source.a);
    ptxmma::prefetch_tensor_map(&arguments.source.b);
    ptxmma::prefetch_tensor_map(&arguments.d);
    shared.barriers.init(1, G::arrivals);
    for (uint64_t& barrier : shared.loaded) ptxmma::mbarrier_init_shared(&barrier, 1);
    ptxmma::fence_mbarrier_init();
  }
  ptxmma::cluster_sync();  // the barriers of both blocks exist
  if constexpr (G::few) ptxmma::griddepcontrol_launch_dependents();

  G gemm{arguments, shared};
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp's threads agree
  if (warpgroup == 0) {
    if constexpr (!G::few) ptxmma::setmaxnreg_dec<PRODUCER_REGISTERS>();
    if (threadIdx.x < WARP && ptxmma::elect_one()) gemm.produce();
  } else {
    if constexpr (!G::few) ptxmma::setmaxnreg_inc<CONSUMER_REGISTERS>();
    gemm.consume(warpgroup - 1, threadIdx.x % WARPGROUP);
  }
  ptxmma::cluster_sync();  // a block stays until the other has nothing more to write to it
}

}  // namespace gemm_sm90
