// What the benchmarks of the example kernels share. Each prints rows of one table; bench.sh puts them together.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <cuda_profiler_api.h>

#include "compare.cuh"
#include "timing.cuh"

struct Size {
  int m, n, k;
  std::string text() const { return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k); }
  double work() const { return 2. * m * n * k; }
};
// The geometric mean is of these.
const Size SIZES[] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}, {2048, 4096, 7168}, {16384, 8192, 1024}};

// How a benchmark is run: its arguments are the number of sustained rounds, and a file. In the file it writes which candidate was the best of each
// size. Without rounds it times nothing, but launches our kernel and that candidate for profile.sh.
struct Options {
  int rounds;
  std::string choices;
  Options(int argc, char** argv) : rounds(argc > 1 ? std::atoi(argv[1]) : 5), choices(argc > 2 ? argv[2] : "/dev/null") {
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0) return;
    std::fprintf(stderr, "%s: there is no GPU\n", argv[0]);
    std::exit(EXIT_FAILURE);
  }
};

// What else a size is compared with, in a line of its own.
struct Other {
  const char* suffix;  // follows the types in the row: the unit, or the other kernel
  double work;
  Candidate candidate;
};

// Lines of the table for the sizes of one type: our kernel is the first candidate, the default of what it is compared with the second.
class Rows {
 public:
  Rows(const Options& options, std::string kernel, std::string types) : options_(options), kernel_(kernel), types_(types) {}

  // Measures the candidates and prints a line for each way to measure. `work` is in operations. There are five times as many short rounds as
  // sustained ones. Each time those drop out of which others were faster.
  void measure(const std::string& size, double work, std::vector<Candidate> candidates, bool in_mean, const Other* other = nullptr) {
    for (size_t i = 0; i < candidates.size(); ++i) candidates[i].number = static_cast<int>(i);
    if (options_.rounds == 0) return profile(size, candidates, other);
    ::measure(candidates, 3, 1);
    const auto [brief, close] = measure_as("short", size, work, closest(candidates, 1.2f, 6), other, 5 * options_.rounds, SHORT);
    const auto [sustained, closer] = measure_as("sustained", size, work, closest(close, 1.03f, 2), other, options_.rounds, SUSTAINED);
    std::ofstream(options_.choices, std::ios::app) << line(size) << ',' << best_of(closer).number << '\n';
    if (!in_mean) return;
    short_.add(brief);
    sustained_.add(sustained);
  }

  // The lines below the sizes.
  void means() const {
    if (options_.rounds == 0) return;
    for (const auto& [way, mean] : {std::pair{"short", &short_}, {"sustained", &sustained_}}) {
      std::printf("%s,%s,,,,%.3f,%.3f,,,,\n", line("geometric mean").c_str(), way, std::pow(mean->to_default, 1. / mean->count),
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

  std::string line(const std::string& size, const char* suffix = "") const { return kernel_ + ',' + types_ + suffix + ',' + size; }

  // The first two, and as many of the others as may be the best.
  static std::vector<Candidate> closest(std::vector<Candidate> candidates, float factor, size_t most) {
    const float limit = factor * best_of(candidates).time();
    std::vector<Candidate> close(candidates.begin(), candidates.begin() + 2);
    std::sort(candidates.begin() + 2, candidates.end(), [](auto& x, auto& y) { return x.time() < y.time(); });
    for (size_t i = 2; i < candidates.size() && i < most + 2 && candidates[i].time() < limit; ++i) close.push_back(candidates[i]);
    return close;
  }

  static const Candidate& best_of(const std::vector<Candidate>& candidates) {
    return *std::min_element(candidates.begin() + 1, candidates.end(), [](auto& x, auto& y) { return x.time() < y.time(); });
  }

  std::pair<Ratios, std::vector<Candidate>> measure_as(const char* way, const std::string& size, double work, std::vector<Candidate> candidates,
                                                       const Other* other, int rounds, float ms) const {
    if (other != nullptr) candidates.push_back(other->candidate);
    ::measure(candidates, rounds, ms);
    const Candidate last = candidates.back();
    if (other != nullptr) candidates.pop_back();
    const Ratios ratios = print(line(size), way, work, candidates);
    if (other != nullptr) print(line(size, other->suffix), way, other->work, {candidates[0], last});
    return {ratios, candidates};
  }

  void profile(const std::string& size, const std::vector<Candidate>& candidates, const Other* other) const {
    std::ifstream choices(options_.choices);
    for (std::string one; std::getline(choices, one);) {
      const size_t comma = one.rfind(',');
      if (one.substr(0, comma) != line(size)) continue;
      profile_pair(line(size), candidates[0], candidates.at(std::stoi(one.substr(comma + 1))));
      if (other != nullptr) profile_pair(line(size, other->suffix), candidates[0], other->candidate);
    }
  }

  static void profile_pair(const std::string& line, const Candidate& ours, const Candidate& theirs) {
    const auto launch = [&] {
      ours.run(nullptr);
      theirs.run(nullptr);
      CHECK(cudaDeviceSynchronize());
    };
    launch();
    CHECK(cudaProfilerStart());
    launch();
    CHECK(cudaProfilerStop());
    std::printf("%s\n", line.c_str());
  }

  static Ratios print(const std::string& line, const char* way, double work, const std::vector<Candidate>& candidates) {
    const Candidate &ours = candidates[0], &theirs = candidates[1];
    const Candidate& best = best_of(candidates);
    const double tera = 1e-9 * work;  // per ms
    const Ratios ratios = {theirs.time() / ours.time(), best.time() / ours.time()};
    std::printf("%s,%s,%.0f,%.0f,%.0f,%.3f,%.3f,%u,%u,%u,%u\n", line.c_str(), way, tera / ours.time(), tera / theirs.time(), tera / best.time(),
                ratios.to_default, ratios.to_best, median(ours.megahertz), median(ours.watts), median(best.megahertz), median(best.watts));
    std::fflush(stdout);
    return ratios;
  }

  const Options options_;
  std::string kernel_, types_;
  Mean short_, sustained_;
};
