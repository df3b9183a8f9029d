// Multiplies a 2:4 sparse f16 matrix with the kernel of sparse_gemm_sm90.cuh, checks the result, and prints the speed.
//
//   nvcc -std=c++17 -O3 -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a sparse_gemm_sm90.cu -o sparse_gemm_sm90 &&
//   ./sparse_gemm_sm90
//
// Small integers make every sum exact, so the result must equal the host's bit for bit. The sizes are not multiples of a tile's.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sparse_gemm_sm90_plan.cuh"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  } while (0)

using Element = __half;

Element* to_device(const std::vector<Element>& host) {
  Element* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(Element)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int m = 4000, n = 4104, k = 4096, launches = 20;
  std::vector<Element> a(size_t(m) * k, Element(0)), b(size_t(n) * k), d(size_t(m) * n);
  for (size_t i = 0; i < a.size(); i += 4) {  // two of four neighbours, or fewer
    a[i + std::rand() % 4] = Element(std::rand() % 3 - 1);
    a[i + std::rand() % 4] = Element(std::rand() % 3 - 1);
  }
  for (auto& x : b) x = Element(std::rand() % 3 - 1);
  Element *device_a = to_device(a), *device_b = to_device(b), *device_d = to_device(d);

  // A is row-major and B column-major: the elements along k are neighbours in both.
  sparse_gemm_sm90::Weights<ptxmma::f16> weights;
  sparse_gemm_sm90::SparsePlan<ptxmma::f16, ptxmma::f16> plan;
  CHECK(weights.compress(m, k, device_a, k));
  CHECK(plan.prepare(weights, n, /* alpha: */ 1, {device_b, k}, /* beta: */ 0, /* no C: */ {}, {device_d, n}));
  CHECK(plan.launch());
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof(Element), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < d.size(); i += 997) {
    const size_t row = i / n, column = i % n;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += float(a[row * k + l]) * float(b[column * k + l]);
    if (float(d[i]) != float(Element(sum))) {
      std::printf("wrong: D[%zu][%zu] is %g, not %g\n", row, column, float(d[i]), float(Element(sum)));
      return EXIT_FAILURE;
    }
  }

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < launches; ++i) CHECK(plan.launch());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::printf("OK, %.0f TFLOP/s, zeros counted\n", 2e-9 * m * n * k * launches / ms);
  for (Element* memory : {device_a, device_b, device_d}) CHECK(cudaFree(memory));
  return EXIT_SUCCESS;
}
