// What the benchmarks of the example kernels share. Each prints rows of one table; bench.sh puts them together.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "timing.cuh"

// One line of the table: our kernel is the first candidate, the default of what it is compared with the second.
struct Row {
  std::string kernel, types;
  double to_default = 1, to_best = 1;
  int count = 0;

  // Measures the candidates in so many rounds, and prints. `work` is in operations.
  void measure(const char* size, double work, std::vector<Candidate> candidates, int rounds) {
    ::measure(candidates, 3, 1);
    const float fastest = std::min_element(candidates.begin(), candidates.end(), [](auto& x, auto& y) { return x.median() < y.median(); })->median();
    std::vector<Candidate> close;
    for (Candidate& candidate : candidates) {
      const bool first_two = &candidate - candidates.data() < 2;
      if (first_two || candidate.median() < 1.2f * fastest) close.push_back({candidate.run, {}});  // the others cannot be the best
    }
    const unsigned clock = ::measure(close, rounds, 5);
    const float ours = close[0].median(), theirs = close[1].median();
    float best = theirs;
    for (size_t i = 2; i < close.size(); ++i) best = std::min(best, close[i].median());
    const double tera = 1e-9 * work;  // per ms
    std::printf("%s,%s,%s,%.0f,%.0f,%.0f,%.3f,%.3f,%u\n", kernel.c_str(), types.c_str(), size, tera / ours, tera / theirs, tera / best,
                theirs / ours, best / ours, clock);
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
