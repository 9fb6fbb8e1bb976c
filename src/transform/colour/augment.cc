// SPDX-License-Identifier: Apache-2.0
#include "transform/colour/augment.h"

#include <cmath>
#include <numbers>

#include "transform/colour/colour.h"
#include "transform/colour/neighbours.h"
#include "transform/geometry/motions.h"

namespace headrace {
namespace {

// Evenly spaced in f32, from both ends towards the middle, as torch.linspace.
double spaced(double from, double to, int bin, int bins) {
  const auto begin = static_cast<float>(from);
  const auto end = static_cast<float>(to);
  if (bins == 1) return begin;
  const float step = (end - begin) / static_cast<float>(bins - 1);
  const double steps = step;  // f64 does what a fused multiply and add does
  return static_cast<float>(bin < bins / 2 ? begin + steps * bin : end - steps * (bins - bin - 1));
}

bool has_two_sides(Augment what) {
  return what >= Augment::kShearX && what <= Augment::kSharpness;
}

// Where the magnitude of the last bin lies; that of the first is 0 for those with two sides.
double furthest(Augment what, Reach reach, Size size) {
  const bool wide = reach == Reach::kWide;
  switch (what) {
    case Augment::kShearX:
    case Augment::kShearY:
      return wide ? 0.99 : 0.3;
    case Augment::kTranslateX:
      return wide ? 32 : 150.0 / 331.0 * size.width;
    case Augment::kTranslateY:
      return wide ? 32 : 150.0 / 331.0 * size.height;
    case Augment::kRotate:
      return wide ? 135 : 30;
    default:
      return wide ? 0.99 : 0.9;
  }
}

double magnitude_of(Augment what, int bin, int bins, Reach reach, Size size) {
  if (has_two_sides(what)) return spaced(0, furthest(what, reach, size), bin, bins);
  if (what == Augment::kSolarize) return spaced(1, 0, bin, bins);
  if (what != Augment::kPosterize) return 0;
  // From 8 bits down to 4, or to 2.
  const float bits = reach == Reach::kWide ? 6 : 4;
  const auto each = static_cast<float>((bins - 1) / static_cast<double>(bits));
  return std::nearbyint(8 - static_cast<float>(bin) / each);
}

double degrees(double tangent) {
  return std::atan(tangent) * (180 / std::numbers::pi);
}

// The motion of those that move pixels.
std::optional<Motion> motion_of(const Augmentation& a, Size size) {
  Motion m;
  switch (a.what) {
    case Augment::kShearX:
    case Augment::kShearY:
      m.center_x = -0.5 * size.width;
      m.center_y = -0.5 * size.height;
      (a.what == Augment::kShearX ? m.shear_x : m.shear_y) = degrees(a.magnitude);
      return m;
    case Augment::kTranslateX:
      m.move_x = std::trunc(a.magnitude);
      return m;
    case Augment::kTranslateY:
      m.move_y = std::trunc(a.magnitude);
      return m;
    case Augment::kRotate:
      return turned(a.magnitude, m);
    default:
      return std::nullopt;
  }
}

void change(const Pixels& pixels, const Augmentation& a) {
  switch (a.what) {
    case Augment::kBrightness:
      return adjust_brightness(pixels, 1 + a.magnitude);
    case Augment::kColor:
      return adjust_saturation(pixels, 1 + a.magnitude);
    case Augment::kContrast:
      return adjust_contrast(pixels, 1 + a.magnitude);
    case Augment::kSharpness:
      return adjust_sharpness(pixels, 1 + a.magnitude);
    case Augment::kPosterize:
      return posterize(pixels, static_cast<int>(a.magnitude));
    case Augment::kSolarize:
      return solarize(pixels, 255 * a.magnitude);
    case Augment::kAutoContrast:
      return autocontrast(pixels);
    case Augment::kEqualize:
      return equalize(pixels);
    case Augment::kInvert:
      return invert(pixels);
    default:
      return;
  }
}

}  // namespace

Augmentation augmentation(Augment what, int bin, int bins, Reach reach, Size size, Rng& rng) {
  const double magnitude = magnitude_of(what, bin, bins, reach, size);
  const bool other_side = has_two_sides(what) && rng.uniform() < 0.5;
  return {what, other_side ? -magnitude : magnitude};
}

Augment draw_augment(Rng& rng) {
  return static_cast<Augment>(rng.below(static_cast<uint64_t>(Augment::kInvert)));
}

Status AugmentStep::apply(const Pixels& pixels, Rng rng) const {
  std::array<Augmentation, kMost> drawn;
  const int n = draw(pixels.size, rng, drawn);
  for (const Augmentation& a : std::span(drawn).first(static_cast<size_t>(n))) {
    if (const auto motion = motion_of(a, pixels.size)) {
      if (a.magnitude != 0) move_pixels(pixels, *motion, sampling_);
    } else {
      change(pixels, a);
    }
  }
  return {};
}

std::optional<Affine> AugmentStep::matrix(Size size, Rng rng) const {
  std::array<Augmentation, kMost> drawn;
  const int n = draw(size, rng, drawn);
  std::optional<Affine> out;
  for (const Augmentation& a : std::span(drawn).first(static_cast<size_t>(n)))
    if (const auto motion = motion_of(a, size))
      out = out.value_or(Affine{}).then(matrix_of(*motion, size));
  return out;
}

Status AugmentStep::check_channels(int channels) const {
  return sampling_.fill.value_or(Colour{}).check_channels(channels, "fill");
}

Result<Sampling> GivenSampling::checked() const {
  Sampling out;
  HEADRACE_ASSIGN(out.filter, sampling_named(interpolation_));
  if (fill_.empty()) return out;
  HEADRACE_ASSIGN(out.fill, colour_from(fill_, "fill"));
  return out;
}

}  // namespace headrace
