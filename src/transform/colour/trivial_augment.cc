// SPDX-License-Identifier: Apache-2.0
//
// trivial_augment: one change out of fourteen, of a magnitude drawn as well.  Mueller and Hutter,
// "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", 2021 (the wide one).
#include "transform/colour/augment.h"

namespace headrace {
namespace {

class TrivialAugment final : public AugmentStep {
 public:
  TrivialAugment(int bins, const Sampling& sampling) : AugmentStep(sampling), bins_(bins) {}

 protected:
  int draw(Size size, Rng rng, std::span<Augmentation, kMost> out) const override {
    const Augment what = draw_augment(rng);
    const auto bin = static_cast<int>(rng.below(static_cast<uint64_t>(bins_)));
    out[0] = augmentation(what, bin, bins_, Reach::kWide, size, rng);
    return 1;
  }

 private:
  const int bins_;
};

Result<Transform> make(Params params) {
  const int bins = params.take_integer("num_magnitude_bins", 31);
  const GivenSampling given(params);
  HEADRACE_TRY(params.done());
  if (bins < 2 || bins > 1000)
    return invalid("parameter 'num_magnitude_bins' must be from 2 to 1000");
  HEADRACE_ASSIGN(const Sampling sampling, given.checked());
  return Transform(std::make_unique<TrivialAugment>(bins, sampling));
}

}  // namespace

extern constinit const TransformEntry trivial_augment_transform{
    "trivial_augment",
    R"(TrivialAugment (torchvision's TrivialAugmentWide): one change of random magnitude.)", make};

}  // namespace headrace
