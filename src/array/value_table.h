// SPDX-License-Identifier: Apache-2.0
//
// ValueTable: where each value of variable length lies, as a byte extent of the file.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

struct ValueExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: the value is empty
};

// A stretch of values that lie one after the other over several files.
struct ValueRun {
  uint64_t begin = 0;  // which byte of all values it begins with
  uint64_t bytes = 0;
  uint32_t file = 0;  // of the description
  uint64_t offset = 0;
  bool is_missing = false;  // it was never stored: zeros
};

// Immutable once made, hence thread-safe.  16 bytes a value.
struct ValueTable {
  uint32_t file = 0;                 // of the description
  std::vector<ValueExtent> extents;  // last axis fastest
  // Not empty: extents are of these bytes, and nothing is read.
  std::vector<std::byte> literal;
  // Not empty: extents are of what these make up, one after the other (flat_values.h).
  std::vector<ValueRun> runs;
  // What is wrong with values that cannot be found: those samples are bad, the others are not.
  std::map<uint64_t, Status> damaged;
  uint64_t total_bytes = 0;
};

}  // namespace headrace
