// A ring of stages in shared memory: one thread fills them by bulk copies, four warps multiply the numbers
// and write them back the same way.
#pragma once

#include <ptxmma/cp_async_bulk/cp_async_bulk.cuh>
#include <ptxmma/cuda/ordering.cuh>
#include <ptxmma/cuda/stage_ring.cuh>

namespace pipeline {

constexpr int STAGES = 4, NUMBERS = 1024, READERS = 128;  // numbers of a stage, threads that read it
constexpr uint32_t BYTES = NUMBERS * sizeof(float);

// Multiplies NUMBERS x tiles numbers. Launch with READERS + 32 threads.
__global__ void __launch_bounds__(READERS + 32) scale(const float* in, float* out, int tiles, float factor) {
  __shared__ alignas(128) float stage[STAGES][NUMBERS];
  __shared__ alignas(128) float result[NUMBERS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  uint64_t state;
  if (threadIdx.x == 0) {
    for (int number = 0; number < STAGES; ++number) {
      ptxmma::mbarrier_init_shared(&full[number], 1);
      ptxmma::mbarrier_init_shared(&empty[number], READERS);
    }
  }
  __syncthreads();  // the barriers are visible
  if (threadIdx.x == READERS) {
    for (int tile = blockIdx.x, round = 0; tile < tiles; tile += gridDim.x, ++round) {
      const int number = round % STAGES;
      ptxmma::mbarrier_wait(&empty[number], round / STAGES % 2 ^ 1);  // the first time at once
      ptxmma::mbarrier_arrive_expect_tx_shared(state, &full[number], BYTES);
      ptxmma::cp_async_bulk_shared_cluster_global(stage[number], in + size_t(tile) * NUMBERS, BYTES, &full[number]);
    }
  } else if (threadIdx.x < READERS) {
    for (int tile = blockIdx.x, round = 0; tile < tiles; tile += gridDim.x, ++round) {
      const int number = round % STAGES;
      ptxmma::mbarrier_wait(&full[number], round / STAGES % 2);
      float values[NUMBERS / READERS];
      for (int part = 0; part < NUMBERS / READERS; ++part) values[part] = stage[number][part * READERS + threadIdx.x];
      ptxmma::mbarrier_arrive_shared(state, &empty[number]);  // this thread has read the stage
      if (threadIdx.x == 0) ptxmma::cp_async_bulk_wait_group_read<0>();  // the result of the round before has been read
      asm volatile("bar.sync 1, 128;" : : : "memory");
      for (int part = 0; part < NUMBERS / READERS; ++part) result[part * READERS + threadIdx.x] = values[part] * factor;
      ptxmma::fence_proxy_async();  // every thread that has written, before the barrier
      asm volatile("bar.sync 1, 128;" : : : "memory");
      if (threadIdx.x == 0) {
        ptxmma::cp_async_bulk_global_shared_cta_bulk_group(out + size_t(tile) * NUMBERS, result, BYTES);
        ptxmma::cp_async_bulk_commit_group();
      }
    }
    if (threadIdx.x == 0) ptxmma::cp_async_bulk_wait_group<0>();  // shared memory may go
  }
}

}  // namespace pipeline
