// SPDX-License-Identifier: Apache-2.0
//
// color_jitter: brightness, contrast, saturation and hue change by factors drawn anew, in an order
// drawn anew.  A number v means the range [max(0, 1 - v), 1 + v], for hue [-v, v]; what is left out
// is left alone.
#include <algorithm>
#include <array>
#include <vector>

#include "transform/colour/colour.h"
#include "transform/transform.h"

namespace headrace {
namespace {

// Of brightness, contrast, saturation and hue; nothing: it stays.
using Ranges = std::array<std::optional<Range>, 4>;
constexpr PixelChange::Kind kKinds[] = {PixelChange::kBrightness, PixelChange::kContrast,
                                        PixelChange::kSaturation, PixelChange::kHue};

class ColorJitter final : public PixelStep {
 public:
  ColorJitter(const Ranges& ranges, double p) : ranges_(ranges), p_(p) {}
  Status apply(const Pixels& pixels, Rng rng) const override {
    std::array<PixelChange, 4> changes;
    const size_t n = draw(rng, changes);
    for (size_t i = 0; i < n; ++i) apply_change(pixels, changes[i]);
    return {};
  }
  bool has_changes() const override { return true; }
  void changes(Size, Rng rng, std::vector<PixelChange>& out) const override {
    std::array<PixelChange, 4> drawn;
    out.insert(out.end(), drawn.begin(), drawn.begin() + static_cast<ptrdiff_t>(draw(rng, drawn)));
  }

 private:
  // As torchvision draws: the order first, then the factors in theirs.
  size_t draw(Rng rng, std::array<PixelChange, 4>& out) const {
    if (!(rng.uniform() < p_)) return 0;
    std::array<size_t, 4> order{0, 1, 2, 3};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    std::array<double, 4> by{};
    for (size_t i = 0; i < by.size(); ++i)
      if (ranges_[i]) by[i] = ranges_[i]->draw(rng);
    size_t n = 0;
    for (const size_t i : order) {
      if (!ranges_[i]) continue;
      PixelChange& change = out[n++];
      change.kind = kKinds[i];
      change.factor = by[i];
      if (change.kind == PixelChange::kHue) change.turn = hue_turn(by[i]);
    }
    return n;
  }

  const Ranges ranges_;
  const double p_;
};

// `middle` is the factor that changes nothing.
Result<std::optional<Range>> jitter_from(std::vector<double> v, const char* name, double middle,
                                         const Limits& limits) {
  if (v.empty()) return std::optional<Range>();
  if (v.size() == 1) {
    if (!(v[0] >= 0))
      return invalid("parameter '" + std::string(name) + "' must be at least 0, or (low, high)");
    v = {middle - v[0], middle + v[0]};
    if (middle == 1) v[0] = std::max(v[0], 0.0);
  }
  HEADRACE_ASSIGN(const Range range, range_from(v, name, limits));
  if (range == Range{middle, middle}) return std::optional<Range>();
  return std::optional<Range>(range);
}

Result<Transform> make(Params params) {
  const char* names[] = {"brightness", "contrast", "saturation", "hue"};
  Ranges ranges;
  std::vector<std::vector<double>> numbers;
  for (const char* name : names) numbers.push_back(params.take_numbers(name, {}));
  const double p = params.take_number("p", 1);
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  for (size_t i = 0; i < 4; ++i) {
    const bool hue = i == 3;
    const Limits limits = hue ? Limits{-0.5, 0.5} : Limits{.least = 0};
    HEADRACE_ASSIGN(ranges[i], jitter_from(numbers[i], names[i], hue ? 0 : 1, limits));
  }
  return Transform(std::make_unique<ColorJitter>(ranges, p));
}

}  // namespace

extern constinit const TransformEntry color_jitter_transform{
    "color_jitter",
    R"(Brightness, contrast, saturation and hue change by random factors, in random order.

v means factors from max(0, 1 - v) to 1 + v, for hue turns from -v to v (at most 0.5);
(low, high) means just that. ``p``: the probability that anything happens, as
torchvision's RandomApply gives it.)",
    make};

}  // namespace headrace
