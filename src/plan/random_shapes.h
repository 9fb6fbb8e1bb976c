// SPDX-License-Identifier: Apache-2.0
//
// For tests: small random shapes with every awkward feature often enough.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "plan/reference.h"
#include "plan/steps.h"

namespace headrace {

inline std::vector<uint32_t> random_sizes(Rng& rng) {
  enum : uint8_t { kEven, kZeroOrOne, kMostlyEmpty, kOneHuge, kUneven, kKinds };
  const uint64_t kind = rng.below(kKinds);
  std::vector<uint32_t> sizes(1 + rng.below(rng.below(4) == 0 ? 60 : 12));
  for (uint32_t& size : sizes) {
    size = static_cast<uint32_t>(kind == kEven ? 4 : rng.below(kind == kZeroOrOne ? 2 : 9));
    if (kind == kMostlyEmpty && rng.below(3) > 0) size = 0;
  }
  if (kind == kOneHuge) sizes[rng.below(sizes.size())] = static_cast<uint32_t>(50 + rng.below(100));
  return sizes;
}

inline OrderShape random_order(Rng& rng) {
  const uint64_t kind = rng.below(6);
  if (kind == 0) return {};
  if (kind == 1) return {.mode = OrderMode::kGlobal};
  return {OrderMode::kPool, uint32_t{1} << rng.below(7), 1 + rng.below(25)};
}

inline reference::Shape random_shape(Rng& rng) {
  reference::Shape s;
  s.sizes = random_sizes(rng);
  s.fan_out = rng.below(3) == 0 ? 827 : static_cast<uint32_t>(2 + rng.below(6));
  s.order = random_order(rng);
  s.seed = rng.next();
  s.epoch = rng.below(5);
  s.reassign_every = 1 + rng.below(3);
  return s;
}

inline Tail random_tail(Rng& rng) {
  return static_cast<Tail>(rng.below(3));
}

inline StepCut random_cut(Rng& rng, Tail tail) {
  StepCut cut;
  cut.world = static_cast<uint32_t>(1 + rng.below(rng.below(5) == 0 ? 20 : 5));
  cut.batch = cut.world * (1 + rng.below(8));
  cut.tail = tail;
  return cut;
}

}  // namespace headrace
