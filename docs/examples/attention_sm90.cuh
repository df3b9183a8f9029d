// O = softmax(scale * Q * K^T) * V on Hopper, for each head: the forward pass of attention, with heads of 64 or 128 elements, and the logarithm
// of the sum of exponentials that a backward pass needs.
//
// One thread of a block's first warpgroup, the producer, has TMA bring Q, K and V into shared memory. Each of the other warpgroups, two or
// three consumers, computes 64 rows of O. A consumer issues the product of Q and the next keys together with that of the last probabilities and
// their values, and takes the exponentials of the scores while the tensor cores finish. The first scores of its next tile come with the last
// product of the tile before. The consumers take turns at the tensor cores (ping-pong), so that the softmax of one runs beside the products of
// the others. The probabilities never leave their registers: the accumulator of the first product becomes A of the second.
// The blocks are persistent: each takes the next tile of O when it has done one. attention_sm90_plan.cuh launches the kernel.
#pragma once

#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/stage_ring.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/cuda/thread_groups.cuh>
#include <ptxmma/cuda/tile_transfers.cuh>
#include <ptxmma/setmaxnreg.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/f16_f16.cuh>

#include "attention_sm90_softmax.cuh"
#include "attention_sm90_tiles.cuh"

namespace attention_sm90 {

using ptxmma::mbarrier_wait;
using ptxmma::shared_address;

constexpr int WARP = 32, WARPGROUP = 128;  // threads
constexpr ptxmma_majorness K_MAJOR = PTXMMA_MAJORNESS_K, MN_MAJOR = PTXMMA_MAJORNESS_MN;
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;

// The first named barrier, of one for each consumer: it is its turn to multiply. 0 is the barrier of __syncthreads.
constexpr int TURN = 1;

__device__ __forceinline__ void arrive(uint64_t* barrier) {
  uint64_t state;
  ptxmma::mbarrier_arrive_shared(state, barrier);
}

// If causal, row i sees the keys up to i + keys - rows: the last row sees all of them.
template <class Element, bool causal, int head, int width>
struct Attention {
  using Type = ptxmma::storage<Element>;
  static_assert(head == 64 || head == 128, "elements of a head");
  static constexpr int stages = 2;  // blocks of K and of V, of `width` keys each, that wait in line
  static constexpr int consumers = head == 64 ? 3 : 2, threads = (1 + consumers) * WARPGROUP;
  static constexpr int producer_registers = head == 64 ? 32 : 24, consumer_registers = head == 64 ? 160 : 240;  // of a thread
  using First = ptxmma::wgmma<ptxmma::shape<64, width>, ptxmma::f32, Element, Element>;  // Q * K^T
  using Second = ptxmma::wgmma<ptxmma::shape<64, head>, ptxmma::f32, Element, Element>;  // P * V
  using Scores = typename First::d;
  using Sums = typename Second::d;
  using Probabilities = ptxmma::carried<Scores, typename Second::a>;
  using Q = typename First::template a_tile<K_MAJOR, SWIZZLE, First::m, head>;
  using K = typename First::template b_tile<K_MAJOR, SWIZZLE, width, head>;
  using V = typename Second::template b_tile<MN_MAJOR, SWIZZLE, head, width>;
  static_assert(!Probabilities::permuted(), "rows of V would have to be permuted");
  static constexpr int rows = consumers * First::m;
  using O = ptxmma::shared_tile<Element, K_MAJOR, SWIZZLE, Second::m, 64>;  // the columns that pass through shared memory together

  using Order = Tiles<causal, rows, width>;
  using Place = typename Order::Place;

  struct Shared {
    alignas(Q::alignment) unsigned char q[consumers][Q::bytes];
    alignas(O::alignment) unsigned char o[consumers][O::bytes];
    alignas(K::alignment) unsigned char k[stages][K::bytes];
    alignas(V::alignment) unsigned char v[stages][V::bytes];
    uint64_t q_full[consumers], q_empty[consumers];
    ptxmma::stage_barriers<stages> k_barriers, v_barriers;
    Place place[consumers];  // of the tile to which Q belongs
  };

