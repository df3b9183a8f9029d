// Times several ways to do a thing in one process, in an order that changes at random from round to round, a few milliseconds each; medians
// count. So they share what the chip's clock does when it reaches the limit of its power.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#include "clock.cuh"
#include "numbers.cuh"

struct Candidate {
  std::function<void(cudaStream_t)> run;
  std::vector<float> times = {};  // ms
  float median() {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }
};

// The result is the clock while the first of them runs, in MHz.
inline unsigned measure(std::vector<Candidate>& candidates, int rounds, float ms, cudaStream_t stream = nullptr) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  static const Clock clock;
  std::vector<unsigned> clocks;
  const auto time = [&](const Candidate& candidate, int launches) {
    CHECK(cudaEventRecord(start, stream));
    for (int i = 0; i < launches; ++i) candidate.run(stream);
    CHECK(cudaEventRecord(stop, stream));
    if (&candidate == &candidates[0]) clocks.push_back(clock.megahertz());
    CHECK(cudaEventSynchronize(stop));
    float elapsed;
    CHECK(cudaEventElapsedTime(&elapsed, start, stop));
    return elapsed / launches;
  };
  std::vector<int> launches, order(candidates.size());
  for (const Candidate& candidate : candidates) {
    time(candidate, 1);
    launches.push_back(std::max(1, static_cast<int>(ms / time(candidate, 2))));
  }
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order) {
      time(candidates[i], launches[i]);  // brings the clock to where this candidate's power leaves it
      candidates[i].times.push_back(time(candidates[i], launches[i]));
    }
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  std::nth_element(clocks.begin(), clocks.begin() + clocks.size() / 2, clocks.end());
  return clocks[clocks.size() / 2];
}
