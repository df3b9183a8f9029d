// Tiles, descriptors, calls and fragment moves on a GPU of compute capability 9.0: each line is a check, and what it found.
//
//   nvcc -std=c++17 -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a cuda_moves.cu -o cuda_moves && ./cuda_moves
//
// All numbers are small integers, so that every sum is exact.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <ptxmma/cuda/fragment_moves.cuh>
#include <ptxmma/cuda/storage.cuh>
#include <ptxmma/mma/f16_f16.cuh>
#include <ptxmma/wgmma/bf16_bf16.cuh>
#include <ptxmma/wgmma/e4m3_e4m3.cuh>
#include <ptxmma/wgmma/f16_f16.cuh>
#include <ptxmma/wgmma_sp/f16_f16.cuh>

using namespace ptxmma;
constexpr ptxmma_majorness K_MAJOR = PTXMMA_MAJORNESS_K, MN_MAJOR = PTXMMA_MAJORNESS_MN;
static int failures = 0;

#define CHECK(call)                                                                               \
  do {                                                                                            \
    const cudaError_t status = (call);                                                            \
    if (status != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));        \
      std::exit(EXIT_FAILURE);                                                                    \
    }                                                                                             \
  } while (0)

// Memory that host and device share.
template <class Type>
struct Shared {
  Type* data;
  explicit Shared(size_t count) { CHECK(cudaMallocManaged(&data, count * sizeof(Type))); }
  ~Shared() { cudaFree(data); }
  Type& operator[](size_t i) { return data[i]; }
};

template <class Tile, class Type>
__device__ void put(unsigned char* start, const Type* matrix) {  // row-major: x rows, k columns
  for (uint32_t i = threadIdx.x; i < Tile::x * Tile::k; i += blockDim.x)
    *reinterpret_cast<Type*>(start + Tile::offset(i / Tile::k, i % Tile::k)) = matrix[i];
}

static void report(const char* what, size_t wrong) {
  std::printf("%-72s %s\n", what, wrong ? "WRONG" : "ok");
  if (wrong) std::printf("  %zu elements differ\n", wrong), ++failures;
}

// ---- D = A * B of 128 x n x 64 with wgmma, both from tiles; two warpgroups, each with its half of A --------------------------

template <class Multiply, class A, class B, class D, class Packed>
__global__ void __launch_bounds__(256) product(const storage<typename A::element_type>* a, const storage<typename B::element_type>* b, Packed* d) {
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char *a_tile = shared, *b_tile = a_tile + (A::bytes + 1023) / 1024 * 1024, *d_tile = b_tile + (B::bytes + 1023) / 1024 * 1024;
  put<A>(a_tile, a);
  put<B>(b_tile, b);
  fence_proxy_async_shared_cta();
  __syncthreads();
  const uint32_t group = threadIdx.x / 128, lane = threadIdx.x % 128;
  typename Multiply::d::type sum = {};
  fence_accumulator(sum);
  wgmma_fence();
  const auto first_of_a = A::descriptor(shared_address(a_tile), Multiply::m * group);
  const auto first_of_b = B::descriptor(shared_address(b_tile));
#pragma unroll
  for (uint32_t step = 0; step < A::steps; ++step) Multiply::call(sum, A::advance(first_of_a, step), B::advance(first_of_b, step), true);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  fence_accumulator(sum);
  if constexpr (sizeof(Packed) == 2) {
    uint32_t packed[Multiply::d::elements / 2];
#pragma unroll
    for (int i = 0; i < Multiply::d::elements / 2; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
      packed[i] = reinterpret_cast<const uint32_t&>(pair);
    }
    store_fragment<typename Multiply::d, D>(shared_address(d_tile), packed, lane, Multiply::m * group);
  } else {
    store_fragment<typename Multiply::d, D>(shared_address(d_tile), sum, lane, Multiply::m * group);
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < D::x * D::k; i += blockDim.x)
    d[i] = *reinterpret_cast<const Packed*>(d_tile + D::offset(i / D::k, i % D::k));
}

