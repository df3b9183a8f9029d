// O = softmax(scale * Q * K^T) * V on Hopper, for each head: the forward pass of attention, with heads of 64 or 128 elements, and the logarithm
// of the sum of exponentials that a backward pass needs.
//
// A block has three warpgroups. One thread of the first, the producer, has TMA bring Q, K and V into shared memory. Each of the others, the
// consumers, computes 64 rows of O. It never waits for its own softmax: while the tensor cores compute the scores of the next keys and add
// the product of the last probabilities and V, it takes the exponentials of the scores between. The consumers take turns at the tensor
// cores (ping-pong), so that the softmax of one runs beside the products of the other. The probabilities never leave their registers: the
// accumulator of the first product becomes A of the second.
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
constexpr int CONSUMERS = 2;
constexpr ptxmma_majorness K_MAJOR = PTXMMA_MAJORNESS_K, MN_MAJOR = PTXMMA_MAJORNESS_MN;
constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;

// Named barriers: whose turn it is to multiply, and the threads of a consumer among themselves. 0 is that of __syncthreads.
constexpr int TURN = 1, TOGETHER = TURN + CONSUMERS;

__device__ __forceinline__ void arrive(uint64_t* barrier) {
  uint64_t state;
  ptxmma::mbarrier_arrive_shared(state, barrier);
}

// If causal, row i sees the keys up to i + keys - rows: the last row sees all of them.
template <class Element, bool causal, int head>
struct Attention {
  using Type = ptxmma::storage<Element>;
  static_assert(head == 64 || head == 128, "elements of a head");
  static constexpr int width = 176, stages = 2;  // keys of a block, blocks of K and of V that wait in line
  using First = ptxmma::wgmma<ptxmma::shape<64, width>, ptxmma::f32, Element, Element>;  // Q * K^T
  using Second = ptxmma::wgmma<ptxmma::shape<64, head>, ptxmma::f32, Element, Element>;  // P * V
  using Scores = typename First::d;
  using Sums = typename Second::d;
  using Probabilities = ptxmma::carried<Scores, typename Second::a>;
  using Q = typename First::template a_tile<K_MAJOR, SWIZZLE, First::m, head>;
  using K = typename First::template b_tile<K_MAJOR, SWIZZLE, width, head>;
  using V = typename Second::template b_tile<MN_MAJOR, SWIZZLE, head, width>;
  static_assert(!Probabilities::permuted(), "rows of V would have to be permuted");
  static constexpr int rows = CONSUMERS * First::m;

  using Order = Tiles<causal, rows, width>;
  using Place = typename Order::Place;

  struct Shared {
    alignas(Q::alignment) unsigned char q[CONSUMERS][Q::bytes];  // and O, once Q is no longer needed
    alignas(K::alignment) unsigned char k[stages][K::bytes];
    alignas(V::alignment) unsigned char v[stages][V::bytes];
    uint64_t q_full[CONSUMERS], q_empty[CONSUMERS];
    ptxmma::stage_barriers<stages> k_barriers, v_barriers;
    int tile[CONSUMERS];  // to which Q belongs
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
          for (int consumer = 0; consumer < CONSUMERS; ++consumer) {
            mbarrier_wait(&shared.q_empty[consumer], parity);
            shared.tile[consumer] = number;
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
    for (int consumer = 0; consumer < CONSUMERS; ++consumer) {
      mbarrier_wait(&shared.q_empty[consumer], parity);
      shared.tile[consumer] = number;  // there is none
      arrive(&shared.q_full[consumer]);
    }
  }

  // Issues the product of Q and a block of keys.
  __device__ __forceinline__ void multiply_first(typename Scores::type& scores, const unsigned char* q, const ptxmma::stage_ring<stages>& ring) {
    shared.k_barriers.wait_full(ring);
    ptxmma::fence_accumulator(scores);
    ptxmma::wgmma_fence();
    const auto a = Q::descriptor(shared_address(q)), b = K::descriptor(shared_address(shared.k[ring.stage]));
#pragma unroll
    for (int step = 0; step < Q::steps; ++step) First::call(scores, Q::advance(a, step), K::advance(b, step), step > 0);
    ptxmma::wgmma_commit_group();
  }

  using Operands = typename Second::a::type[V::steps];

