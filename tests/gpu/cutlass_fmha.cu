// The attention of CUTLASS's example 88 that bench_attention_sm90.py compares with: with ping-pong, which is its fastest for these heads.
#include "collective/fmha_fusion.hpp"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

namespace {

using cute::_1;
using cute::Int;

template <int head, class Fusion>
int run(int batch, int heads, int rows, const void* q, const void* k, const void* v, void* o, float* logarithms, cudaStream_t stream) {
  using Element = cutlass::half_t;
  using Stride = cute::tuple<int, _1, cute::tuple<int, int>>;
  using Operation = cutlass::device::Universal<
      typename cutlass::fmha::kernel::FmhaBuilder<Element, float, float, cute::Shape<Int<128>, Int<head == 64 ? 64 : 128>, Int<head>>, Stride, Stride,
                                                  Stride, Fusion, cutlass::gemm::KernelTmaWarpSpecializedPingpong>::Kernel>;
  const Stride stride = {heads * head, _1{}, {rows * heads * head, head}};  // [batch][row][head][element]
  const auto input = [](const void* data) { return static_cast<const Element*>(data); };
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  const typename Operation::Arguments arguments{
      {batch, heads, rows, rows, head},
      {input(q), stride, input(k), stride, input(v), stride},
      {static_cast<Element*>(o), stride, logarithms, {_1{}, {heads * rows, rows}}},
      hardware};
  static Operation operation;
  const cutlass::Status status = operation.initialize(arguments, nullptr, stream);
  return static_cast<int>(status == cutlass::Status::kSuccess ? operation.run(stream) : status);
}

}  // namespace

extern "C" {
#define CUTLASS_FMHA(name, head, Fusion)                                                                                                 \
  int name(int batch, int heads, int rows, const void* q, const void* k, const void* v, void* o, float* logarithms, cudaStream_t stream) { \
    return run<head, cutlass::fmha::collective::Fusion>(batch, heads, rows, q, k, v, o, logarithms, stream);                             \
  }
CUTLASS_FMHA(f16_all_64, 64, DefaultFusion)
CUTLASS_FMHA(f16_causal_64, 64, CausalFusion)
CUTLASS_FMHA(f16_all_128, 128, DefaultFusion)
CUTLASS_FMHA(f16_causal_128, 128, CausalFusion)
}
