// Times w4a16_sm80 and w4a16_sm90 against cuBLAS with weights of 16 bits, and against a plain read of as many bytes as it must read. The weights of each
// launch differ from the weights of the launches before it, so that they do not come from L2. The argument is the number of sustained rounds.
#include <memory>

#include "bench.cuh"
#include "cublas.cuh"
#include "w4a16_sm80_plan.cuh"
#include "w4a16_sm90_plan.cuh"

using w4a16::storage;

__global__ void fill_words(uint32_t* words, size_t size, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size; i += size_t(gridDim.x) * blockDim.x) words[i] = random_bits(i, seed);
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

template <template <class, class> class Plan, class Element>
void bench(cublasLtHandle_t library, Rows& product, Rows& bytes, Size size, int multiprocessors) {
  using T = storage<Element>;
  const auto [m, n, k] = size;
  constexpr int group = 128;
  constexpr size_t l2 = size_t(50) << 20;
  const size_t words = size_t(n) * k / 8, count = 4 * l2 / (words * sizeof(uint32_t)) + 2;  // of copies of the weights
  DeviceArray<uint32_t> codes(words * count);
  DeviceArray<T> x(size_t(m) * k), y(size_t(m) * n), scales(size_t(n) * k / group), weights(size_t(n) * k);
  fill_words<<<1024, 256>>>(codes.data, codes.size, 1);
  fill_normal<<<1024, 256>>>(x.data, x.size, 2);
  fill_normal<<<1024, 256>>>(scales.data, scales.size, 3);
  fill_normal<<<1024, 256>>>(weights.data, weights.size, 4);

  std::vector<Plan<Element, ptxmma::s4>> plans(count);
  for (size_t i = 0; i < count; ++i) {
    CHECK(plans[i].prepare(m, n, k, {x.data, k}, {codes.data + i * words, scales.data, nullptr, group}, {y.data, n}));
  }
  size_t turn = 0;
  const auto ours = [&](cudaStream_t stream) { CHECK(plans[turn++ % count].launch(stream)); };
  std::vector<Candidate> candidates = {{ours}};
  const CublasProduct<Element> theirs(library, size, x.data, weights.data, y.data);
  theirs.add_to(candidates);
  product.measure(size.text(), size.work(), candidates, false);

  const size_t needed = words * sizeof(uint32_t) + sizeof(T) * (scales.size + x.size);
  const auto plain = [&](cudaStream_t stream) {
    const uint32_t* first = codes.data + turn++ % (count - 1) * words;
    read<<<4 * multiprocessors, 512, 0, stream>>>(reinterpret_cast<const uint4*>(first), needed / sizeof(uint4), reinterpret_cast<uint4*>(codes.data));
  };
  constexpr double giga = 1e3;  // the table counts in units of 10^12
  bytes.measure(size.text(), giga * (needed + sizeof(T) * y.size), {{ours}, {plain}}, false);
}

template <template <class, class> class Plan>
void bench_sizes(const char* kernel, cublasLtHandle_t library, int rounds, int multiprocessors) {
  Rows product(kernel, "int4 by f16", rounds), bytes(kernel, "int4 by f16 in GB/s; theirs reads as many bytes", rounds);
  for (const auto& [n, k] : {std::pair{8192, 8192}, {28672, 8192}, {8192, 28672}}) {
    for (const int m : {1, 16, 32, 64}) bench<Plan, ptxmma::f16>(library, product, bytes, {m, n, k}, multiprocessors);
  }
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  cublasLtHandle_t library;
  CHECK(cublasLtCreate(&library));
  int multiprocessors;
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  bench_sizes<w4a16_sm80::Plan>("w4a16_sm80", library, rounds, multiprocessors);
  bench_sizes<w4a16_sm90::Plan>("w4a16_sm90", library, rounds, multiprocessors);
  CHECK(cublasLtDestroy(library));
  return EXIT_SUCCESS;
}
