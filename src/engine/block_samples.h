// SPDX-License-Identifier: Apache-2.0
//
// BlockSamples: which samples the block of a sample has, so that whoever counts those that were
// taken of a run knows when none is left.  Eight bytes for every 64 blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "index/source.h"

namespace headrace {

// Immutable, hence thread-safe.  The blocks outlive it.
class BlockSamples {
 public:
  explicit BlockSamples(const Blocks& blocks);
  struct Range {
    uint64_t first = 0;
    uint32_t count = 0;  // 0: there is no such sample
  };
  Range of(uint64_t sample) const;

 private:
  const std::vector<uint32_t>& samples_;
  std::vector<uint64_t> first_;  // the first sample of every kStride-th block
};

}  // namespace headrace
