// A warp multiplies one tile with a sparse A: D = A * B, 16x8x32, f16 in, f32 out, 2:4 sparsity.
//
//   nvcc -I"$(ptxmma --include-dir)" -arch=sm_80 mma_sp.cu -o mma_sp && ./mma_sp
//
// The host prunes and compresses a random A and puts the metadata into registers; the warp loads the rest from memory.
// Small integers make every sum exact, so the result must equal the host's bit for bit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_fp16.h>

#include <ptxmma/mma_sp/f16_f16.cuh>
#include <ptxmma/mma_sp_pack.h>
#include <ptxmma/sparse.h>

using ptxmma::f16;
using ptxmma::f32;
constexpr int M = 16, N = 8, K = 32;
constexpr int SELECTOR = 0;  // which threads of each quad hold the metadata

// One name picks the function and the registers of each operand.
using Multiply = ptxmma::mma_sp_ordered_metadata<ptxmma::shape<M, N, K>, f32, f16, f16, f32>;

constexpr int CHUNK = PTXMMA_MMA_SP_M16N8K32_METADATA_B16_CHUNK;  // columns that one field of metadata describes
constexpr int KEPT = PTXMMA_MMA_SP_M16N8K32_METADATA_B16_KEPT;    // of which so many are stored
constexpr int CHUNKS = K / CHUNK, PACKED = CHUNKS * KEPT;
constexpr int WARP = 32;

#define CHECK(call)                                                                               \
  do {                                                                                            \
    const cudaError_t status = (call);                                                            \
    if (status != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));        \
      std::exit(EXIT_FAILURE);                                                                    \
    }                                                                                             \
  } while (0)

// The same for what the headers return.
#define EXPECT(call)                                                                              \
  do {                                                                                            \
    const ptxmma_status status = (call);                                                          \
    if (status != PTXMMA_OK) {                                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, ptxmma_status_text(status));        \
      std::exit(EXIT_FAILURE);                                                                    \
    }                                                                                             \
  } while (0)

struct Tile {
  __half a[M][PACKED];      // only the elements that are kept
  uint32_t metadata[WARP];  // one register of each thread
  __half b[K][N];
  float d[M][N];
};

__global__ void multiply(Tile* tile) {
  const uint32_t lane = threadIdx.x;
  Multiply::a::type a;
  Multiply::b::type b;
  Multiply::c::type c = {};
  Multiply::d::type d;
  // Rows are so many elements apart, columns one.
  ptxmma_mma_sp_m16n8k32_a_b16_load(tile->a, PACKED, 1, lane, a);
  ptxmma_mma_sp_m16n8k32_b_b16_load(tile->b, N, 1, lane, b);
  const Multiply::e::type e = tile->metadata[lane];

  Multiply::call(d, a, b, c, e, SELECTOR);

  ptxmma_mma_sp_m16n8k32_cd_b32_store(tile->d, N, 1, lane, d);
}

static __half random_element() { return __float2half(static_cast<float>(std::rand() % 17 - 8)); }

int main() {
  static Tile tile;
  static __half dense[M][K];              // A with its zeros
  static uint8_t metadata[M][CHUNKS / 2];  // row-major
  for (auto& row : dense)
    for (__half& element : row) element = random_element();
  for (auto& row : tile.b)
    for (__half& element : row) element = random_element();

  ptxmma_sparse_place place;  // of the first fault, if there is one
  EXPECT(ptxmma_sparse_2_4_f16_prune(M, K, dense, K, dense, K, &place));
  EXPECT(ptxmma_sparse_2_4_f16_compress(M, K, dense, K, tile.a, PACKED, *metadata, CHUNKS / 2, &place));
  EXPECT(ptxmma_mma_sp_m16n8k32_metadata_b16_pack_tiles(M, CHUNKS, *metadata, CHUNKS / 2, SELECTOR, tile.metadata));

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
      for (int k = 0; k < K; ++k) sum += __half2float(dense[row][k]) * __half2float(tile.b[k][col]);
      if (tile.d[row][col] != sum) {
        std::printf("wrong: d[%d][%d] is %g, not %g\n", row, col, tile.d[row][col], sum);
        return EXIT_FAILURE;
      }
    }
  }
  std::printf("OK\n");
  return EXIT_SUCCESS;
}
