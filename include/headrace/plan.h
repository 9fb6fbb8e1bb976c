// SPDX-License-Identifier: Apache-2.0
//
// Plan: which samples a rank gets, and when.  A pure function of (data, seed, epoch): it
// reads nothing and needs no loader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/blend.h"
#include "headrace/dataset.h"

namespace hr {

struct OrderOptions {
  uint64_t batch_size = 1;       // this rank's
  std::string shuffle = "auto";  // "auto", "global", "pool", "none"
  uint64_t seed = 0;
  uint64_t window = 0;          // bytes that "pool" mixes over; 0: chosen
  uint64_t reassign_every = 1;  // epochs that share one order of blocks
  std::string tail;             // "drop", "pad", "keep"; "": drop when shuffled, keep when not
  uint32_t rank = 0;
  uint32_t world_size = 1;
};

// One thread at a time.
class HEADRACE_API Plan {
 public:
  Plan(const Dataset& data, const OrderOptions& options);
  Plan(const Blend& blend, const OrderOptions& options);
  ~Plan();
  Plan(Plan&&) noexcept;

  uint64_t steps() const;  // of an epoch, on every rank
  // The samples of this rank's step, in order; step < steps().
  std::vector<int64_t> step(uint64_t epoch, uint64_t step);
  // Of a blend: also which source each is from.
  struct Draw {
    uint32_t source = 0;
    int64_t sample = 0;
    bool valid = true;  // false: padding
  };
  std::vector<Draw> draws(uint64_t epoch, uint64_t step);
  std::string id() const;  // equal on every rank, or the ranks differ

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace hr