  // Issues the product of the probabilities and a block of values.
  __device__ __forceinline__ void multiply_second(typename Sums::type& sums, Operands& operands, int stage) {
    ptxmma::fence_accumulator(sums);
    ptxmma::wgmma_fence();
    const auto b = V::descriptor(shared_address(shared.v[stage]));
#pragma unroll
    for (int step = 0; step < V::steps; ++step) Second::call(sums, operands[step], V::advance(b, step), true);
    ptxmma::wgmma_commit_group();
  }

  // Removes the scores of keys that a row does not see.
  __device__ __forceinline__ void mask(typename Scores::type& scores, int row, int key, int thread) const {
#pragma unroll
    for (int i = 0; i < Scores::elements; ++i) {
      if (key + int(Scores::col(thread, i)) >= tiles.seen(row + Scores::row(thread, i))) scores[i] = -INFINITY;
    }
  }

  static __device__ __forceinline__ void carry(Operands& operands, const typename Scores::type& scores) {
#pragma unroll
    for (int step = 0; step < V::steps; ++step) {
      float elements[Second::a::elements];
      Probabilities::take(elements, scores, step);
#pragma unroll
      for (int i = 0; i < Second::a::registers; ++i) operands[step][i] = pair(Type(), elements[2 * i], elements[2 * i + 1]);
    }
  }

  // One block further: its scores, and the values of the block before.
  template <bool masked>
  __device__ __forceinline__ void advance(typename Scores::type& scores, typename Sums::type& sums, Operands& operands, PerRow& largest,
                                          PerRow& totals, ptxmma::stage_ring<stages>& ring_k, ptxmma::stage_ring<stages>& ring_v, int row, int key, int consumer,
                                          int thread) {
    ptxmma::named_barrier_sync(TURN + consumer, CONSUMERS * WARPGROUP);
    multiply_first(scores, shared.q[consumer], ring_k);
    multiply_second(sums, operands, ring_v.stage);
    ptxmma::named_barrier_arrive(TURN + 1 - consumer, CONSUMERS * WARPGROUP);  // now it is the other's turn
    ptxmma::wgmma_wait_group<1>();
    ptxmma::fence_accumulator(scores);
    if (thread == 0) shared.k_barriers.release(ring_k);
    ring_k.next();
    PerRow factors;
    if (masked) mask(scores, row, key, thread);
    soften<Scores, masked>(scores, largest, totals, factors, arguments.scale);
    // The next values are waited for here because a loop keeps the assembler from moving the exponentials beyond the end of the product.
    ptxmma::fence_accumulator(scores);
    const auto read = ring_v;
    ring_v.next();
    shared.v_barriers.wait_full(ring_v);
    finish(sums, operands, read, thread);
    carry(operands, scores);
#pragma unroll
    for (int i = 0; i < Sums::elements; ++i) sums[i] *= factors[row_of<Sums>(i)];
  }

  // Waits for the second product.
  __device__ __forceinline__ void finish(
      typename Sums::type& sums, Operands& operands, const ptxmma::stage_ring<stages>& read, int thread) {
    ptxmma::wgmma_wait_group<0>();
    ptxmma::fence_accumulator(sums);
#pragma unroll
    for (auto& registers : operands) ptxmma::fence_accumulator(registers);
    if (thread == 0) shared.v_barriers.release(read);
  }

