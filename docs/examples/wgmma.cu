// A warpgroup multiplies one tile: D = A * B, 64x64x64, bf16 in, f32 out, both operands in shared memory.
//
//   nvcc -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a wgmma.cu -o wgmma && ./wgmma
//
// A and B lie in shared memory K-major with the 128-byte swizzle.
// Small integers make every sum exact, so the result must equal the host's bit for bit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_bf16.h>

#include <ptxmma/wgmma/bf16_bf16.cuh>

using ptxmma::bf16;
using ptxmma::f32;
constexpr int M = 64, N = 64, K = 64;

// One name picks the function, the registers of each operand, and their layouts.
using Multiply = ptxmma::wgmma<ptxmma::shape<M, N, 16>, f32, bf16, bf16>;

// The matrices as they lie in shared memory: sizes, alignment, swizzle and descriptors.
using A = Multiply::a_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, M, K>;
using B = Multiply::b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, N, K>;
constexpr int WARPGROUP = 128;

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
template <class Image>
__device__ void store(unsigned char* start, const __nv_bfloat16 (&matrix)[Image::x][Image::k]) {
  for (uint32_t i = threadIdx.x; i < Image::x * Image::k; i += WARPGROUP) {
    const uint32_t row = i / Image::k, k = i % Image::k;
    *reinterpret_cast<__nv_bfloat16*>(start + Image::offset(row, k)) = matrix[row][k];
  }
}

__global__ void __launch_bounds__(WARPGROUP) multiply(Tile* tile) {
  __shared__ alignas(A::alignment) unsigned char a[A::bytes];
  __shared__ alignas(B::alignment) unsigned char b[B::bytes];
  store<A>(a, tile->a);
  store<B>(b, tile->b);
  ptxmma::fence_proxy_async_shared_cta();  // wgmma reads through the async proxy: every thread that wrote makes that visible
  __syncthreads();

  Multiply::d::type d = {};
  ptxmma::fence_accumulator(d);  // the compiler keeps plain accesses to d before this line
  ptxmma::wgmma_fence();         // and the hardware before this one
  const auto first_of_a = A::descriptor(static_cast<uint32_t>(__cvta_generic_to_shared(a)));
  const auto first_of_b = B::descriptor(static_cast<uint32_t>(__cvta_generic_to_shared(b)));
#pragma unroll
  for (uint32_t step = 0; step < A::steps; ++step) {
    Multiply::call(d, A::advance(first_of_a, step), B::advance(first_of_b, step), /* add to d: */ true);
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
