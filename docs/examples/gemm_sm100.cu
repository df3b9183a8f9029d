// Multiplies matrices of bf16, of e4m3 and of nvfp4 with the kernel of gemm_sm100.cuh and checks the results.
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

using gemm_sm100::Nvfp4;

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// A matrix of x rows (or columns, of B) of -1, 0 and 1, whose k elements are neighbours: its values, and what the kernel takes.
template <class Operands>
struct Random {
  std::vector<float> values;
  typename Operands::Matrix matrix;
  Random(int x, int k) : values(size_t(x) * k) {
    std::vector<typename Operands::Input> elements;
    for (float& value : values) elements.emplace_back(value = float(std::rand() % 3 - 1));
    matrix = to_device(elements);
  }
};

// Here each block of 16 is multiplied by 1 or 2.
template <>
struct Random<Nvfp4> {
  std::vector<float> values;
  Nvfp4::Matrix matrix;
  Random(int x, int k) : values(size_t(x) * k) {
    const int groups = (x + 127) / 128, steps = (k + 63) / 64;
    std::vector<uint8_t> elements(values.size() / 2), factors(size_t(groups) * steps * 512);
    for (int row = 0; row < x; ++row) {
      for (int block = 0; block < k / 16; ++block) {
        const int doubled = std::rand() % 2;
        const size_t at = (size_t(row / 128) * steps + block / 4) * 512 + row % 32 * 16 + row / 32 % 4 * 4 + block % 4;
        factors[at] = doubled ? 0x40 : 0x38;  // 2 or 1 as ue4m3
        for (int i = 0; i < 16; ++i) {
          const size_t element = size_t(row) * k + block * 16 + i;
          const int value = std::rand() % 3 - 1;
          const int code = value < 0 ? 0xA : 2 * value;  // -1, 0 or 1 as e2m1
          elements[element / 2] |= code << element % 2 * 4;
          values[element] = float(value << doubled);
        }
      }
    }
    matrix = {to_device(elements), to_device(factors)};
  }
};

template <class Operands>
bool is_right(const char* name) {
  const int m = 1000, n = 1032, k = 1056;
  const Random<Operands> a(m, k), b(n, k);  // A is row-major and B column-major
  std::vector<__nv_bfloat16> d(size_t(m) * n);
  __nv_bfloat16* device_d = to_device(d);
  CHECK(gemm_sm100::launch<Operands>(m, n, k, 1, a.matrix, b.matrix, device_d));
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof d[0], cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t row = i / n, column = i % n;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += a.values[row * k + l] * b.values[column * k + l];
    if (float(d[i]) != float(__nv_bfloat16(sum))) {
      std::printf("%s: wrong: D[%zu][%zu] is %g, not %g\n", name, row, column, float(d[i]), float(__nv_bfloat16(sum)));
      return false;
    }
  }
  std::printf("%s: OK\n", name);
  return true;
}

int main() {
  const bool right[] = {
      is_right<gemm_sm100::Bf16>("bf16"), is_right<gemm_sm100::E4m3>("e4m3"), is_right<gemm_sm100::Nvfp4>("nvfp4")};
  return right[0] && right[1] && right[2] ? EXIT_SUCCESS : EXIT_FAILURE;  // the end of the process frees the matrices
}
