// Multiplies matrices of bf16 and of e4m3 with the kernel of gemm_sm100.cuh and checks the results.
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

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <class Operands>
bool is_right(const char* name) {
  using Input = typename Operands::Input;
  using Output = __nv_bfloat16;
  const int m = 1000, n = 1032, k = 1040;
  std::vector<Input> a(size_t(m) * k), b(size_t(n) * k);
  std::vector<Output> d(size_t(m) * n);
  for (auto& x : a) x = Input(float(std::rand() % 3 - 1));
  for (auto& x : b) x = Input(float(std::rand() % 3 - 1));
  Input *device_a = to_device(a), *device_b = to_device(b);
  Output* device_d = to_device(d);

  // A is row-major and B column-major: the elements along k are neighbours in both.
  CHECK(gemm_sm100::launch<Operands>(m, n, k, device_a, device_b, device_d));
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof(Output), cudaMemcpyDeviceToHost));
  for (void* memory : {(void*)device_a, (void*)device_b, (void*)device_d}) CHECK(cudaFree(memory));
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t row = i / n, column = i % n;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += float(a[row * k + l]) * float(b[column * k + l]);
    if (float(d[i]) != float(Output(sum))) {
      std::printf("%s: wrong: D[%zu][%zu] is %g, not %g\n", name, row, column, float(d[i]), float(Output(sum)));
      return false;
    }
  }
  std::printf("%s: OK\n", name);
  return true;
}

int main() {
  const bool right[] = {is_right<gemm_sm100::Bf16>("bf16"), is_right<gemm_sm100::E4m3>("e4m3")};
  return right[0] && right[1] ? EXIT_SUCCESS : EXIT_FAILURE;
}
