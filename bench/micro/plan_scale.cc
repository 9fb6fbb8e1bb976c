// SPDX-License-Identifier: Apache-2.0
//
// The plan at scale: 10^12 samples in 10^8 blocks of random sizes.  What it takes
// to start an epoch, to look up a position on the sequential path of a rank, and
// how much memory the caches hold beside the tables (1.2 GB here).  Times are
// processor time, cache misses included: others may share the machine.
//
//   plan_scale [blocks [samples per block]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/permutation.h"
#include "plan/plan.h"

namespace headrace {
namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds_since(double start) {
  return now() - start;
}

uint64_t sink = 0;  // NOLINT: keeps results alive

std::shared_ptr<const BlockTree> build(uint64_t blocks, uint64_t mean) {
  Rng rng{Key(1)};
  std::vector<uint32_t> sizes(blocks);
  for (uint32_t& size : sizes) size = static_cast<uint32_t>(1 + rng.below(2 * mean - 1));
  const double start = now();
  auto tree = std::make_shared<const BlockTree>(BlockTree::build(sizes).value());
  std::printf("%llu samples in %llu blocks; tables built in %.2f s\n",
              static_cast<unsigned long long>(tree->samples()),
              static_cast<unsigned long long>(tree->blocks()), seconds_since(start));
  return tree;
}

std::unique_ptr<Plan> make_plan(const std::shared_ptr<const BlockTree>& tree, uint32_t world,
                                uint64_t batch) {
  PlanOptions options{.seed = 1, .shuffle = Shuffle::kPool};
  options.cut = {.batch = batch, .rank = world / 2, .world = world};
  return Plan::make({{"", "f", tree, tree->blocks() * (uint64_t{4} << 20)}}, options).value();
}

void bench_epoch_start(const BlockTree& tree, const OrderShape& shape) {
  double start_us = 0;
  double first_us = 0;
  constexpr int kEpochs = 100;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const double start = now();
    Order order(tree, {.seed = 1, .epoch = epoch}, shape);
    start_us = std::max(start_us, seconds_since(start) * 1e6);
    sink += order.at(epoch);
    first_us = std::max(first_us, seconds_since(start) * 1e6);
  }
  std::printf("epoch start, worst of %d: %.1f us, with the first position %.1f us\n", kEpochs,
              start_us, first_us);
}

// A rank's steps from the middle of an epoch on.  The first pass over its lanes meets
// cold tables and nodes; what follows is the steady state, pool turns included.
void bench_rank(const std::shared_ptr<const BlockTree>& tree, uint32_t world, uint64_t batch) {
  const auto plan = make_plan(tree, world, batch);
  std::vector<PlanSlot> slots;
  uint64_t g = plan->epoch_length() / 2 / batch * batch;
  const double start = now();
  g = plan->step(3, g, slots).value();
  const double first_ms = seconds_since(start) * 1e3;
  uint64_t looked = slots.size();
  double worst = 0;
  while (looked < 20000000 && plan->steps_from(3, g) > 0) {
    const double before = now();
    g = plan->step(3, g, slots).value();
    looked += slots.size();
    worst = std::max(worst, seconds_since(before));
  }
  std::printf(
      "  R=%-4u B=%-6llu first step %.2f ms; %.0f ns a look-up over %.0f M, slowest step %.2f ms; "
      "caches %.1f MB\n",
      world, static_cast<unsigned long long>(batch), first_ms,
      seconds_since(start) / static_cast<double>(looked) * 1e9, static_cast<double>(looked) * 1e-6,
      worst * 1e3, static_cast<double>(plan->cache_bytes()) * 1e-6);
}

void bench_permutations() {
  constexpr uint64_t kLooks = 20000000;
  for (const uint64_t n : {uint64_t{65537}, uint64_t{1000000007}, uint64_t{1} << 62}) {
    const Feistel feistel(Key(1), n);
    const double start = now();
    for (uint64_t i = 0; i < kLooks; ++i) sink += feistel.at(i % n);
    std::printf("Feistel, n = %llu: %.1f ns\n", static_cast<unsigned long long>(n),
                seconds_since(start) / kLooks * 1e9);
  }
  Permutation table;
  const double start = now();
  for (uint64_t epoch = 0; epoch < 1000; ++epoch) {
    table.reset(Key(epoch), 20000);
    for (uint64_t i = 0; i < 20000; ++i) sink += table.at(i);
  }
  std::printf("Fisher-Yates, n = 20000: %.1f ns\n", seconds_since(start) / 20000000 * 1e9);
}

// Sources of 2^1 to 2^20 samples a block, weights 1 to 1/K.
void bench_mixture(uint64_t count, uint32_t world) {
  std::vector<PlanSource> sources;
  PlanOptions options{.seed = 1, .shuffle = Shuffle::kPool};
  for (uint64_t k = 0; k < count; ++k) {
    const std::vector<uint32_t> sizes(10000, uint32_t{2} << k % 20);
    auto tree = std::make_shared<const BlockTree>(BlockTree::build(sizes).value());
    sources.push_back(
        {std::to_string(k), "f", std::move(tree), sizes.size() * (uint64_t{4} << 20)});
    options.weights.push_back(1 / static_cast<double>(k + 1));
  }
  options.cut = {.batch = uint64_t{world} * 256, .rank = world / 2, .world = world};
  const auto plan = Plan::make(sources, options).value();
  std::vector<PlanSlot> slots;
  uint64_t g = 0;
  for (int i = 0; i < 20; ++i) g = plan->step(0, g, slots).value();
  const double start = now();
  uint64_t looked = 0;
  for (; looked < 1000000; looked += slots.size()) g = plan->step(0, g, slots).value();
  std::printf("mixture of %llu sources, L = %u, R=%u: %.0f ns a look-up; caches %.1f MB\n",
              static_cast<unsigned long long>(count), plan->state({}).lanes, world,
              seconds_since(start) / static_cast<double>(looked) * 1e9,
              static_cast<double>(plan->cache_bytes()) * 1e-6);
}

int run(uint64_t blocks, uint64_t mean) {
  bench_permutations();
  bench_mixture(10, 8);
  bench_mixture(300, 8);
  bench_mixture(300, 64);
  const auto tree = build(blocks, mean);
  const PlanState state = make_plan(tree, 1, 1)->state({});
  std::printf("L = %u, P = %llu\n", state.lanes, static_cast<unsigned long long>(state.pools[0]));
  bench_epoch_start(*tree, {state.mode, state.lanes, state.pools[0]});
  for (const uint32_t world : {1u, 8u, 64u, 1024u}) {
    bench_rank(tree, world, uint64_t{world} * 64);
    bench_rank(tree, world, uint64_t{world} * 1024);
  }
  return sink == 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  const uint64_t blocks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000000;
  const uint64_t mean = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10000;
  return headrace::run(std::max<uint64_t>(blocks, 1), std::max<uint64_t>(mean, 1));
}
