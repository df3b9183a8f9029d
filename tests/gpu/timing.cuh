// Times several ways to do a thing in one process, in an order that changes at random from round to round; medians count. Each is first run for
// as long as it is then timed, so that the chip's clock is where this candidate's power leaves it.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include "clock.cuh"
#include "numbers.cuh"

// The chip is at the limit of its power for tens of milliseconds before the clock settles: SHORT ends before, SUSTAINED begins after.
constexpr float SHORT = 5, SUSTAINED = 250;  // ms

template <class T>
T median(std::vector<T> values) {
  if (values.empty()) return T();
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Candidate {
  std::function<void(cudaStream_t)> run;
  int number = 0;                                    // among those of the same product
  std::vector<float> times = {};                     // ms
  std::vector<unsigned> megahertz = {}, watts = {};  // while it is timed
  float time() const { return median(times); }
};

inline void measure(std::vector<Candidate>& candidates, int rounds, float ms, cudaStream_t stream = nullptr) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  static const Power power;
  const Stretch stretch;
  const auto time = [&](Candidate& candidate, int launches, bool read) {
    if (read) stretch.begin(stream);
    CHECK(cudaEventRecord(start, stream));
    for (int i = 0; i < launches; ++i) candidate.run(stream);
    CHECK(cudaEventRecord(stop, stream));
    if (read) stretch.end(stream);
    if (read) {
      do {  // once at least: where the host takes as long for a launch as the chip does, all is done by now
        if (const unsigned watts = power.watts(); watts > 0) candidate.watts.push_back(watts);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      } while (cudaEventQuery(stop) == cudaErrorNotReady);
    }
    CHECK(cudaStreamSynchronize(stream));
    if (read) candidate.megahertz.push_back(stretch.megahertz());
    float elapsed;
    CHECK(cudaEventElapsedTime(&elapsed, start, stop));
    return elapsed / launches;
  };
  std::vector<int> launches, order(candidates.size());
  for (Candidate& candidate : candidates) {
    candidate.times.clear();
    candidate.megahertz.clear();
    candidate.watts.clear();
    time(candidate, 1, false);
    launches.push_back(std::max(1, static_cast<int>(ms / time(candidate, 2, false))));
  }
  std::iota(order.begin(), order.end(), 0);
  static std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order) {
      time(candidates[i], launches[i], false);
      candidates[i].times.push_back(time(candidates[i], launches[i], true));
    }
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
}