  const Arguments& arguments;
  Shared& shared;
  Order tiles{arguments};

  __device__ __forceinline__ void produce() {
    ptxmma::stage_ring<stages> ring_k, ring_v;
    uint32_t parity = 1;  // passes in the first round
    int number = blockIdx.x;
    for (; number < tiles.count; parity ^= 1) {
      const int following = gridDim.x + atomicAdd(arguments.next, 1);
      if (following == tiles.count + int(gridDim.x) - 1) *arguments.next = 0;  // the last block to ask leaves it as it was
      const Place at = tiles.place(number);
      const int key_head = at.head / arguments.heads_per_key;
      for (int block = at.blocks; block >= 0; --block) {  // from the last keys to the first; V comes one block later than K
        if (block > 0) {
          shared.k_barriers.wait_empty(ring_k);
          uint64_t* full = shared.k_barriers.expect(ring_k, K::bytes);
          ptxmma::load_tile<K>(shared.k[ring_k.stage], &arguments.k, (block - 1) * width, 0, full, key_head, at.batch);
          ring_k.next();
        }
        if (block == at.blocks) {
          for (int consumer = 0; consumer < consumers; ++consumer) {
            mbarrier_wait(&shared.q_empty[consumer], parity);
            shared.place[consumer] = at;
            uint64_t state, *full = &shared.q_full[consumer];
            ptxmma::mbarrier_arrive_expect_tx_shared(state, full, Q::bytes);
            ptxmma::load_tile<Q>(shared.q[consumer], &arguments.q, at.row + consumer * First::m, 0, full, at.head, at.batch);
          }
        } else {
          shared.v_barriers.wait_empty(ring_v);
          uint64_t* full = shared.v_barriers.expect(ring_v, V::bytes);
          ptxmma::load_tile<V>(shared.v[ring_v.stage], &arguments.v, 0, block * width, full, key_head, at.batch);
          ring_v.next();
        }
      }
      number = following;
    }
    for (int consumer = 0; consumer < consumers; ++consumer) {
      mbarrier_wait(&shared.q_empty[consumer], parity);
      shared.place[consumer].blocks = 0;  // there is none
      arrive(&shared.q_full[consumer]);
    }
  }

  using Operands = typename Second::a::type[V::steps];

  // State of a consumer: the tile that it computes, and where the next blocks of K and V lie.
  struct Progress {
    Place at;
    int row, blocks;  // the consumer's first row, and the blocks of keys that its rows see
    PerRow largest, totals;
    ptxmma::stage_ring<stages> ring_k, ring_v;
    uint32_t parity;  // of the phase that the next Q completes
  };

  __device__ __forceinline__ void begin_turn(int consumer) { ptxmma::named_barrier_sync(TURN + consumer, 2 * WARPGROUP); }
  __device__ __forceinline__ void end_turn(int consumer) { ptxmma::named_barrier_arrive(TURN + (consumer + 1) % consumers, 2 * WARPGROUP); }

  // Issues the product of Q and a block of keys.
  __device__ __forceinline__ void multiply_first(typename Scores::type& scores, const Progress& progress, int consumer) {
    shared.k_barriers.wait_full(progress.ring_k);
    ptxmma::fence_accumulator(scores);
    ptxmma::wgmma_fence();
    const auto a = Q::descriptor(shared_address(shared.q[consumer])), b = K::descriptor(shared_address(shared.k[progress.ring_k.stage]));
#pragma unroll
    for (int step = 0; step < Q::steps; ++step) First::call(scores, Q::advance(a, step), K::advance(b, step), step > 0);
    ptxmma::wgmma_commit_group();
  }

  // Issues the product of the probabilities and a block of values.
  __device__ __forceinline__ void multiply_second(typename Sums::type& sums, Operands& operands, const Progress& progress) {
    ptxmma::fence_accumulator(sums);
    ptxmma::wgmma_fence();
    const auto b = V::descriptor(shared_address(shared.v[progress.ring_v.stage]));
#pragma unroll
    for (int step = 0; step < V::steps; ++step) Second::call(sums, operands[step], V::advance(b, step), true);
    ptxmma::wgmma_commit_group();
  }

