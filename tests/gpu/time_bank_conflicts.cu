// Times accesses to shared memory against the wavefronts that they should take: one line for each pattern of addresses.
//
//   nvcc -std=c++17 -O3 -arch=sm_90a tests/gpu/time_bank_conflicts.cu -o build/banks && build/banks
#include <algorithm>
#include <set>

#include "numbers.cuh"

constexpr int WARPS = 16, ROUNDS = 16, UNROLLED = 16;

struct Pattern {
  const char* name;
  int width;      // bytes that each lane accesses
  int lanes;      // lanes whose addresses count
  int stride;     // bytes from one address to the next
  int together;   // lanes with one address
  bool swizzled;  // the 128-byte swizzle
  int address(int lane) const {
    const int plain = lane / together * stride;
    return swizzled ? plain ^ (plain >> 7) % 8 << 4 : plain;
  }
  // As many as one bank has different words to serve, in each part of the warp that is served together.
  int wavefronts() const {
    const int part = 128 / std::max(width, 4);
    int sum = 0;
    for (int first = 0; first < lanes; first += part) {
      std::set<int> words[32];
      for (int lane = first; lane < std::min(first + part, lanes); ++lane) {
        for (int word = address(lane) / 4; word * 4 < address(lane) + width; ++word) words[word % 32].insert(word);
      }
      size_t most = 0;
      for (const auto& bank : words) most = std::max(most, bank.size());
      sum += int(most);
    }
    return sum;
  }
};

template <int kind>
__device__ __forceinline__ void access(uint32_t at, uint32_t (&r)[4]) {
  if constexpr (kind == 0) asm volatile("ld.shared.u8 %0, [%1];" : "=r"(r[0]) : "r"(at));
  if constexpr (kind == 1) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r[0]) : "r"(at));
  if constexpr (kind == 2) asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  if constexpr (kind == 3)
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  if constexpr (kind == 4) asm volatile("st.shared.b32 [%0], %1;" : : "r"(at), "r"(r[0]) : "memory");
  if constexpr (kind == 5) asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
  if constexpr (kind == 6)
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  if constexpr (kind == 7) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  if constexpr (kind == 8)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  if constexpr (kind == 9)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}

// `step` is 0, which the compiler does not know: it would merge equal accesses.
template <int kind>
__global__ void measure(Pattern pattern, uint32_t step, long long* cycles, uint32_t* used) {
  __shared__ alignas(1024) uint8_t memory[8192];
  const int lane = int(threadIdx.x) % 32, plain = lane / pattern.together * pattern.stride;
  uint32_t at = uint32_t(__cvta_generic_to_shared(memory)) + uint32_t(pattern.swizzled ? plain ^ (plain >> 7) % 8 << 4 : plain);
  uint32_t sum = 0;
  for (int warm = 0; warm < 2; ++warm) {
    __syncthreads();
    const long long start = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
      uint32_t r[UNROLLED][4] = {};
#pragma unroll
      for (int i = 0; i < UNROLLED; ++i, at += step) access<kind>(at, r[i]);
#pragma unroll
      for (int i = 0; i < UNROLLED; ++i) sum ^= r[i][0] ^ r[i][1] ^ r[i][2] ^ r[i][3];
    }
    __syncthreads();
    if (warm && threadIdx.x == 0) *cycles = clock64() - start;
  }
  used[threadIdx.x] = sum;
}

template <int kind>
void time(std::initializer_list<Pattern> patterns) {
  DeviceArray<long long> cycles(1);
  DeviceArray<uint32_t> used(32 * WARPS);
  for (const Pattern& pattern : patterns) {
    long long best = 1LL << 60;
    for (int again = 0; again < 5; ++again) {
      measure<kind><<<1, 32 * WARPS>>>(pattern, 0, cycles.data, used.data);
      CHECK(cudaDeviceSynchronize());
      long long once;
      CHECK(cudaMemcpy(&once, cycles.data, sizeof once, cudaMemcpyDeviceToHost));
      best = std::min(best, once);
    }
    const double each = double(best) / (WARPS * ROUNDS * UNROLLED);
    std::printf("%s,%d,%d,%s,%d,%.2f\n", pattern.name, pattern.stride, pattern.together, pattern.swizzled ? "128B" : "none", pattern.wavefronts(), each);
  }
}

int main() {
  std::printf("access,stride,lanes of one address,swizzle,wavefronts,cycles\n");
  time<0>({{"ld.u8", 1, 32, 1, 1, false}, {"ld.u8", 1, 32, 32, 1, false}});
  time<1>({{"ld.b32", 4, 32, 4, 1, false}, {"ld.b32", 4, 32, 8, 1, false}, {"ld.b32", 4, 32, 16, 1, false}, {"ld.b32", 4, 32, 132, 1, false},
           {"ld.b32", 4, 32, 128, 1, false}, {"ld.b32", 4, 32, 128, 1, true}, {"ld.b32", 4, 32, 64, 2, false}, {"ld.b32", 4, 32, 0, 32, false}});
  time<2>({{"ld.v2.b32", 8, 32, 8, 1, false}, {"ld.v2.b32", 8, 32, 16, 1, false}, {"ld.v2.b32", 8, 32, 64, 1, false}});
  time<3>({{"ld.v4.b32", 16, 32, 16, 1, false}, {"ld.v4.b32", 16, 32, 32, 1, false}, {"ld.v4.b32", 16, 32, 128, 1, false},
           {"ld.v4.b32", 16, 32, 128, 1, true}, {"ld.v4.b32", 16, 32, 144, 1, false}, {"ld.v4.b32", 16, 32, 128, 2, false},
           {"ld.v4.b32", 16, 32, 0, 32, false}});
  time<4>({{"st.b32", 4, 32, 4, 1, false}, {"st.b32", 4, 32, 8, 1, false}, {"st.b32", 4, 32, 16, 1, false}, {"st.b32", 4, 32, 132, 1, false},
           {"st.b32", 4, 32, 128, 1, false}});
  time<5>({{"st.v2.b32", 8, 32, 8, 1, false}, {"st.v2.b32", 8, 32, 16, 1, false}, {"st.v2.b32", 8, 32, 64, 1, false}});
  time<6>({{"st.v4.b32", 16, 32, 16, 1, false}, {"st.v4.b32", 16, 32, 32, 1, false}, {"st.v4.b32", 16, 32, 128, 1, false},
           {"st.v4.b32", 16, 32, 128, 1, true}, {"st.v4.b32", 16, 32, 144, 1, false}});
  time<7>({{"ldmatrix.x1", 16, 8, 128, 1, false}, {"ldmatrix.x1", 16, 8, 32, 1, false}});
  time<8>({{"ldmatrix.x4", 16, 32, 32, 1, false}, {"ldmatrix.x4", 16, 32, 64, 1, false}, {"ldmatrix.x4", 16, 32, 128, 1, false},
           {"ldmatrix.x4", 16, 32, 128, 1, true}, {"ldmatrix.x4", 16, 32, 144, 1, false}});
  time<9>({{"stmatrix.x4", 16, 32, 32, 1, false}, {"stmatrix.x4", 16, 32, 64, 1, false}, {"stmatrix.x4", 16, 32, 128, 1, false},
           {"stmatrix.x4", 16, 32, 128, 1, true}, {"stmatrix.x4", 16, 32, 144, 1, false}});
}
