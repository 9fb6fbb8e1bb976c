// SPDX-License-Identifier: Apache-2.0
//
// random_erasing: with probability `p`, a random part of the picture is covered by `value`: a
// level, one for each channel, or "random".  Drawn as torchvision draws it: ten tries of an area
// uniform in `scale` and a shape log-uniform in `ratio`; if none fits, nothing is erased.
#include <algorithm>
#include <bit>
#include <cmath>

#include "transform/colour/colour.h"
#include "transform/transform.h"

namespace headrace {
namespace {

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
    if (const auto change = change_of(pixels.size, rng)) apply_change(pixels, *change);
    return {};
  }
  bool has_changes() const override { return true; }
  void changes(Size size, Rng rng, std::vector<PixelChange>& out) const override {
    if (const auto change = change_of(size, rng)) out.push_back(*change);
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

  std::optional<PixelChange> change_of(Size size, Rng rng) const {
    if (!(rng.uniform() < options_.p)) return std::nullopt;
    const auto box = draw(size, rng);
    if (!box) return std::nullopt;
    PixelChange change;
    change.kind = options_.random ? PixelChange::kNoise : PixelChange::kErase;
    change.x = box->x, change.y = box->y;
    change.width = box->width, change.height = box->height;
    change.noise = std::bit_cast<uint64_t>(rng);  // the numbers it would give from here on
    const auto colour = options_.value.bytes();
    for (size_t c = 0; c < colour.size(); ++c)
      change.colour |= static_cast<uint32_t>(colour[c]) << (8 * c);
    return change;
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
