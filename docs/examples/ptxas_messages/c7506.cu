// C7506: a kernel that changes its number of registers calls a function that the assembler cannot see through.
#include "common.cuh"

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(registers));
}
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(registers));
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void __launch_bounds__(384, 1) wrong(Operand, Operand, float* out, int steps) {
  if (threadIdx.x < 128) {
    give_registers<24>();
    out[0] = fibonacci(steps % 8);
  } else {
    take_registers<240>();
    out[threadIdx.x] = steps;
  }
}

extern "C" __global__ void __launch_bounds__(384, 1) right(Operand, Operand, float* out, int steps) {
  if (threadIdx.x < 128) {
    give_registers<24>();
    out[0] = steps % 8;
  } else {
    take_registers<240>();
    out[threadIdx.x] = steps;
  }
}