  // Waits for the first product, of which so many groups may be pending that were issued later.
  template <int later>
  __device__ __forceinline__ void finish_first(typename Scores::type& scores, Progress& progress, int thread) {
    ptxmma::wgmma_wait_group<later>();
    ptxmma::fence_accumulator(scores);
    if (thread == 0) shared.k_barriers.release(progress.ring_k);
    progress.ring_k.next();
  }

  // Waits for the second product, after which its values may go.
  __device__ __forceinline__ void finish_second(
      typename Sums::type& sums, Operands& operands, const ptxmma::stage_ring<stages>& ring, int thread) {
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(sums);
#pragma unroll
    for (auto& registers : operands) ptxmma::fence_accumulator(registers);
    if (thread == 0) shared.v_barriers.release(ring);
  }

  // Multiplies in this consumer's turn: Q and the next keys, the last probabilities and their values. Waits for the scores.
  __device__ __forceinline__ void multiply(
      typename Scores::type& scores, typename Sums::type& sums, Operands& operands, Progress& progress, int consumer, int thread) {
    begin_turn(consumer);
    multiply_first(scores, progress, consumer);
    multiply_second(sums, operands, progress);
    end_turn(consumer);
    finish_first<1>(scores, progress, thread);
  }

  // Waits for the values of this block, then for the product of the block before. The values come first because a loop keeps the assembler from
  // moving the exponentials beyond the end of the product.
  __device__ __forceinline__ void finish_before(
      typename Scores::type& scores, typename Sums::type& sums, Operands& operands, Progress& progress, int thread) {
    ptxmma::fence_accumulator(scores);
    const auto before = progress.ring_v;
    progress.ring_v.next();
    shared.v_barriers.wait_full(progress.ring_v);
    finish_second(sums, operands, before, thread);
  }

  // Removes the scores of keys that a row does not see.
  __device__ __forceinline__ void mask(typename Scores::type& scores, int row, int key, int thread) const {
#pragma unroll
    for (int i = 0; i < Scores::elements; ++i) {
      if (key + int(Scores::col(thread, i)) >= tiles.seen(row + Scores::row(thread, i))) scores[i] = -INFINITY;
    }
  }

  // The probabilities as A of the second product.
  static __device__ __forceinline__ void carry(Operands& operands, const typename Scores::type& scores) {
#pragma unroll
    for (int step = 0; step < V::steps; ++step) {
      float elements[Second::a::elements];
      Probabilities::take(elements, scores, step);
#pragma unroll
      for (int i = 0; i < Second::a::registers; ++i) operands[step][i] = pair(Type(), elements[2 * i], elements[2 * i + 1]);
    }
  }

  // Blocks of which all rows from this one on see every key.
  __device__ __forceinline__ int whole(int row) const { return max(0, tiles.seen(row)) / width; }

  // The softmax of a tile's first block.
  __device__ __forceinline__ void begin(typename Scores::type& scores, Progress& progress, int consumer, int thread) {
    if (progress.blocks == 1) arrive(&shared.q_empty[consumer]);
    const int block = progress.blocks - 1;
    if (block >= whole(progress.row)) mask(scores, progress.row, block * width, thread);
    PerRow factors;
    progress.largest[0] = progress.largest[1] = -INFINITY;
    progress.totals[0] = progress.totals[1] = 0;
    soften<Scores, true>(scores, progress.largest, progress.totals, factors, arguments.scale);
  }

