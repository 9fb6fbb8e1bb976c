// SPDX-License-Identifier: Apache-2.0
//
// random_vertical_flip: top and bottom change places with probability `p`.
#include "transform/transform.h"

namespace headrace {
namespace {

class RandomVerticalFlip final : public Geometric {
 public:
  explicit RandomVerticalFlip(double p) : p_(p) {}
  Size infer(Size in) const override { return in; }
  View view(Size in, Rng rng) const override {
    View v = identity_view(in);
    v.flip_down = rng.uniform() < p_;
    return v;
  }
  bool only_flips() const override { return true; }

 private:
  const double p_;
};

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  return Transform(std::make_unique<RandomVerticalFlip>(p));
}

}  // namespace

extern constinit const TransformEntry random_vertical_flip_transform{
    "random_vertical_flip", R"(Mirrored top-bottom with probability ``p``.)", make};

}  // namespace headrace