template <class Multiply, class A, class B, class D, class Packed>
static void check_product(const char* what) {
  using Element = storage<typename A::element_type>;
  Shared<Element> a(A::x * A::k), b(B::x * B::k);
  Shared<Packed> d(D::x * D::k);
  for (uint32_t i = 0; i < A::x * A::k; ++i) a[i] = Element(static_cast<float>(std::rand() % 3 - 1));
  for (uint32_t i = 0; i < B::x * B::k; ++i) b[i] = Element(static_cast<float>(std::rand() % 3 - 1));
  const int bytes = A::bytes + B::bytes + D::bytes + 3 * 1024;
  CHECK(cudaFuncSetAttribute(product<Multiply, A, B, D, Packed>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  product<Multiply, A, B, D, Packed><<<1, 256, bytes>>>(a.data, b.data, d.data);
  CHECK(cudaDeviceSynchronize());
  size_t wrong = 0;
  for (uint32_t row = 0; row < D::x; ++row)
    for (uint32_t col = 0; col < D::k; ++col) {
      float sum = 0;
      for (uint32_t k = 0; k < A::k; ++k) sum += static_cast<float>(a[row * A::k + k]) * static_cast<float>(b[col * B::k + k]);
      wrong += static_cast<float>(d[row * D::k + col]) != sum;
    }
  report(what, wrong);
}

// ---- 64 x 64 x 64 with mma, fragments loaded by ldmatrix ---------------------------------------------------------------------

template <class A, class B>
__global__ void __launch_bounds__(32) warp_product(const __half* a, const __half* b, float* d) {
  using Multiply = mma<shape<16, 8, 16>, f32, f16, f16, f32>;
  __shared__ __align__(1024) unsigned char a_tile[A::bytes], b_tile[B::bytes];
  put<A>(a_tile, a);
  put<B>(b_tile, b);
  __syncthreads();
  for (uint32_t row = 0; row < A::x; row += Multiply::m)
    for (uint32_t col = 0; col < B::x; col += Multiply::n) {
      Multiply::d::type sum = {};
      for (uint32_t k = 0; k < A::k; k += Multiply::k) {
        Multiply::a::type part_of_a;
        Multiply::b::type part_of_b;
        load_fragment<Multiply::a, A>(part_of_a, shared_address(a_tile), threadIdx.x, row, k);
        load_fragment<Multiply::b, B>(part_of_b, shared_address(b_tile), threadIdx.x, col, k);
        Multiply::call(sum, part_of_a, part_of_b, sum);
      }
      for (int i = 0; i < Multiply::d::elements; ++i)
        d[(row + Multiply::d::row(threadIdx.x, i)) * B::x + col + Multiply::d::col(threadIdx.x, i)] = sum[i];
    }
}

template <class A, class B>
static void check_warp(const char* what) {
  Shared<__half> a(A::x * A::k), b(B::x * B::k);
  Shared<float> d(A::x * B::x);
  for (uint32_t i = 0; i < A::x * A::k; ++i) a[i] = __half(static_cast<float>(std::rand() % 17 - 8));
  for (uint32_t i = 0; i < B::x * B::k; ++i) b[i] = __half(static_cast<float>(std::rand() % 17 - 8));
  warp_product<A, B><<<1, 32>>>(a.data, b.data, d.data);
  CHECK(cudaDeviceSynchronize());
  size_t wrong = 0;
  for (uint32_t row = 0; row < A::x; ++row)
    for (uint32_t col = 0; col < B::x; ++col) {
      float sum = 0;
      for (uint32_t k = 0; k < A::k; ++k) sum += static_cast<float>(a[row * A::k + k]) * static_cast<float>(b[col * B::k + k]);
      wrong += d[row * B::x + col] != sum;
    }
  report(what, wrong);
}

// ---- (A * B) * C with wgmma, the first product carried over in registers -----------------------------------------------------

template <class Element>
__device__ uint32_t pack(const float* values);
template <>
__device__ uint32_t pack<bf16>(const float* values) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(values[0], values[1]);
  return reinterpret_cast<const uint32_t&>(pair);
}
template <>
__device__ uint32_t pack<e4m3>(const float* values) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(__nv_fp8_e4m3(values[i]).__x) << (8 * i);
  return word;
}