  // One block further: its scores, and the values of the block before.
  template <bool masked>
  __device__ __forceinline__ void advance(
      typename Scores::type& scores, typename Sums::type& sums, Operands& operands, Progress& progress, int block, int consumer, int thread) {
    multiply(scores, sums, operands, progress, consumer, thread);
    if (block == 0) arrive(&shared.q_empty[consumer]);
    PerRow factors;
    if (masked) mask(scores, progress.row, block * width, thread);
    soften<Scores, masked>(scores, progress.largest, progress.totals, factors, arguments.scale);
    finish_before(scores, sums, operands, progress, thread);
    carry(operands, scores);
#pragma unroll
    for (int i = 0; i < Sums::elements; ++i) sums[i] *= factors[row_of<Sums>(i)];
  }

  // Leaves out so many blocks, of which no row of this consumer sees a key.
  __device__ __forceinline__ void pass(Progress& progress, int blocks, int consumer, int thread) {
    for (; blocks > 0; --blocks) {
      begin_turn(consumer);
      end_turn(consumer);
      shared.k_barriers.wait_full(progress.ring_k);
      shared.v_barriers.wait_full(progress.ring_v);
      if (thread == 0) {
        shared.k_barriers.release(progress.ring_k);
        shared.v_barriers.release(progress.ring_v);
      }
      progress.ring_k.next();
      progress.ring_v.next();
    }
  }

  // Waits for Q of the next tile. Returns false if there is none.
  __device__ __forceinline__ bool take(Progress& progress, int consumer) {
    mbarrier_wait(&shared.q_full[consumer], progress.parity);
    progress.parity ^= 1;
    progress.at = shared.place[consumer];
    progress.row = progress.at.row + consumer * First::m;
    const int last = progress.row + First::m - 1;
    progress.blocks = last < 0 ? 0 : tiles.blocks(last);
    return progress.at.blocks > 0;
  }

  __device__ __forceinline__ void consume(int consumer, int thread) {
    if (consumer == consumers - 1) end_turn(consumer);  // the first consumer takes the first turn
    Progress progress;
    progress.ring_k = progress.ring_v = {};
    progress.parity = 0;
    for (bool more = take(progress, consumer); more;) {
      pass(progress, progress.at.blocks - progress.blocks, consumer, thread);
      if (progress.blocks == 0) {  // all of its rows lie before the first
        arrive(&shared.q_empty[consumer]);
        more = take(progress, consumer);
        continue;
      }
      typename Scores::type scores;
      typename Sums::type sums = {};
      Operands operands;
      begin_turn(consumer);
      multiply_first(scores, progress, consumer);
      end_turn(consumer);
      finish_first<0>(scores, progress, thread);
      begin(scores, progress, consumer, thread);
      carry(operands, scores);
      shared.v_barriers.wait_full(progress.ring_v);
      Output output;
      for (;;) {
        const int first_whole = whole(progress.row);
        int block = progress.blocks - 1;
        while (--block >= first_whole) advance<true>(scores, sums, operands, progress, block, consumer, thread);
        for (; block >= 0; --block) advance<false>(scores, sums, operands, progress, block, consumer, thread);
        output = conclude(progress, thread);
        more = take(progress, consumer);
        if (!more || progress.blocks < progress.at.blocks) break;
        // The first scores of the next tile are computed beside the last product of this one.
        multiply(scores, sums, operands, progress, consumer, thread);
        begin(scores, progress, consumer, thread);
        finish_before(scores, sums, operands, progress, thread);
        write(sums, output, consumer, thread);
        carry(operands, scores);
#pragma unroll
        for (float& sum : sums) sum = 0;
      }
      multiply_second(sums, operands, progress);
      finish_second(sums, operands, progress.ring_v, thread);
      progress.ring_v.next();
      write(sums, output, consumer, thread);
    }
  }

  static constexpr int chunk = 16 / sizeof(Type), lanes = O::k / chunk, rows_at_once = WARP / lanes;  // elements of a lane, lanes of a row

  // Where a lane writes O, and the factors of the sums.
  struct Output {
    Type* data;  // of the first row that the lane writes
    int row;
    PerRow inverse;
  };

