// SPDX-License-Identifier: Apache-2.0
//
// What rand_augment, trivial_augment and auto_augment choose from: fourteen changes, each with a
// magnitude out of so many bins, most of them to either side.
#pragma once

#include <span>
#include <vector>

#include "transform/geometry/motion.h"
#include "transform/params.h"
#include "transform/transform.h"

namespace headrace {

enum class Augment : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};

// How far magnitudes go: RandAugment's and AutoAugment's, or TrivialAugment's.
enum class Reach : uint8_t { kUsual, kWide };

// A change drawn.
struct Augmentation {
  Augment what = Augment::kIdentity;
  double magnitude = 0;
};

// Bin `bin` of `bins`, for a picture of this size; then a side is drawn for those that have two.
Augmentation augmentation(Augment what, int bin, int bins, Reach reach, Size size, Rng& rng);
// One of the first fourteen, each as likely.
Augment draw_augment(Rng& rng);

// A step that makes several of them one after the other.
// Immutable, hence thread-safe.
class AugmentStep : public PixelStep {
 public:
  explicit AugmentStep(const Sampling& sampling) : sampling_(sampling) {}
  Status apply(const Pixels& pixels, Rng rng) const final;
  std::optional<Affine> matrix(Size size, Rng rng) const final;
  Status check_channels(int channels) const final;

 protected:
  static constexpr int kMost = 64;  // changes of one picture
  // Writes the changes in their order; returns how many.
  virtual int draw(Size size, Rng rng, std::span<Augmentation, kMost> out) const = 0;

 private:
  const Sampling sampling_;
};

// Takes "interpolation" and "fill"; checked() after the parameters are done().
class GivenSampling {
 public:
  explicit GivenSampling(Params& params)
      : interpolation_(params.take_text("interpolation", "nearest")),
        fill_(params.take_numbers("fill", {})) {}
  Result<Sampling> checked() const;

 private:
  const std::string interpolation_;
  const std::vector<double> fill_;
};

}  // namespace headrace
