// Times `wrong` against `right` of the programs in docs/examples/ptxas_messages, with a block on each multiprocessor of an H200. The arguments
// are their cubins:
//
//   for i in docs/examples/ptxas_messages/c*.cu; do
//     nvcc -std=c++17 -O3 -Igenerated/include -gencode arch=compute_90a,code=sm_90a -cubin $i -o build/$(basename $i .cu); done
//   nvcc -std=c++17 -O3 -Igenerated/include tests/gpu/time_ptxas_messages.cu -lcuda -o build/time && build/time build/c75*
#include <algorithm>
#include <string>

#include <cuda.h>

#include <ptxmma/wgmma/bf16_bf16.cuh>

#include "numbers.cuh"

using Multiply = ptxmma::wgmma<ptxmma::shape<64, 128, 16>, ptxmma::f32, ptxmma::bf16, ptxmma::bf16>;
using Tile = Multiply::b_tile<PTXMMA_MAJORNESS_K, PTXMMA_SWIZZLE_128B, 256, 64>;

int main(int argc, char** argv) {
  CHECK(cudaFree(nullptr));
  DeviceArray<float> out(1 << 22);
  CHECK(cudaMemset(out.data, 0, out.size * sizeof(float)));
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  std::printf("program,wrong (ms),right (ms),ratio\n");
  for (int i = 1; i < argc; ++i) {
    CUmodule module;
    CHECK(cuModuleLoad(&module, argv[i]));
    const std::string name = std::string(argv[i]).substr(std::string(argv[i]).rfind('/') + 1);
    const bool three = name < "c7509";
    float best[2];
    for (int which = 0; which < 2; ++which) {
      CUfunction function;
      CHECK(cuModuleGetFunction(&function, module, which == 0 ? "wrong" : "right"));
      CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
      auto operand = Tile::descriptor(0);
      float* to = out.data;
      int steps = 10000;
      void* arguments[] = {&operand, &operand, &to, &steps};
      std::vector<float> times;
      for (int round = 0; round < 9; ++round) {
        CHECK(cudaEventRecord(start));
        CHECK(cuLaunchKernel(function, 132, 1, 1, three ? 384 : 128, 1, 1, 100 * 1024, nullptr, arguments, nullptr));
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        times.push_back(ms);
      }
      std::sort(times.begin(), times.end());
      best[which] = times[times.size() / 2];
    }
    std::printf("%s,%.3f,%.3f,%.2f\n", name.c_str(), best[0], best[1], best[0] / best[1]);
    CHECK(cuModuleUnload(module));
  }
  return EXIT_SUCCESS;
}
