// One tile of weights for each block: D = W * X with the generated wrapper, every thread with its registers from memory.
#include <ptxmma/mma_sp/f16_f16.cuh>
extern "C" __global__ void multiply(float (*d)[32][4], const uint32_t (*a)[32][4], const uint32_t (*b)[2 * 2], const uint32_t (*e)[32]) {
  const int tile = blockIdx.x, lane = threadIdx.x;
  ptxmma::mma_sp_ordered_metadata_m16n8k32_f32_f16_f16_f32<0>(d[tile][lane], a[tile][lane], b[lane], {}, e[tile][lane]);
}
