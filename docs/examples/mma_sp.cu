// A warp multiplies one tile with a sparse A: D = A * B, 16x8x32, f16 in, f32 out, 2:4 sparsity.
//
//   nvcc -I"$(ptxmma --include-dir)" -arch=sm_80 mma_sp.cu -o mma_sp && ./mma_sp
//
// The host makes a random A that keeps two elements of every four, packs it, and writes the metadata that says which.
// Small integers make every sum exact, so the result must equal the host's bit for bit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_fp16.h>

#include <ptxmma/mma_sp/f16_f16.cuh>

using ptxmma::f16;
using ptxmma::f32;
constexpr int M = 16, N = 8, K = 32;
constexpr int SELECTOR = 0;  // which threads of each quad hold the metadata

// One name picks the function, the registers of each operand, and their layouts.
using Multiply = ptxmma::mma_sp_ordered_metadata<ptxmma::shape<M, N, K>, f32, f16, f16, f32>;

constexpr int CHUNK = PTXMMA_MMA_SP_M16N8K32_METADATA_B16_CHUNK;  // columns that one field of metadata describes
constexpr int KEPT = PTXMMA_MMA_SP_M16N8K32_METADATA_B16_KEPT;    // of which so many are stored
constexpr int PACKED = K / CHUNK * KEPT;
constexpr int WARP = 32;

#define CHECK(call)                                                                               \
  do {                                                                                            \
    const cudaError_t status = (call);                                                            \
    if (status != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));        \
      std::exit(EXIT_FAILURE);                                                                    \
    }                                                                                             \
  } while (0)

struct Tile {
  __half a[M][PACKED];      // only the elements that are kept
  uint32_t metadata[WARP];  // one register of each thread
  __half b[K][N];
  float d[M][N];
};

// The registers of one thread, filled element by element: the lowest bits of the first register hold element 0.
template <class Fragment, class Element, class Get>
__device__ void load(typename Fragment::type& registers, Get get) {
  Element elements[Fragment::elements];
  static_assert(sizeof elements == sizeof registers, "elements fill the registers");
#pragma unroll
  for (int i = 0; i < Fragment::elements; ++i) {
    elements[i] = get(Fragment::row(threadIdx.x, i), Fragment::col(threadIdx.x, i));
  }
  memcpy(registers, elements, sizeof registers);
}

__global__ void multiply(Tile* tile) {
  const uint32_t lane = threadIdx.x;
  Multiply::a::type a;
  Multiply::b::type b;
  Multiply::c::type c = {};
  Multiply::d::type d;
  load<Multiply::a, __half>(a, [=](uint32_t row, uint32_t col) { return tile->a[row][col]; });
  load<Multiply::b, __half>(b, [=](uint32_t row, uint32_t col) { return tile->b[row][col]; });
  const Multiply::e::type e = tile->metadata[lane];

  Multiply::call<SELECTOR>(d, a, b, c, e);

#pragma unroll
  for (int i = 0; i < Multiply::d::elements; ++i) tile->d[Multiply::d::row(lane, i)][Multiply::d::col(lane, i)] = d[i];
}

int main() {
  static Tile tile;
  static float dense[M][K];  // A with its zeros
  for (uint32_t row = 0; row < M; ++row) {
    for (uint32_t chunk = 0; chunk < K / CHUNK; ++chunk) {
      const uint32_t first = std::rand() % (CHUNK - 1), second = first + 1 + std::rand() % (CHUNK - 1 - first);
      const uint32_t kept[KEPT] = {first, second};
      for (int i = 0; i < KEPT; ++i) {
        const float value = static_cast<float>(std::rand() % 17 - 8);
        dense[row][chunk * CHUNK + kept[i]] = value;
        tile.a[row][chunk * KEPT + i] = __float2half(value);
      }
      uint32_t& word = tile.metadata[Multiply::e::lane(row, chunk, SELECTOR)];
      word = Multiply::e::insert(word, Multiply::e::bit(row, chunk), first | second << 2);
    }
  }
  for (auto& row : tile.b) {
    for (__half& element : row) element = __float2half(static_cast<float>(std::rand() % 17 - 8));
  }

  Tile* device;
  CHECK(cudaMalloc(&device, sizeof tile));
  CHECK(cudaMemcpy(device, &tile, sizeof tile, cudaMemcpyHostToDevice));
  multiply<<<1, WARP>>>(device);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&tile, device, sizeof tile, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));

  for (int row = 0; row < M; ++row) {
    for (int col = 0; col < N; ++col) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += dense[row][k] * __half2float(tile.b[k][col]);
      if (tile.d[row][col] != sum) {
        std::printf("wrong: d[%d][%d] is %g, not %g\n", row, col, tile.d[row][col], sum);
        return EXIT_FAILURE;
      }
    }
  }
  std::printf("OK\n");
  return EXIT_SUCCESS;
}
