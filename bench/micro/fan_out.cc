// SPDX-License-Identifier: Apache-2.0
//
// How well pools mix content that repeats every so many blocks, for several fan-outs of the block
// tree: the variance of a batch's class counts over uniform sampling's.  docs/adr/0002.
//
//   fan_out [fan_outs=1024,1021,1657,1187,827]
#include <cmath>
#include <cstdio>

#include "arguments.h"
#include "plan/order.h"
#include "plan/shape.h"

namespace headrace {
namespace {

constexpr uint64_t kBlocks = 20480;
constexpr uint32_t kBlock = 20;  // samples
constexpr uint32_t kLanes = 64;
constexpr uint64_t kBatch = 4 * kLanes;
constexpr uint64_t kClasses = 10;

// The classes follow each other within each period, in blocks.
double variance_ratio(const BlockTree& tree, const OrderShape& shape, uint64_t period) {
  constexpr double kShare = 1.0 / kClasses;
  constexpr double kMean = kBatch * kShare;
  const uint64_t samples = period * kBlock;
  double squares = 0;
  uint64_t terms = 0;
  Order order(tree, {.seed = 1, .epoch = 0}, shape);
  for (uint64_t g = 0; g + kBatch <= order.samples(); g += kBatch, terms += kClasses) {
    std::vector<uint64_t> counts(kClasses);
    for (uint64_t i = g; i < g + kBatch; ++i) ++counts[order.at(i) % samples * kClasses / samples];
    for (const uint64_t c : counts) squares += std::pow(static_cast<double>(c) - kMean, 2);
  }
  return squares / static_cast<double>(terms) / (kMean * (1 - kShare));
}

int main_of(int argc, char** argv) {
  Options options{{"fan_outs", "1024,1021,1657,1187,827"}};
  read_arguments(argc, argv, options);
  const std::vector<uint64_t> periods{16,   32,   50,   64,   100,  128,  200, 243, 250,
                                      256,  269,  333,  400,  500,  512,  538, 768, 1000,
                                      1024, 1075, 1250, 1500, 2000, 2048, 4096};
  const std::vector<uint32_t> sizes(kBlocks, kBlock);
  for (const std::string& text : pieces(options["fan_outs"])) {
    const auto tree = BlockTree::build(sizes, static_cast<uint32_t>(std::stoul(text))).value();
    OrderShape shape = choose_shape({tree.samples(), kBlocks, 0}, Shuffle::kPool);
    shape.lanes = kLanes;
    double worst = 0, sum = 0;
    for (const uint64_t period : periods) {
      const double ratio = variance_ratio(tree, shape, period);
      worst = std::max(worst, ratio);
      sum += ratio;
    }
    std::printf("fan-out %5s  worst %.2f  mean %.2f\n", text.c_str(), worst,
                sum / static_cast<double>(periods.size()));
  }
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}
