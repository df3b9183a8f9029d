// Multiplies two bf16 matrices with the kernel of gemm_sm100.cuh and checks the result.
//
//   nvcc -std=c++17 -O3 -I"$(ptxmma --include-dir)" -gencode arch=compute_100f,code=sm_100f gemm_sm100.cu -o gemm_sm100 && ./gemm_sm100
//
// Small integers make every sum exact, so the result must equal the host's bit for bit. The sizes are not multiples of a tile's.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gemm_sm100.cuh"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  } while (0)

using Element = __nv_bfloat16;

Element* to_device(const std::vector<Element>& host) {
  Element* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(Element)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int m = 1000, n = 1032, k = 1048;
  std::vector<Element> a(size_t(m) * k), b(size_t(n) * k), d(size_t(m) * n);
  for (auto& x : a) x = Element(std::rand() % 3 - 1);
  for (auto& x : b) x = Element(std::rand() % 3 - 1);
  Element *device_a = to_device(a), *device_b = to_device(b), *device_d = to_device(d);

  // A is row-major and B column-major: the elements along k are neighbours in both.
  CHECK(gemm_sm100::launch(m, n, k, device_a, device_b, device_d));
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof(Element), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t row = i / n, column = i % n;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += float(a[row * k + l]) * float(b[column * k + l]);
    if (float(d[i]) != float(Element(sum))) {
      std::printf("wrong: D[%zu][%zu] is %g, not %g\n", row, column, float(d[i]), float(Element(sum)));
      return EXIT_FAILURE;
    }
  }
  std::printf("OK\n");
  for (Element* memory : {device_a, device_b, device_d}) CHECK(cudaFree(memory));
  return EXIT_SUCCESS;
}
