// attention_sm90 as a library that bench_attention_sm90.py calls with the tensors of PyTorch.
#include <cmath>

#include "attention_sm90_plan.cuh"
#include "clock.cuh"

template <class Element, bool causal, int head>
int launch(int batch, int heads, int rows, const void* q, const void* k, const void* v, void* o, int* counter, cudaStream_t stream) {
  using T = ptxmma::storage<Element>;
  const int64_t row = int64_t(heads) * head, all = row * rows;  // [batch][row][head][element]
  static attention_sm90::Plan<Element, causal, head> plan;
  const auto input = [&](const void* data) { return attention_sm90::Tensor<const T>{static_cast<const T*>(data), row, head, all}; };
  const cudaError_t status = plan.prepare(batch, heads, heads, rows, rows, 1 / std::sqrt(float(head)), input(q), input(k), input(v),
                                          {static_cast<T*>(o), row, head, all}, counter);
  return status == cudaSuccess ? plan.launch(stream) : status;
}

extern "C" {
void note_the_moment(void* moments, cudaStream_t stream) { note_moment(static_cast<Moment*>(moments), stream); }
#define PTXMMA_ATTENTION(name, element, causal, head)                                                                                       \
  int name(int batch, int heads, int rows, const void* q, const void* k, const void* v, void* o, int* counter, cudaStream_t stream) { \
    return launch<ptxmma::element, causal, head>(batch, heads, rows, q, k, v, o, counter, stream);                                          \
  }
PTXMMA_ATTENTION(bf16_all_128, bf16, false, 128)
PTXMMA_ATTENTION(bf16_causal_128, bf16, true, 128)
PTXMMA_ATTENTION(f16_all_128, f16, false, 128)
PTXMMA_ATTENTION(f16_causal_128, f16, true, 128)
PTXMMA_ATTENTION(bf16_all_64, bf16, false, 64)
PTXMMA_ATTENTION(bf16_causal_64, bf16, true, 64)
PTXMMA_ATTENTION(f16_all_64, f16, false, 64)
PTXMMA_ATTENTION(f16_causal_64, f16, true, 64)
}
