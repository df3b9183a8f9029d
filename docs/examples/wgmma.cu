// A warpgroup multiplies one tile: D = A * B, 64x64x64, bf16 in, f32 out, both operands in shared memory.
//
//   nvcc -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a wgmma.cu -o wgmma && ./wgmma
//
// A and B lie in shared memory K-major with the 128-byte swizzle: a row of 64 bf16 elements fills one span of 128 bytes.
// Small integers make every sum exact, so the result must equal the host's bit for bit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_bf16.h>

#include <ptxmma/shared_memory.h>
#include <ptxmma/wgmma/bf16_bf16.cuh>

using ptxmma::bf16;
using ptxmma::f32;
constexpr int M = 64, N = 64, K = 64;
constexpr int STEP = 16;  // K of one instruction

// One name picks the function, the registers of each operand, and their layouts.
using Multiply = ptxmma::wgmma<ptxmma::shape<M, N, STEP>, f32, bf16, bf16>;

constexpr ptxmma_swizzle SWIZZLE = PTXMMA_SWIZZLE_128B;
constexpr uint32_t SPAN = 128;              // bytes of a row of the swizzle's atom
constexpr uint32_t ATOM = 8 * SPAN;         // bytes from 8 rows to the next 8: the stride dimension byte offset
constexpr uint32_t BITS = 8 * sizeof(__nv_bfloat16);
constexpr int WARPGROUP = 128;
static_assert(K * sizeof(__nv_bfloat16) == SPAN, "a row fills a span");

#define CHECK(call)                                                                               \
  do {                                                                                            \
    const cudaError_t status = (call);                                                            \
    if (status != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));        \
      std::exit(EXIT_FAILURE);                                                                    \
    }                                                                                             \
  } while (0)

struct Tile {
  __nv_bfloat16 a[M][K];
  __nv_bfloat16 b[N][K];  // K-major: the K elements of a column of B are neighbours
  float d[M][N];
};

// Writes a K-major matrix into shared memory, each element where the instruction will look for it.
template <int Rows>
__device__ void store(uint32_t start, const __nv_bfloat16 (&matrix)[Rows][K]) {
  for (int i = threadIdx.x; i < Rows * K; i += WARPGROUP) {
    const int row = i / K, k = i % K;
    const uint32_t offset = ptxmma_offset_k_128b(row, k, BITS, 0, ATOM);
    const uint32_t address = ptxmma_swizzle_address(SWIZZLE, start + offset, 0);
    *static_cast<__nv_bfloat16*>(__cvta_shared_to_generic(address)) = matrix[row][k];
  }
}

__device__ uint64_t descriptor(uint32_t start) {
  ptxmma_descriptor fields = {};
  fields.start_address = start;
  fields.stride_byte_offset = ATOM;
  fields.swizzle = SWIZZLE;
  return ptxmma_descriptor_encode(fields);
}

__global__ void __launch_bounds__(WARPGROUP) multiply(Tile* tile) {
  // The pattern of the swizzle repeats every 1024 bytes: a matrix that starts at a multiple has base offset 0.
  __shared__ alignas(1024) unsigned char a[sizeof tile->a];
  __shared__ alignas(1024) unsigned char b[sizeof tile->b];
  const uint32_t a_start = static_cast<uint32_t>(__cvta_generic_to_shared(a));
  const uint32_t b_start = static_cast<uint32_t>(__cvta_generic_to_shared(b));
  store(a_start, tile->a);
  store(b_start, tile->b);
  ptxmma::fence_proxy_async_shared_cta();  // wgmma reads through the async proxy: every thread that wrote makes that visible
  __syncthreads();

  Multiply::d::type d = {};
  ptxmma::fence_accumulator(d);  // the compiler keeps plain accesses to d before this line
  ptxmma::wgmma_fence();         // and the hardware before this one
  for (int k = 0; k < K; k += STEP) {
    const uint32_t column = k * sizeof(__nv_bfloat16);
    Multiply::call(d, descriptor(a_start + column), descriptor(b_start + column), /* add to d: */ true);
  }
  ptxmma::wgmma_commit_group();
  ptxmma::wgmma_wait_group<0>();
  ptxmma::fence_accumulator(d);  // and plain accesses after it here

#pragma unroll
  for (int i = 0; i < Multiply::d::elements; ++i) {
    tile->d[Multiply::d::row(threadIdx.x, i)][Multiply::d::col(threadIdx.x, i)] = d[i];
  }
}

template <int Rows>
void fill(__nv_bfloat16 (&matrix)[Rows][K]) {
  for (auto& row : matrix) {
    for (auto& element : row) element = __float2bfloat16(static_cast<float>(std::rand() % 17 - 8));
  }
}

int main() {
  static Tile tile;
  fill(tile.a);
  fill(tile.b);

  Tile* device;
  CHECK(cudaMalloc(&device, sizeof tile));
  CHECK(cudaMemcpy(device, &tile, sizeof tile, cudaMemcpyHostToDevice));
  multiply<<<1, WARPGROUP>>>(device);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&tile, device, sizeof tile, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));

  for (int row = 0; row < M; ++row) {
    for (int col = 0; col < N; ++col) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += __bfloat162float(tile.a[row][k]) * __bfloat162float(tile.b[col][k]);
      if (tile.d[row][col] != sum) {
        std::printf("wrong: d[%d][%d] is %g, not %g\n", row, col, tile.d[row][col], sum);
        return EXIT_FAILURE;
      }
    }
  }
  std::printf("OK\n");
  return EXIT_SUCCESS;
}
