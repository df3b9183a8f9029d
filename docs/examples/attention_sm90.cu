// Runs the attention of attention_sm90.cuh, checks rows of the result, and prints the speed.
//
//   nvcc -std=c++17 -O3 -I"$(ptxmma --include-dir)" -gencode arch=compute_90a,code=sm_90a attention_sm90.cu -o attention_sm90 && ./attention_sm90
//
// The sequences are not multiples of a tile's rows. The probabilities are rounded to bf16 before they meet V, hence the tolerance.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "attention_sm90_plan.cuh"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  } while (0)

using Element = __nv_bfloat16;
constexpr int HEAD = 128;

Element* to_device(const std::vector<Element>& host) {
  Element* device;
  CHECK(cudaMalloc(&device, host.size() * sizeof(Element)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int batch = 2, heads = 16, rows = 4000, launches = 20;
  const float scale = 1 / std::sqrt(float(HEAD));
  const int64_t row = int64_t(heads) * HEAD, all = row * rows;  // [batch][row][head][element]
  std::vector<Element> q(batch * all), k(q.size()), v(q.size()), o(q.size());
  for (auto* tensor : {&q, &k, &v}) {
    for (auto& x : *tensor) x = Element(std::rand() / float(RAND_MAX) * 4 - 2);
  }
  Element *device_q = to_device(q), *device_k = to_device(k), *device_v = to_device(v), *device_o = to_device(o);
  int* counter;
  CHECK(cudaMalloc(&counter, sizeof *counter));
  CHECK(cudaMemset(counter, 0, sizeof *counter));

  attention_sm90::Plan<ptxmma::bf16, /* causal: */ true> plan;
  CHECK(plan.prepare(batch, heads, heads, rows, rows, scale, {device_q, row, HEAD, all}, {device_k, row, HEAD, all},
                     {device_v, row, HEAD, all}, {device_o, row, HEAD, all}, counter));
  CHECK(plan.launch());
  CHECK(cudaMemcpy(o.data(), device_o, o.size() * sizeof(Element), cudaMemcpyDeviceToHost));
  for (int sample = 0; sample < 200; ++sample) {
    const int i = (sample * 1009) % rows;
    const size_t head = (sample % batch) * all + (sample % heads) * HEAD, at = head + i * row;
    std::vector<double> sums(HEAD);
    double total = 0;
    for (int j = 0; j <= i; ++j) {
      double score = 0;
      for (int l = 0; l < HEAD; ++l) score += double(float(q[at + l])) * double(float(k[head + j * row + l]));
      const double weight = std::exp(scale * score);
      total += weight;
      for (int l = 0; l < HEAD; ++l) sums[l] += weight * double(float(v[head + j * row + l]));
    }
    for (int l = 0; l < HEAD; ++l) {
      if (!(std::fabs(double(float(o[at + l])) - sums[l] / total) < 0.02)) {
        std::printf("wrong: row %d, element %d is %g, not %g\n", i, l, double(float(o[at + l])), sums[l] / total);
        return EXIT_FAILURE;
      }
    }
  }

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < launches; ++i) CHECK(plan.launch());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::printf("OK, %.0f TFLOP/s\n", 2e-9 * rows * rows * HEAD * heads * batch * launches / ms);  // half of 4 * ...: causal
  for (Element* memory : {device_q, device_k, device_v, device_o}) CHECK(cudaFree(memory));
  CHECK(cudaFree(counter));
  return EXIT_SUCCESS;
}
