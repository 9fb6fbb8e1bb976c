// SPDX-License-Identifier: Apache-2.0
//
// Plan: which samples a rank gets, and when.  A pure function of (data, seed, epoch): it
// reads nothing and needs no loader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/dataset.h"

namespace hr {

struct OrderOptions {
  uint64_t batch_size = 1;       // this rank's
  std::string shuffle = "auto";  // "auto", "global", "pool", "none"
  uint64_t seed = 0;
  std::string tail;  // "drop", "pad", "keep"; "": drop when shuffled, keep when not
  uint32_t rank = 0;
  uint32_t world_size = 1;
};

// One thread at a time.
class HEADRACE_API Plan {
 public:
  Plan(const Dataset& data, const OrderOptions& options);
  ~Plan();
  Plan(Plan&&) noexcept;

  uint64_t steps() const;  // of an epoch, on every rank
  // The samples of this rank's step, in order; step < steps().
  std::vector<int64_t> step(uint64_t epoch, uint64_t step);
  std::string id() const;  // equal on every rank, or the ranks differ

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace hr
