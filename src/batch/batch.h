// SPDX-License-Identifier: Apache-2.0
//
// Batch: what the consumer receives.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/column.h"

namespace headrace {

// Where the consumer stands after a batch: enough to go on from there.
struct Position {
  uint64_t epoch = 0;
  uint64_t g = 0;     // position in the epoch's global sequence
  bool last = false;  // the epoch ends with this batch
};

// Owned by whoever received it; the engine keeps nothing of it.
struct Batch {
  std::vector<Column> columns;    // in the order of the engine's columns
  std::vector<int64_t> indices;   // which samples these are
  std::vector<uint32_t> sources;  // and of which source
  std::vector<uint8_t> valid;     // 1: real, 0: padding
  // Where samples are grouped (packed sequences): group i has the samples [groups[i], groups[i+1]).
  std::vector<int64_t> groups;
  Position after;
  // Set by a stage that fails: it cannot make a value that was left to it, and the CPU's decoders
  // say what is wrong with which sample, or make it.
  bool decode_again = false;
};

}  // namespace headrace
