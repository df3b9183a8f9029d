// Runs w4a16_program.cuh with the kernel of w4a16_sm80.cuh.
//
//   nvcc -std=c++17 -O3 -I"$(ptxmma --include-dir)" -arch=sm_80 w4a16_sm80.cu -o w4a16_sm80 && ./w4a16_sm80
#include "w4a16_program.cuh"
#include "w4a16_sm80_plan.cuh"

int main() { return run<w4a16_sm80::Plan>(); }
