// SPDX-License-Identifier: Apache-2.0
//
// random_grayscale: gray with probability `p`, in as many channels as before.
#include "transform/colour/colour.h"
#include "transform/transform.h"

namespace headrace {
namespace {

class RandomGrayscale final : public PixelStep {
 public:
  explicit RandomGrayscale(double p) : p_(p) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    if (rng.uniform() < p_) make_gray(pixels);
    return {};
  }
  bool has_changes() const override { return true; }
  void changes(Size, Rng rng, std::vector<PixelChange>& out) const override {
    if (rng.uniform() < p_) out.push_back({.kind = PixelChange::kGray});
  }

 private:
  const double p_;
};

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.1);
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  return Transform(std::make_unique<RandomGrayscale>(p));
}

}  // namespace

extern constinit const TransformEntry random_grayscale_transform{
    "random_grayscale", R"(Gray with probability ``p``, in as many channels as before.)", make};

}  // namespace headrace
