// SPDX-License-Identifier: Apache-2.0
//
// auto_augment: one of 25 pairs of changes that were found by search on a data set; each change
// happens with its probability.  Cubuk et al., "AutoAugment: Learning Augmentation Strategies from
// Data", 2018; policies "imagenet", "cifar10" and "svhn".
#include "transform/colour/augment.h"

namespace headrace {
namespace {

struct Choice {
  Augment what;
  double p;
  int bin;  // of ten
};
using Pair = std::array<Choice, 2>;
using Policy = std::array<Pair, 25>;
using enum Augment;

constexpr Policy kImageNet{{
    {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}},  {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kEqualize, 0.4, 0}, {kRotate, 0.8, 8}}},
    {{{kSolarize, 0.6, 3}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.8, 5}, {kEqualize, 1.0, 0}}},
    {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},   {{{kEqualize, 0.6, 0}, {kPosterize, 0.4, 6}}},
    {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},      {{{kRotate, 0.4, 9}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.0, 0}, {kEqualize, 0.8, 0}}}, {{{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}}},
    {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},    {{{kRotate, 0.8, 8}, {kColor, 1.0, 2}}},
    {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},    {{{kSharpness, 0.4, 7}, {kInvert, 0.6, 0}}},
    {{{kShearX, 0.6, 5}, {kEqualize, 1.0, 0}}},   {{{kColor, 0.4, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kInvert, 0.6, 0}, {kEqualize, 1.0, 0}}},   {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}},
}};

constexpr Policy kCifar10{{
    {{{kInvert, 0.1, 0}, {kContrast, 0.2, 6}}},
    {{{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}}},
    {{{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}}},
    {{{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.5, 0}, {kEqualize, 0.9, 0}}},
    {{{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}}},
    {{{kColor, 0.4, 3}, {kBrightness, 0.6, 7}}},
    {{{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}}},
    {{{kEqualize, 0.6, 0}, {kEqualize, 0.5, 0}}},
    {{{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}}},
    {{{kColor, 0.7, 7}, {kTranslateX, 0.5, 8}}},
    {{{kEqualize, 0.3, 0}, {kAutoContrast, 0.4, 0}}},
    {{{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}}},
    {{{kBrightness, 0.9, 6}, {kColor, 0.2, 8}}},
    {{{kSolarize, 0.5, 2}, {kInvert, 0.0, 0}}},
    {{{kEqualize, 0.2, 0}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.2, 0}, {kEqualize, 0.6, 0}}},
    {{{kColor, 0.9, 9}, {kEqualize, 0.6, 0}}},
    {{{kAutoContrast, 0.8, 0}, {kSolarize, 0.2, 8}}},
    {{{kBrightness, 0.1, 3}, {kColor, 0.7, 0}}},
    {{{kSolarize, 0.4, 5}, {kAutoContrast, 0.9, 0}}},
    {{{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.9, 0}, {kSolarize, 0.8, 3}}},
    {{{kEqualize, 0.8, 0}, {kInvert, 0.1, 0}}},
    {{{kTranslateY, 0.7, 9}, {kAutoContrast, 0.9, 0}}},
}};

constexpr Policy kSvhn{{
    {{{kShearX, 0.9, 4}, {kInvert, 0.2, 0}}},       {{{kShearY, 0.9, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.6, 0}, {kSolarize, 0.6, 6}}},   {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},     {{{kShearX, 0.9, 4}, {kAutoContrast, 0.8, 0}}},
    {{{kShearY, 0.9, 8}, {kInvert, 0.4, 0}}},       {{{kShearY, 0.9, 5}, {kSolarize, 0.2, 6}}},
    {{{kInvert, 0.9, 0}, {kAutoContrast, 0.8, 0}}}, {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},
    {{{kShearX, 0.9, 4}, {kSolarize, 0.3, 3}}},     {{{kShearY, 0.8, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.9, 0}, {kTranslateY, 0.6, 6}}}, {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kContrast, 0.3, 3}, {kRotate, 0.8, 4}}},     {{{kInvert, 0.8, 0}, {kTranslateY, 0.0, 2}}},
    {{{kShearY, 0.7, 6}, {kSolarize, 0.4, 8}}},     {{{kInvert, 0.6, 0}, {kRotate, 0.8, 4}}},
    {{{kShearY, 0.3, 7}, {kTranslateX, 0.9, 3}}},   {{{kShearX, 0.1, 6}, {kInvert, 0.6, 0}}},
    {{{kSolarize, 0.7, 2}, {kTranslateY, 0.6, 7}}}, {{{kShearY, 0.8, 4}, {kInvert, 0.8, 0}}},
    {{{kShearX, 0.7, 9}, {kTranslateY, 0.8, 3}}},   {{{kShearY, 0.8, 5}, {kAutoContrast, 0.7, 0}}},
    {{{kShearX, 0.7, 2}, {kInvert, 0.1, 0}}},
}};

class AutoAugment final : public AugmentStep {
 public:
  AutoAugment(const Policy& policy, const Sampling& sampling)
      : AugmentStep(sampling), policy_(policy) {}

 protected:
  int draw(Size size, Rng rng, std::span<Augmentation, kMost> out) const override {
    size_t n = 0;
    for (const Choice& c : policy_[rng.below(policy_.size())])
      if (rng.uniform() < c.p) out[n++] = augmentation(c.what, c.bin, 10, Reach::kUsual, size, rng);
    return static_cast<int>(n);
  }

 private:
  const Policy& policy_;
};

Result<const Policy*> policy_named(const std::string& name) {
  if (name == "imagenet") return &kImageNet;
  if (name == "cifar10") return &kCifar10;
  if (name == "svhn") return &kSvhn;
  return invalid("no policy '" + name + "'; there are imagenet, cifar10, svhn");
}

Result<Transform> make(Params params) {
  const std::string name = params.take_text("policy", "imagenet");
  const GivenSampling given(params);
  HEADRACE_TRY(params.done());
  HEADRACE_ASSIGN(const Policy* policy, policy_named(name));
  HEADRACE_ASSIGN(const Sampling sampling, given.checked());
  return Transform(std::make_unique<AutoAugment>(*policy, sampling));
}

}  // namespace

extern constinit const TransformEntry auto_augment_transform{
    "auto_augment",
    R"(AutoAugment: a pair of changes of ``policy``: "imagenet", "cifar10" or "svhn".)", make};

}  // namespace headrace
