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

// One of the four.
struct Change {
  void (*adjust)(const Pixels& pixels, double by);
  std::optional<Range> range;  // nothing: it stays
};

class ColorJitter final : public PixelStep {
 public:
  ColorJitter(const std::array<Change, 4>& changes, double p) : changes_(changes), p_(p) {}
  // As torchvision draws: the order first, then the factors in theirs.
  Status apply(const Pixels& pixels, Rng rng) const override {
    if (!(rng.uniform() < p_)) return {};
    std::array<size_t, 4> order{0, 1, 2, 3};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    std::array<double, 4> by{};
    for (size_t i = 0; i < by.size(); ++i)
      if (changes_[i].range) by[i] = changes_[i].range->draw(rng);
    for (const size_t i : order)
      if (changes_[i].range) changes_[i].adjust(pixels, by[i]);
    return {};
  }

 private:
  const std::array<Change, 4> changes_;
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
  std::array<Change, 4> changes{
      {{adjust_brightness, {}}, {adjust_contrast, {}}, {adjust_saturation, {}}, {adjust_hue, {}}}};
  std::vector<std::vector<double>> numbers;
  for (const char* name : names) numbers.push_back(params.take_numbers(name, {}));
  const double p = params.take_number("p", 1);
  HEADRACE_TRY(params.done());
  HEADRACE_TRY(check_probability(p));
  for (size_t i = 0; i < 4; ++i) {
    const bool hue = i == 3;
    const Limits limits = hue ? Limits{-0.5, 0.5} : Limits{.least = 0};
    HEADRACE_ASSIGN(changes[i].range, jitter_from(numbers[i], names[i], hue ? 0 : 1, limits));
  }
  return Transform(std::make_unique<ColorJitter>(changes, p));
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
