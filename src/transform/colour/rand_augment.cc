// SPDX-License-Identifier: Apache-2.0
//
// rand_augment: `num_ops` changes one after the other, each drawn out of fourteen, all of one
// magnitude.  Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced
// search space", 2019.
#include "transform/colour/augment.h"

namespace headrace {
namespace {

class RandAugment final : public AugmentStep {
 public:
  RandAugment(int count, int bin, int bins, const Sampling& sampling)
      : AugmentStep(sampling), count_(count), bin_(bin), bins_(bins) {}
  // AugmentStep gives room for the most.
  static constexpr int most() { return kMost; }

 protected:
  int draw(Size size, Rng rng, std::span<Augmentation, kMost> out) const override {
    for (int i = 0; i < count_; ++i)
      out[static_cast<size_t>(i)] =
          augmentation(draw_augment(rng), bin_, bins_, Reach::kUsual, size, rng);
    return count_;
  }

 private:
  const int count_;
  const int bin_;
  const int bins_;
};

Result<Transform> make(Params params) {
  const int num_ops = params.take_integer("num_ops", 2);
  const int magnitude = params.take_integer("magnitude", 9);
  const int bins = params.take_integer("num_magnitude_bins", 31);
  const GivenSampling given(params);
  HEADRACE_TRY(params.done());
  if (num_ops < 0 || num_ops > RandAugment::most())
    return invalid("parameter 'num_ops' must be from 0 to " + std::to_string(RandAugment::most()));
  if (bins < 2 || bins > 1000)
    return invalid("parameter 'num_magnitude_bins' must be from 2 to 1000");
  if (magnitude < 0 || magnitude >= bins)
    return invalid("parameter 'magnitude' must be from 0 to num_magnitude_bins - 1, which is " +
                   std::to_string(bins - 1));
  HEADRACE_ASSIGN(const Sampling sampling, given.checked());
  return Transform(std::make_unique<RandAugment>(num_ops, magnitude, bins, sampling));
}

}  // namespace

extern constinit const TransformEntry rand_augment_transform{
    "rand_augment",
    R"(RandAugment: ``num_ops`` changes drawn out of fourteen, all of one magnitude.)", make};

}  // namespace headrace
