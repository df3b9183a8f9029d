// What the benchmarks of the example kernels share. Each prints rows of one table; bench.sh puts them together.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <cuda_profiler_api.h>

#include "timing.cuh"

struct Size {
  int m, n, k;
  std::string text() const { return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k); }
  double work() const { return 2. * m * n * k; }
};
// The geometric mean is of these.
const Size SIZES[] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}, {2048, 4096, 7168}, {16384, 8192, 1024}};

// Lines of the table for the sizes of one type: our kernel is the first candidate, the default of what it is compared with the second.
class Rows {
 public:
  // `rounds`: sustained ones; there are five times as many short ones. Without any, profile.sh has Nsight Compute look at a launch of our kernel
  // and of the fastest other.
  Rows(std::string kernel, std::string types, int rounds) : kernel_(kernel), types_(types), rounds_(rounds) {}

  // Measures the candidates and prints a line for each way to measure. `work` is in operations.
  void measure(const std::string& size, double work, std::vector<Candidate> candidates, bool in_mean) {
    ::measure(candidates, 3, 1);
    std::vector<Candidate> close = closest(candidates, 1.2f);
    ::measure(close, 5 * (rounds_ == 0 ? 3 : rounds_), SHORT);
    if (rounds_ == 0) return profile(size, close);
    const auto brief = print(size, "short", work, close);
    close = closest(close, 1.03f);
    ::measure(close, rounds_, SUSTAINED);
    const auto sustained = print(size, "sustained", work, close);
    if (!in_mean) return;
    short_.add(brief);
    sustained_.add(sustained);
  }

  // The lines below the sizes.
  void means() const {
    if (rounds_ == 0) return;
    for (const auto& [way, mean] : {std::pair{"short", &short_}, {"sustained", &sustained_}}) {
      std::printf("%s,%s,geometric mean,%s,,,,%.3f,%.3f,,,,\n", kernel_.c_str(), types_.c_str(), way, std::pow(mean->to_default, 1. / mean->count),
                  std::pow(mean->to_best, 1. / mean->count));
    }
    std::fflush(stdout);
  }

 private:
  struct Ratios {
    double to_default, to_best;
  };
  struct Mean {
    double to_default = 1, to_best = 1;
    int count = 0;
    void add(Ratios ratios) {
      to_default *= ratios.to_default;
      to_best *= ratios.to_best;
      ++count;
    }
  };

  // The first two, and the others that may be the best.
  static std::vector<Candidate> closest(const std::vector<Candidate>& candidates, float factor) {
    float fastest = candidates[1].time();
    for (size_t i = 1; i < candidates.size(); ++i) fastest = std::min(fastest, candidates[i].time());
    std::vector<Candidate> close;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (i < 2 || candidates[i].time() < factor * fastest) close.push_back({candidates[i].run});
    }
    return close;
  }

  static const Candidate& best_of(const std::vector<Candidate>& candidates) {
    return *std::min_element(candidates.begin() + 1, candidates.end(), [](auto& x, auto& y) { return x.time() < y.time(); });
  }

  void profile(const std::string& size, const std::vector<Candidate>& candidates) const {
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    candidates[0].run(nullptr);
    best_of(candidates).run(nullptr);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
    std::printf("%s,%s,%s\n", kernel_.c_str(), types_.c_str(), size.c_str());
  }

  Ratios print(const std::string& size, const char* way, double work, const std::vector<Candidate>& candidates) const {
    const Candidate &ours = candidates[0], &theirs = candidates[1];
    const Candidate& best = best_of(candidates);
    const double tera = 1e-9 * work;  // per ms
    const Ratios ratios = {theirs.time() / ours.time(), best.time() / ours.time()};
    std::printf("%s,%s,%s,%s,%.0f,%.0f,%.0f,%.3f,%.3f,%u,%u,%u,%u\n", kernel_.c_str(), types_.c_str(), size.c_str(), way, tera / ours.time(),
                tera / theirs.time(), tera / best.time(), ratios.to_default, ratios.to_best, median(ours.megahertz), median(ours.watts),
                median(best.megahertz), median(best.watts));
    std::fflush(stdout);
    return ratios;
  }

  std::string kernel_, types_;
  int rounds_;
  Mean short_, sustained_;
};
