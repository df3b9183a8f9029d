// What the benchmarks of the example kernels share. Each prints rows of one table; bench.sh puts them together.
//
// The kernels of a row run in one process, in an order that changes at random from round to round, a few milliseconds each; medians count.
// So they share what the chip's clock does when it reaches the limit of its power.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "clock.cuh"
#include "numbers.cuh"

template <class T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Candidate {
  std::function<void()> run;
  std::vector<float> times = {};  // ms
  float time() const { return median(times); }
};

// One line of the table: our kernel is the first candidate, the default of what it is compared with the second.
struct Row {
  std::string kernel, types;
  double to_default = 1, to_best = 1;
  int count = 0;

  // Measures the candidates in about so many rounds, and prints. `work` is in operations.
  void measure(const char* size, double work, std::vector<Candidate>& candidates, int rounds) {
    static const Clock clock;
    constexpr float slice = 5;  // ms
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<unsigned> clocks;
    const auto time = [&](const Candidate& candidate, int launches, bool ours) {
      CHECK(cudaEventRecord(start));
      for (int i = 0; i < launches; ++i) candidate.run();
      CHECK(cudaEventRecord(stop));
      if (ours) clocks.push_back(clock.megahertz());
      CHECK(cudaEventSynchronize(stop));
      float elapsed;
      CHECK(cudaEventElapsedTime(&elapsed, start, stop));
      return elapsed / launches;
    };
    std::vector<float> first;
    for (const Candidate& candidate : candidates) {
      time(candidate, 1, false);
      first.push_back(time(candidate, 3, false));
    }
    const float fastest = *std::min_element(first.begin(), first.end());
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(candidates.size()); ++i) {
      if (i < 2 || first[i] < 1.2f * fastest) order.push_back(i);  // the others cannot be the best
    }
    std::mt19937 random(1);
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const int i : order) {
        const int launches = std::max(1, static_cast<int>(slice / first[i]));
        time(candidates[i], launches, false);  // brings the clock to where this candidate's power leaves it
        candidates[i].times.push_back(time(candidates[i], launches, i == 0));
      }
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    const float ours = candidates[0].time(), theirs = candidates[1].time();
    float best = theirs;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (!candidates[i].times.empty()) best = std::min(best, candidates[i].time());
    }
    const double tera = 1e-9 * work;  // per ms
    std::printf("%s,%s,%s,%.0f,%.0f,%.0f,%.3f,%.3f,%u\n", kernel.c_str(), types.c_str(), size, tera / ours, tera / theirs, tera / best,
                theirs / ours, best / ours, median(clocks));
    std::fflush(stdout);
    to_default *= theirs / ours;
    to_best *= best / ours;
    ++count;
  }

  // The line below the sizes.
  void mean() const {
    std::printf("%s,%s,geometric mean,,,,%.3f,%.3f,\n", kernel.c_str(), types.c_str(), std::pow(to_default, 1. / count),
                std::pow(to_best, 1. / count));
    std::fflush(stdout);
  }
};

struct Size {
  int m, n, k;
  std::string text() const { return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k); }
  double work() const { return 2. * m * n * k; }
};
const Size SIZES[] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}};
