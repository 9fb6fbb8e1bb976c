// SPDX-License-Identifier: Apache-2.0
//
// For tests: trees and sources from block sizes, a chi-square measure, a tally.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/block_tree.h"
#include "plan/plan.h"

namespace headrace {

// What the property tests went through; printed at the end of the program.
struct Tally {
  uint64_t shapes = 0;
  uint64_t resumes = 0;
};
Tally& tally();

inline std::shared_ptr<const BlockTree> make_tree(const std::vector<uint32_t>& sizes,
                                                  uint32_t fan_out = kFanOut) {
  return std::make_shared<const BlockTree>(BlockTree::build(sizes, fan_out).value());
}

inline PlanSource make_source(const std::vector<uint32_t>& sizes, std::string name = "",
                              uint32_t fan_out = kFanOut) {
  return {std::move(name), "f00d", make_tree(sizes, fan_out), 0};
}

// How many standard deviations the chi-square of these counts lies above that of
// a uniform distribution: beyond 5, once in millions of tries (Wilson-Hilferty).
inline double chi_square_sigmas(std::span<const uint64_t> counts) {
  double total = 0;
  for (const uint64_t c : counts) total += static_cast<double>(c);
  const double expected = total / static_cast<double>(counts.size());
  double chi = 0;
  for (const uint64_t c : counts) {
    const double d = static_cast<double>(c) - expected;
    chi += d * d / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi / freedom) - (1 - spread)) / std::sqrt(spread);
}

}  // namespace headrace