template <class First, class Second, class A, class B, class C>
__global__ void __launch_bounds__(128)
    chain(const storage<typename A::element_type>* a, const storage<typename A::element_type>* b, const storage<typename A::element_type>* c, float* d) {
  using Carried = carried<typename First::d, typename Second::a>;
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char *a_tile = shared, *b_tile = a_tile + A::bytes, *c_tile = b_tile + B::bytes;
  put<A>(a_tile, a);
  put<B>(b_tile, b);
  for (uint32_t i = threadIdx.x; i < C::x * C::k; i += blockDim.x) {  // rows of C in the order of the accumulator's columns
    const uint32_t x = i / C::k, k = i % C::k, within = k % Second::k;
    *reinterpret_cast<storage<typename A::element_type>*>(c_tile + C::offset(x, k)) = c[x * C::k + k - within + Carried::column(within)];
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  typename First::d::type middle = {};
  typename Second::d::type sum = {};
  fence_accumulator(middle);
  wgmma_fence();
#pragma unroll
  for (uint32_t step = 0; step < A::steps; ++step)
    First::call(middle, A::advance(A::descriptor(shared_address(a_tile)), step), B::advance(B::descriptor(shared_address(b_tile)), step), true);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  fence_accumulator(middle);
  uint32_t registers[C::steps][Second::a::registers];
#pragma unroll
  for (uint32_t step = 0; step < C::steps; ++step) {
    float elements[Second::a::elements];
    Carried::take(elements, middle, step);
    constexpr int each = Second::a::elements / Second::a::registers;
#pragma unroll
    for (int i = 0; i < Second::a::registers; ++i) registers[step][i] = pack<typename A::element_type>(elements + each * i);
  }
#pragma unroll
  for (uint32_t step = 0; step < C::steps; ++step) fence_accumulator(registers[step]);
  fence_accumulator(sum);
  wgmma_fence();
#pragma unroll
  for (uint32_t step = 0; step < C::steps; ++step)
    Second::call(sum, registers[step], C::advance(C::descriptor(shared_address(c_tile)), step), true);
  wgmma_commit_group();
  wgmma_wait_group<0>();
  fence_accumulator(sum);
#pragma unroll
  for (int i = 0; i < Second::d::elements; ++i) d[Second::d::row(threadIdx.x, i) * C::x + Second::d::col(threadIdx.x, i)] = sum[i];
}

template <class First, class Second, class A, class B, class C>
static void check_chain(const char* what) {
  using Element = storage<typename A::element_type>;
  Shared<Element> a(A::x * A::k), b(B::x * B::k), c(C::x * C::k);
  Shared<float> d(A::x * C::x);
  for (uint32_t i = 0; i < A::x * A::k; ++i) a[i] = Element(static_cast<float>(std::rand() % 5 == 0));
  for (uint32_t i = 0; i < B::x * B::k; ++i) b[i] = Element(static_cast<float>(std::rand() % 5 == 0));
  for (uint32_t i = 0; i < C::x * C::k; ++i) c[i] = Element(static_cast<float>(std::rand() % 3 - 1));
  const int bytes = A::bytes + B::bytes + C::bytes;
  CHECK(cudaFuncSetAttribute(chain<First, Second, A, B, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  chain<First, Second, A, B, C><<<1, 128, bytes>>>(a.data, b.data, c.data, d.data);
  CHECK(cudaDeviceSynchronize());
  size_t wrong = 0;
  for (uint32_t row = 0; row < A::x; ++row)
    for (uint32_t col = 0; col < C::x; ++col) {
      float sum = 0;
      for (uint32_t middle = 0; middle < B::x; ++middle) {
        float inner = 0;
        for (uint32_t k = 0; k < A::k; ++k) inner += static_cast<float>(a[row * A::k + k]) * static_cast<float>(b[middle * B::k + k]);
        sum += inner * static_cast<float>(c[col * C::k + middle]);
      }
      wrong += d[row * C::x + col] != sum;
    }
  report(what, wrong);
}

// ---- results of all widths to a tile and back, half of their columns at a time -----------------------------------------------

template <class Tile>
__global__ void __launch_bounds__(128) there_and_back(unsigned long long* wrong) {
  using Result = wgmma<shape<64, 128>, f32, bf16, bf16>::d;
  constexpr int bits = ptxmma_describe_type(Tile::type).bits, half = Tile::k / 2, each = 32 / bits;
  __shared__ __align__(1024) unsigned char tile[Tile::bytes];
  uint32_t differ = 0;
  Result::type sums;
  for (int i = 0; i < Result::elements; ++i) sums[i] = static_cast<float>((Result::row(threadIdx.x, i) + 3 * Result::col(threadIdx.x, i)) % 128);
#pragma unroll
  for (int first = 0; first < Tile::k; first += half) {
    auto& part = columns<Result, half>(sums, first);
    constexpr int count = sizeof part / sizeof(float);
    uint32_t packed[count / each] = {}, loaded[count / each];
    for (int i = 0; i < count; ++i) packed[i / each] |= static_cast<uint32_t>(part[i]) << i % each * bits % 32;
    store_fragment<Result, Tile>(shared_address(tile), packed, threadIdx.x, 0, first);
    __syncthreads();
    load_fragment<Result, Tile>(loaded, shared_address(tile), threadIdx.x, 0, first);
    for (int i = 0; i < count / each; ++i)
      differ += loaded[i] != packed[i];
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < Tile::x * Tile::k; i += blockDim.x) {
    uint32_t got = 0;
    memcpy(&got, tile + Tile::offset(i / Tile::k, i % Tile::k), bits / 8);
    differ += got != (i / Tile::k + 3 * (i % Tile::k)) % 128;
  }
  atomicAdd(wrong, differ);
}

template <class Tile>
static void check_there_and_back(const char* what) {
  Shared<unsigned long long> wrong(1);
  wrong[0] = 0;
  there_and_back<Tile><<<1, 128>>>(wrong.data);
  CHECK(cudaDeviceSynchronize());
  report(what, wrong[0]);
}

template <ptxmma_majorness AMajor, ptxmma_majorness BMajor, ptxmma_swizzle Mode, ptxmma_majorness DMajor>
static void check_bf16(const char* what) {
  using Multiply = wgmma<shape<64, 128, 16>, f32, bf16, bf16>;
  check_product<Multiply, Multiply::a_tile<AMajor, Mode, 128, 64>, Multiply::b_tile<BMajor, Mode, 128, 64>,
                shared_tile<bf16, DMajor, Mode, 128, 128>, __nv_bfloat16>(what);
}

int main() {
  check_bf16<K_MAJOR, K_MAJOR, PTXMMA_SWIZZLE_128B, K_MAJOR>("wgmma bf16, A and B K-major, 128B; D by stmatrix");
  check_bf16<MN_MAJOR, K_MAJOR, PTXMMA_SWIZZLE_128B, K_MAJOR>("wgmma bf16, A MN-major, B K-major, 128B; D by stmatrix");
  check_bf16<K_MAJOR, MN_MAJOR, PTXMMA_SWIZZLE_128B, MN_MAJOR>("wgmma bf16, A K-major, B MN-major, 128B; D MN-major by stmatrix.trans");
  check_bf16<MN_MAJOR, MN_MAJOR, PTXMMA_SWIZZLE_64B, K_MAJOR>("wgmma bf16, A and B MN-major, 64B; D by stmatrix");
  check_bf16<K_MAJOR, MN_MAJOR, PTXMMA_SWIZZLE_32B, K_MAJOR>("wgmma bf16, A K-major, B MN-major, 32B; D by stmatrix");
  check_bf16<K_MAJOR, K_MAJOR, PTXMMA_SWIZZLE_NONE, K_MAJOR>("wgmma bf16, A and B K-major, no swizzle; D by stmatrix");
  using Bytes = wgmma<shape<64, 128, 32>, f32, e4m3, e4m3>;
  check_product<Bytes, Bytes::a_tile<K_MAJOR, PTXMMA_SWIZZLE_128B, 128, 128>, Bytes::b_tile<K_MAJOR, PTXMMA_SWIZZLE_128B, 128, 128>,
                shared_tile<f32, K_MAJOR, PTXMMA_SWIZZLE_32B, 128, 128>, float>("wgmma e4m3, 128B; D of f32 by vector stores, 32B");

  using AK = shared_tile<f16, K_MAJOR, PTXMMA_SWIZZLE_128B, 64, 64>;
  using AM = shared_tile<f16, MN_MAJOR, PTXMMA_SWIZZLE_64B, 64, 64>;
  using BK = shared_tile<f16, K_MAJOR, PTXMMA_SWIZZLE_32B, 64, 64>;
  using BM = shared_tile<f16, MN_MAJOR, PTXMMA_SWIZZLE_128B, 64, 64>;
  check_warp<AK, BK>("mma f16, A and B by ldmatrix");
  check_warp<AM, BM>("mma f16, A and B by ldmatrix.trans");

  using First = wgmma<shape<64, 128, 16>, f32, bf16, bf16>;
  using Second = wgmma<shape<64, 64, 16>, f32, bf16, bf16>;
  check_chain<First, Second, First::a_tile<K_MAJOR, PTXMMA_SWIZZLE_128B, 64, 64>, First::b_tile<K_MAJOR, PTXMMA_SWIZZLE_128B, 128, 64>,
              Second::b_tile<MN_MAJOR, PTXMMA_SWIZZLE_128B, 64, 128>>("wgmma bf16, (A * B) * C, accumulator carried over");
  using First8 = wgmma<shape<64, 128, 32>, f32, e4m3, e4m3>;
  using Second8 = wgmma<shape<64, 64, 32>, f32, e4m3, e4m3>;
  check_chain<First8, Second8, First8::a_tile<K_MAJOR, PTXMMA_SWIZZLE_64B, 64, 64>, First8::b_tile<K_MAJOR, PTXMMA_SWIZZLE_64B, 128, 64>,
              Second8::b_tile<K_MAJOR, PTXMMA_SWIZZLE_128B, 64, 128>>("wgmma e4m3, (A * B) * C, accumulator carried over, permuted");
  check_there_and_back<shared_tile<e4m3, K_MAJOR, PTXMMA_SWIZZLE_128B, 64, 128>>("results of 8 bits to a tile and back, by columns");
  check_there_and_back<shared_tile<e4m3, MN_MAJOR, PTXMMA_SWIZZLE_64B, 64, 128>>("results of 8 bits to an MN-major tile and back");
  check_there_and_back<shared_tile<bf16, K_MAJOR, PTXMMA_SWIZZLE_128B, 64, 128>>("results of 16 bits to a tile and back, by columns");
  check_there_and_back<shared_tile<bf16, MN_MAJOR, PTXMMA_SWIZZLE_128B, 64, 128>>("results of 16 bits to an MN-major tile and back");
  check_there_and_back<shared_tile<f32, K_MAJOR, PTXMMA_SWIZZLE_32B, 64, 128>>("results of 32 bits to a tile and back, by columns");
  std::printf("%s\n", failures ? "FAILED" : "OK");
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
