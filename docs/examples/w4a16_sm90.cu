// Runs w4a16_program.cuh with the kernel of w4a16_sm90.cuh.
//
//   nvcc -std=c++17 -O3 -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a w4a16_sm90.cu -o w4a16_sm90 && ./w4a16_sm90
#include "w4a16_program.cuh"
#include "w4a16_sm90_plan.cuh"

int main() { return run<w4a16_sm90::Plan>(); }