  __device__ __forceinline__ void consume(int consumer, int thread) {
    ptxmma::stage_ring<stages> ring_k, ring_v;
    unsigned char* q = shared.q[consumer];
    if (consumer == 1) ptxmma::named_barrier_arrive(TURN, CONSUMERS * WARPGROUP);  // the other takes the first turn
    for (uint32_t parity = 0;; parity ^= 1) {
      mbarrier_wait(&shared.q_full[consumer], parity);
      const int number = shared.tile[consumer];
      if (number >= tiles.count) break;
      const Place at = tiles.place(number);
      const int row = at.row + consumer * First::m, whole = max(0, tiles.seen(row)) / width;  // blocks of which its rows see every key

      typename Scores::type scores;
      typename Sums::type sums = {};
      Operands operands;
      PerRow largest = {-INFINITY, -INFINITY}, totals = {}, factors;
      int block = at.blocks - 1;
      multiply_first(scores, q, ring_k);
      ptxmma::wgmma_wait_group<0>();
      ptxmma::fence_accumulator(scores);
      if (thread == 0) shared.k_barriers.release(ring_k);
      ring_k.next();
      mask(scores, row, block * width, thread);
      soften<Scores, true>(scores, largest, totals, factors, arguments.scale);
      carry(operands, scores);
      shared.v_barriers.wait_full(ring_v);
      while (--block >= whole) {
        advance<true>(scores, sums, operands, largest, totals, ring_k, ring_v, row, block * width, consumer, thread);
      }
      for (; block >= 0; --block) {
        advance<false>(scores, sums, operands, largest, totals, ring_k, ring_v, row, block * width, consumer, thread);
      }
      multiply_second(sums, operands, ring_v.stage);
      finish(sums, operands, ring_v, thread);
      ring_v.next();
      write(sums, largest, totals, at, row, consumer, thread);
    }
    if (thread == 0) ptxmma::cp_async_bulk_wait_group_read<0>();  // shared memory lives until TMA has read it
  }

  __device__ __forceinline__ void write(
      typename Sums::type& sums, const PerRow& largest, PerRow& totals, const Place& at, int row, int consumer, int thread) {
    PerRow inverse;
    invert(totals, inverse);
    if (arguments.logarithms != nullptr && thread % 4 == 0) {  // four threads have elements of a row
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        constexpr int second = 2;  // the first element of a thread in its second row
        const int number = row + Sums::row(thread, i * second);
        float* logarithm = arguments.logarithms + (int64_t(at.batch) * arguments.heads + at.head) * arguments.rows + number;
        if (number < arguments.rows) *logarithm = log_of_sum(largest[i], totals[i], arguments.scale);
      }
    }
    uint32_t pairs[Sums::elements / 2];
#pragma unroll
    for (int i = 0; i < Sums::elements; i += 2) {
      pairs[i / 2] = pair(Type(), sums[i] * inverse[row_of<Sums>(i)], sums[i + 1] * inverse[row_of<Sums>(i)]);
    }
    unsigned char* buffer = shared.q[consumer];
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);  // Q has been read
    ptxmma::store_fragment<Sums, Q>(shared_address(buffer), pairs, thread);
    ptxmma::fence_proxy_async_shared_cta();  // TMA sees what the threads wrote
    ptxmma::named_barrier_sync(TOGETHER + consumer, WARPGROUP);
    if (thread == 0) {
      ptxmma::store_tile<Q>(&arguments.o, row, 0, buffer, at.head, at.batch);
      ptxmma::cp_async_bulk_commit_group();
      ptxmma::cp_async_bulk_wait_group_read<0>();
    }
    arrive(&shared.q_empty[consumer]);
  }
};

template <class A>
__global__ void __launch_bounds__((1 + CONSUMERS) * WARPGROUP, 1) kernel(const __grid_constant__ Arguments arguments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename A::Shared*>(memory);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&arguments.q, &arguments.k, &arguments.v, &arguments.o}) ptxmma::prefetch_tensor_map(map);
    for (uint64_t& barrier : shared.q_full) ptxmma::mbarrier_init_shared(&barrier, 1);
    for (uint64_t& barrier : shared.q_empty) ptxmma::mbarrier_init_shared(&barrier, WARPGROUP);
    for (int stage = 0; stage < A::stages; ++stage) {
      for (auto* barriers : {&shared.k_barriers, &shared.v_barriers}) ptxmma::mbarrier_init_shared(&barriers->full[stage], 1);
      for (auto* barriers : {&shared.k_barriers, &shared.v_barriers}) ptxmma::mbarrier_init_shared(&barriers->empty[stage], CONSUMERS);
    }
    ptxmma::fence_mbarrier_init();
  }
  __syncthreads();

  A attention{arguments, shared};
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp's threads agree
  if (warpgroup == 0) {
    ptxmma::setmaxnreg_dec<24>();
    if (threadIdx.x < WARP && ptxmma::elect_one()) attention.produce();
  } else {
    ptxmma::setmaxnreg_inc<240>();
    attention.consume(warpgroup - 1, threadIdx.x % WARPGROUP);
  }
}

}  // namespace attention_sm90
