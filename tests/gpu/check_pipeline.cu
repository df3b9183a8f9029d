// Runs the kernel of docs/pipeline.rst many times, and compares all numbers. With a fault it fails, hangs, or gives the right numbers all the
// same: give it a process and a time limit of its own.
//
//   nvcc -std=c++17 -O3 -Igenerated/include -Idocs/examples -arch=sm_90a tests/gpu/check_pipeline.cu -o build/pipeline && timeout 10 build/pipeline
#include <vector>

#include "numbers.cuh"
#include "pipeline_sm90.cuh"

int main() {
  const int launches = 60, blocks = 264, tiles = 4096;
  const size_t count = size_t(tiles) * pipeline::NUMBERS;
  DeviceArray<float> in(count), out(count);
  std::vector<float> given(count), got(count);
  int wrong = 0;
  for (int launch = 0; launch < launches; ++launch) {
    for (size_t i = 0; i < count; ++i) given[i] = float((7 * i + 131 * size_t(launch)) % 65521 + 1);
    CHECK(cudaMemcpy(in.data, given.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out.data, 0, count * sizeof(float)));
    pipeline::scale<<<blocks, pipeline::READERS + 32>>>(in.data, out.data, tiles, 2.0f);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got.data(), out.data, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; ++i) {
      if (got[i] != 2 * given[i]) {
        ++wrong;
        break;
      }
    }
  }
  std::printf("%d of %d launches give wrong numbers\n", wrong, launches);
  return wrong != 0;
}
