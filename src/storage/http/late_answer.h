// SPDX-License-Identifier: Apache-2.0
//
// From when on an answer is late, so that a second request is worth its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headrace {

inline constexpr uint64_t kRateBytes = 256 << 10;  // bodies below say nothing of the bandwidth

// How long answers take.
struct UsualAnswer {
  uint64_t first_byte_ns = 0;         // nearly all begin within this time
  uint64_t bytes_a_second = 0;        // of bodies that are complete; 0: none is
  std::vector<uint64_t> others = {};  // likewise of each body that is on its way now
};

// Counted from when the request was sent.  Nothing: there is nothing to compare it with.
//
// On a wire that all share, all bodies are slow: a second request would only take from the others.
// So the bodies on their way count where they are slower than those that are complete, which are
// those that were quick.
std::optional<uint64_t> late_after_ns(const UsualAnswer& usual, bool has_begun, uint64_t bytes);

}  // namespace headrace
