// SPDX-License-Identifier: Apache-2.0
//
// Samples packed into rows anew each epoch: how long an epoch takes, how many rows it has, and how
// many pairs of samples that share a row in one epoch share one in the next.  Processor time.
//
//   group_samples [samples [tokens of a row]]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "plan/epoch_groups.h"

namespace headrace {
namespace {

constexpr uint64_t kEpochs = 6, kPairsOf = 2;

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Log-normal, median 300, cut at the length of a row: about as chats are.
std::vector<uint32_t> lengths_of(uint64_t samples, uint64_t longest) {
  Rng rng{Key(1)};
  const auto unit = [&rng] { return (static_cast<double>(rng.below(1 << 24)) + 1) / (1 << 24); };
  std::vector<uint32_t> out(samples);
  for (uint32_t& length : out) {
    const double normal = std::sqrt(-2 * std::log(unit())) * std::cos(6.283185307 * unit());
    length = static_cast<uint32_t>(
        std::clamp(300 * std::exp(0.9 * normal), 1.0, static_cast<double>(longest)));
  }
  return out;
}

std::vector<uint64_t> pairs_of(const SampleGroups& groups) {
  std::vector<uint64_t> out;
  for (uint64_t g = 0; g < groups.size(); ++g) {
    const auto members = groups.members(g);
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = i + 1; j < members.size(); ++j)
        out.push_back(uint64_t{members[i]} << 32 | members[j]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void bench(EpochGroups& groups, OrderMode mode, const char* name) {
  uint64_t least = ~uint64_t{0}, most = 0;
  double best = 1e9;
  std::vector<uint64_t> pairs[kPairsOf], both;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const double start = now();
    const EpochGroups::Made made = groups.of({.seed = 1, .epoch = epoch}, mode);
    best = std::min(best, now() - start);
    least = std::min(least, made.groups->size());
    most = std::max(most, made.groups->size());
    if (epoch < kPairsOf) pairs[epoch] = pairs_of(*made.groups);
  }
  std::set_intersection(pairs[0].begin(), pairs[0].end(), pairs[1].begin(), pairs[1].end(),
                        std::back_inserter(both));
  std::printf("%-6s %.3f s an epoch; %llu to %llu rows; %.1f %% of the pairs come together again\n",
              name, best, static_cast<unsigned long long>(least),
              static_cast<unsigned long long>(most),
              100 * static_cast<double>(both.size()) / static_cast<double>(pairs[0].size()));
}

void run(uint64_t samples, uint64_t capacity) {
  constexpr uint64_t kBlock = 1000;
  const auto grouping =
      Grouping::make(lengths_of(samples, capacity), {.capacity = capacity}).value();
  const uint64_t rows = grouping->as_they_lie()->size();
  std::printf("%llu samples, %llu rows of %llu, filled to %.2f %%\n",
              static_cast<unsigned long long>(samples), static_cast<unsigned long long>(rows),
              static_cast<unsigned long long>(capacity),
              100 * static_cast<double>(grouping->tokens()) / static_cast<double>(rows * capacity));
  std::vector<uint32_t> blocks(samples / kBlock, kBlock);
  if (samples % kBlock > 0) blocks.push_back(static_cast<uint32_t>(samples % kBlock));
  const auto groups = EpochGroups::make(grouping, BlockTree::build(blocks).value()).value();
  bench(*groups, OrderMode::kGlobal, "global");
  bench(*groups, OrderMode::kPool, "pool");
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000,
                argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2048);
}
