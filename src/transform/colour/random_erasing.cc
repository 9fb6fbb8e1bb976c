// SPDX-License-Identifier: Apache-2.0
//
// random_erasing: with probability `p`, a random part of the picture is covered by `value`: a
// level, one for each channel, or "random".  Drawn as torchvision draws it: ten tries of an area
// uniform in `scale` and a shape log-uniform in `ratio`; if none fits, nothing is erased.
#include <algorithm>
#include <cmath>

#include "transform/transform.h"

namespace headrace {
namespace {

// What torchvision's N(0, 1) after normalize(IMAGENET) looks like before it, in levels.
constexpr double kMean[] = {0.485 * 255, 0.456 * 255, 0.406 * 255};
constexpr double kDeviation[] = {0.229 * 255, 0.224 * 255, 0.225 * 255};

// Nearly normal, of mean 0 and deviation 1: four uniform numbers of 16 bits, added.
double noise(Rng& rng) {
  const uint64_t bits = rng.next();
  int64_t sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<int64_t>((bits >> (16 * k)) & 0xffff);
  constexpr double kRoot3 = 1.7320508075688772;
  return (static_cast<double>(sum) - 2 * 65535.0) / 65536 * kRoot3;
}

struct Erasing {
  double p;
  Range scale;
  Range ratio;
  Colour value;
  bool random;
};

class RandomErasing final : public PixelStep {
 public:
  explicit RandomErasing(const Erasing& options) : options_(options) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    if (!(rng.uniform() < options_.p)) return {};
    const auto box = draw(pixels.size, rng);
    if (box) erase(pixels, *box, rng);
    return {};
  }
  Status check_channels(int channels) const override {
    return options_.value.check_channels(channels, "value");
  }

 private:
  std::optional<Box> draw(Size in, Rng& rng) const {
    const double area = static_cast<double>(in.width) * in.height;
    const Range log_ratio{std::log(options_.ratio.low), std::log(options_.ratio.high)};
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * options_.scale.draw(rng);
      const double shape = std::exp(log_ratio.draw(rng));
      const double high = std::nearbyint(std::sqrt(target * shape));
      const double wide = std::nearbyint(std::sqrt(target / shape));
      if (!(high < in.height && wide < in.width)) continue;
      const int height = static_cast<int>(high);
      const int width = static_cast<int>(wide);
      const auto y = static_cast<int>(rng.below(static_cast<uint64_t>(in.height - height) + 1));
      const auto x = static_cast<int>(rng.below(static_cast<uint64_t>(in.width - width) + 1));
      return Box{x, y, width, height};
    }
    return std::nullopt;
  }

  void erase(const Pixels& pixels, const Box& box, Rng& rng) const {
    const auto colour = options_.value.bytes();
    const auto channels = static_cast<size_t>(pixels.channels);
    for (int y = box.y; y < box.y + box.height; ++y) {
      uint8_t* p = pixels.row(y) + static_cast<size_t>(box.x) * channels;
      for (int x = 0; x < box.width; ++x, p += channels)
        for (size_t c = 0; c < channels; ++c)
          p[c] = options_.random ? random_level(std::min<size_t>(c, 2), rng) : colour[c];
    }
  }
  static uint8_t random_level(size_t c, Rng& rng) {
    return static_cast<uint8_t>(std::clamp(kMean[c] + kDeviation[c] * noise(rng), 0.0, 255.0));
  }

  const Erasing options_;
};

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.5);
  const auto scale = params.take_numbers("scale", {0.02, 0.33});
  const auto ratio = params.take_numbers("ratio", {0.3, 3.3});
  const bool random = params.take_word("value", "random");
  const auto value = random ? std::vector<double>{0} : params.take_numbers("value", {0});
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  HEADRACE_ASSIGN(const Range scales, range_from(scale, "scale", {0, 1}));
  HEADRACE_ASSIGN(const Range ratios, range_from(ratio, "ratio", {1e-6, 1e6}));
  HEADRACE_ASSIGN(const Colour colour, colour_from(value, "value"));
  return Transform(std::make_unique<RandomErasing>(Erasing{p, scales, ratios, colour, random}));
}

}  // namespace

extern constinit const TransformEntry random_erasing_transform{
    "random_erasing",
    R"(With probability ``p`` a random part of the picture is covered by ``value``.

``value``: a level from 0 to 255, one for each channel, or ``"random"``. It stands before
``normalize``: where torchvision erases with 0 after it, say ``value=(124, 116, 104)``, the
mean of ImageNet. ``"random"`` is noise that ``normalize(hr.IMAGENET)`` makes nearly normal.)",
    make};

}  // namespace headrace
