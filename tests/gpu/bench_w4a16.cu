// Times w4a16_sm80 and w4a16_sm90 against cuBLAS with weights of 16 bits, and against a plain read of as many bytes as it must read. The weights of each
// launch differ from the weights of the launches before it, so that they do not come from L2. Arguments: those of Options.
#include <memory>

#include "bench.cuh"
#include "cublas.cuh"
#include "w4a16_numbers.cuh"
#include "w4a16_sm80_plan.cuh"
#include "w4a16_sm90_plan.cuh"

using w4a16::storage;

__global__ void fill_words(uint32_t* words, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) words[i] = random_bits(i, seed);
}

__global__ void fill_zeros(uint16_t* zeros, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) zeros[i] = random_bits(i, seed) % 16;
}

// Reads all, with several loads of each thread on their way.
__global__ void read(const uint4* data, size_t size, uint4* never) {
  uint4 all = {};
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += 4 * stride) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 unit = i + j * stride < size ? __ldcs(data + i + j * stride) : uint4();
      all = {all.x ^ unit.x, all.y ^ unit.y, all.z ^ unit.z, all.w ^ unit.w};
    }
  }
  if ((all.x & all.y & all.z & all.w) == 0x12345678) *never = all;
}

template <template <class, class> class Plan, class Element, class Code>
void bench(cublasLtHandle_t library, Rows& rows, Size size, int multiprocessors) {
  using T = storage<Element>;
  const auto [m, n, k] = size;
  constexpr int group = 128;
  constexpr bool has_zeros = w4a16::has_zeros<Code>;
  constexpr size_t l2 = size_t(50) << 20;
  const size_t words = size_t(n) * k / 8, count = 4 * l2 / (words * sizeof(uint32_t)) + 2;  // of copies of the weights
  DeviceArray<uint32_t> codes(words * count);
  DeviceArray<T> x(size_t(m) * k), y(size_t(m) * n), scales(size_t(n) * k / group), weights(size_t(n) * k);
  DeviceArray<uint16_t> zeros(scales.size);
  fill_words<<<1024, 256>>>(codes.data, codes.size, 1);
  fill_integers<<<1024, 256>>>(x.data, x.size, 2, 1);
  fill_integers<<<1024, 256>>>(scales.data, scales.size, 3, 2);
  fill_normal<<<1024, 256>>>(weights.data, weights.size, 4);
  fill_zeros<<<1024, 256>>>(zeros.data, zeros.size, 5);

  std::vector<Plan<Element, Code>> plans(count);
  for (size_t i = 0; i < count; ++i) {
    CHECK(plans[i].prepare(m, n, k, {x.data, k}, {codes.data + i * words, scales.data, has_zeros ? zeros.data : nullptr, group}, {y.data, n}));
  }
  size_t turn = 0;
  std::vector<Candidate> candidates = {{[&](cudaStream_t stream) { CHECK(plans[turn++ % count].launch(stream)); }}};
  expect_product(m, n, k, RowMajor<T>{x.data, k}, PermutedWeights<Code, T>{codes.data, scales.data, zeros.data, k, group}, y, n,
                 [&](cudaStream_t stream) { CHECK(plans[0].launch(stream)); });
  fill_normal<<<1024, 256>>>(x.data, x.size, 2);
  fill_normal<<<1024, 256>>>(scales.data, scales.size, 3);
  const CublasProduct<Element> theirs(library, size, x.data, weights.data, y.data);
  theirs.add_to(candidates);

  const size_t scalars = scales.size + x.size, needed = words * sizeof(uint32_t) + sizeof(T) * scalars + (has_zeros ? sizeof(uint16_t) * zeros.size : 0);
  const auto plain = [&](cudaStream_t stream) {
    const uint32_t* first = codes.data + turn++ % (count - 1) * words;
    read<<<4 * multiprocessors, 512, 0, stream>>>(reinterpret_cast<const uint4*>(first), needed / sizeof(uint4), reinterpret_cast<uint4*>(codes.data));
  };
  constexpr double giga = 1e3;  // the table counts in units of 10^12
  const Other bytes = {" in GB/s; theirs reads as many bytes", giga * (needed + sizeof(T) * y.size), {plain}};
  rows.measure(size.text(), size.work(), candidates, false, &bytes);
}

template <template <class, class> class Plan>
void bench_kernel(cublasLtHandle_t library, const Options& options, const char* kernel, int multiprocessors) {
  using namespace ptxmma;
  const auto rows = [&](const char* types) { return Rows(options, kernel, types); };
  Rows int4 = rows("int4 by f16"), int4_bf16 = rows("int4 by bf16"), e2m1 = rows("e2m1 by f16"), e2m1_bf16 = rows("e2m1 by bf16");
  Rows uint4 = rows("uint4 by f16"), uint4_bf16 = rows("uint4 by bf16");
  for (const auto& [n, k] : {std::pair{8192, 8192}, {28672, 8192}, {8192, 28672}}) {
    for (const int m : {1, 16, 32, 64}) bench<Plan, f16, s4>(library, int4, {m, n, k}, multiprocessors);
  }
  for (const int m : {16, 64}) {
    const Size size = {m, 28672, 8192};
    bench<Plan, bf16, s4>(library, int4_bf16, size, multiprocessors);
    bench<Plan, f16, ptxmma::e2m1>(library, e2m1, size, multiprocessors);
    bench<Plan, bf16, ptxmma::e2m1>(library, e2m1_bf16, size, multiprocessors);
    bench<Plan, f16, u4>(library, uint4, size, multiprocessors);
    bench<Plan, bf16, u4>(library, uint4_bf16, size, multiprocessors);
  }
}

int main(int argc, char** argv) {
  const Options options(argc, argv);
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  int multiprocessors;
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  bench_kernel<w4a16_sm80::Plan>(library, options, "w4a16_sm80", multiprocessors);
  bench_kernel<w4a16_sm90::Plan>(library, options, "w4a16_sm90", multiprocessors);
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
