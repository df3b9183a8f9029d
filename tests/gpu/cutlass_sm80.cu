// The products of CUTLASS for Ampere that bench_gemm_sm80.cu compares with, in a file of their own because they compile slowly.
#include <cutlass/gemm/device/gemm.h>

#include <cuda_runtime.h>

namespace {

using cutlass::gemm::GemmShape;

template <class Element, class Block, int stages>
int run(int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream) {
  using Gemm = cutlass::gemm::device::Gemm<
      Element, cutlass::layout::RowMajor, Element, cutlass::layout::ColumnMajor, Element, cutlass::layout::RowMajor, float,
      cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, Block, GemmShape<64, 64, Block::kK>, GemmShape<16, 8, 16>,
      cutlass::epilogue::thread::LinearCombination<Element, 8, float, float>,
      cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, stages>;
  static Gemm gemm;
  const typename Gemm::Arguments arguments(
      {m, n, k}, {static_cast<const Element*>(a), k}, {static_cast<const Element*>(b), k}, {static_cast<Element*>(d), n},
      {static_cast<Element*>(d), n}, {1.f, 0.f});
  const cutlass::Status status = gemm.initialize(arguments, nullptr, stream);
  return static_cast<int>(status == cutlass::Status::kSuccess ? gemm.run(stream) : status);
}

template <class Element>
int run(int choice, int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream) {
  switch (choice) {
    case 0: return run<Element, GemmShape<128, 256, 32>, 3>(m, n, k, a, b, d, stream);
    case 1: return run<Element, GemmShape<128, 256, 32>, 4>(m, n, k, a, b, d, stream);
    case 2: return run<Element, GemmShape<256, 128, 32>, 4>(m, n, k, a, b, d, stream);
    case 3: return run<Element, GemmShape<128, 256, 64>, 3>(m, n, k, a, b, d, stream);
    case 4: return run<Element, GemmShape<256, 128, 64>, 3>(m, n, k, a, b, d, stream);
    default: return -1;
  }
}

}  // namespace

// 0 if all went well. `choice` counts from 0.
int cutlass_bf16(int choice, int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream) {
  return run<cutlass::bfloat16_t>(choice, m, n, k, a, b, d, stream);
}
int cutlass_f16(int choice, int m, int n, int k, const void* a, const void* b, void* d, cudaStream_t stream) {
  return run<cutlass::half_t>(choice, m, n, k, a, b, d, stream);
}