  // The softmax of a tile is done: writes the logarithms of its sums.
  __device__ __forceinline__ Output conclude(Progress& progress, int thread) {
    const Place& at = progress.at;
    Output output;
    invert(progress.totals, output.inverse);
    if (arguments.logarithms != nullptr && thread % 4 == 0) {  // four threads have elements of a row
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        constexpr int second = 2;  // the first element of a thread in its second row
        const int number = progress.row + Sums::row(thread, i * second);
        float* logarithm = arguments.logarithms + (int64_t(at.batch) * arguments.heads + at.head) * arguments.rows + number;
        if (number >= 0) *logarithm = log_of_sum(progress.largest[i], progress.totals[i], arguments.scale);
      }
    }
    const auto& o = arguments.o;
    output.row = progress.row + row_of_lane(thread);
    output.data = static_cast<Type*>(o.data) + at.batch * o.batch + at.head * o.head + output.row * o.row + thread % lanes * chunk;
    return output;
  }

  // The first row, of the consumer's, that a lane writes.
  static __device__ __forceinline__ int row_of_lane(int thread) { return thread / WARP * (Second::m / 4) + thread % WARP / lanes; }

  // Writes a tile of O. The rows of each warp pass through shared memory, so that eight lanes write 128 bytes of a row.
  __device__ __forceinline__ void write(const typename Sums::type& sums, const Output& output, int consumer, int thread) {
    unsigned char* buffer = shared.o[consumer];
#pragma unroll
    for (int first = 0; first < head; first += O::k) {
      constexpr int elements = Second::m * O::k / WARPGROUP, stores = Second::m / 4 / rows_at_once;  // of a thread
      uint32_t pairs[elements / 2];
#pragma unroll
      for (int i = 0; i < elements; i += 2) {
        const float* both = &sums[first / O::k * elements + i];
        pairs[i / 2] = pair(Type(), both[0] * output.inverse[row_of<Sums>(i)], both[1] * output.inverse[row_of<Sums>(i)]);
      }
      __syncwarp();  // what was in the buffer has been read
      ptxmma::store_fragment<Sums, O>(shared_address(buffer), pairs, thread);
      __syncwarp();
      uint4 chunks[stores];
#pragma unroll
      for (int i = 0; i < stores; ++i) {
        chunks[i] = *reinterpret_cast<const uint4*>(buffer + O::offset(row_of_lane(thread) + i * rows_at_once, thread % lanes * chunk));
      }
#pragma unroll
      for (int i = 0; i < stores; ++i) {
        if (output.row + i * rows_at_once >= 0) *reinterpret_cast<uint4*>(output.data + i * rows_at_once * arguments.o.row + first) = chunks[i];
      }
    }
  }
};

template <class A>
__global__ void __launch_bounds__(A::threads, 1) kernel(const __grid_constant__ Arguments arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename A::Shared*>(memory);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&arguments.q, &arguments.k, &arguments.v}) ptxmma::prefetch_tensor_map(map);
    for (uint64_t& barrier : shared.q_full) ptxmma::mbarrier_init_shared(&barrier, 1);
    for (uint64_t& barrier : shared.q_empty) ptxmma::mbarrier_init_shared(&barrier, WARPGROUP);
    for (int stage = 0; stage < A::stages; ++stage) {
      for (auto* barriers : {&shared.k_barriers, &shared.v_barriers}) ptxmma::mbarrier_init_shared(&barriers->full[stage], 1);
      for (auto* barriers : {&shared.k_barriers, &shared.v_barriers}) ptxmma::mbarrier_init_shared(&barriers->empty[stage], A::consumers);
    }
    ptxmma::fence_mbarrier_init();
  }
  __syncthreads();

  A attention{arguments, shared};
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp's threads agree
  if (warpgroup == 0) {
    ptxmma::setmaxnreg_dec<A::producer_registers>();
    if (threadIdx.x < WARP && ptxmma::elect_one()) attention.produce();
  } else {
    ptxmma::setmaxnreg_inc<A::consumer_registers>();
    attention.consume(warpgroup - 1, threadIdx.x % WARPGROUP);
  }
}

}  // namespace attention_sm90
