// SPDX-License-Identifier: Apache-2.0
//
// A change of pixels that happens with a probability, and draws nothing else.
#pragma once

#include <functional>
#include <utility>

#include "transform/transform.h"

namespace headrace {

// Immutable, hence thread-safe.
class Sometimes final : public PixelStep {
 public:
  using Change = std::function<void(const Pixels& pixels)>;
  Sometimes(double p, Change change) : p_(p), change_(std::move(change)) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    if (rng.uniform() < p_) change_(pixels);
    return {};
  }

 private:
  const double p_;
  const Change change_;
};

// The step of a make() function: refuses a p that is none.
inline Result<Transform> sometimes(double p, Sometimes::Change change) {
  HEADRACE_TRY(check_probability(p));
  return Transform(std::make_unique<Sometimes>(p, std::move(change)));
}

}  // namespace headrace
