// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/ranges.h"

#include <fmt/format.h>

#include <cmath>

namespace headrace {

Result<Range> range_from(const std::vector<double>& numbers, std::string_view name,
                         const Limits& limits) {
  const auto& v = numbers;
  if (v.size() == 2 && std::isfinite(v[0]) && std::isfinite(v[1]) && v[0] <= v[1] &&
      v[0] >= limits.least && v[1] <= limits.most)
    return Range{v[0], v[1]};
  const std::string low = std::isfinite(limits.least) ? fmt::format("{} <= ", limits.least) : "";
  const std::string high = std::isfinite(limits.most) ? fmt::format(" <= {}", limits.most) : "";
  return invalid(
      fmt::format("parameter '{}' must be (low, high) with {}low <= high{}", name, low, high));
}

Result<Range> angles_from(const std::vector<double>& numbers, std::string_view name) {
  if (numbers.size() != 1) return range_from(numbers, name);
  if (!(numbers[0] >= 0 && std::isfinite(numbers[0])))
    return invalid(fmt::format(
        "parameter '{}' must be at least 0, or (low, high); one number v is (-v, v)", name));
  return Range{-numbers[0], numbers[0]};
}

Status check_probability(double p) {
  if (p >= 0 && p <= 1) return {};
  return invalid("parameter 'p' must be in [0, 1]");
}

Status Colour::check_channels(int channels, std::string_view name) const {
  if (count == 1 || count == channels) return {};
  return invalid(fmt::format("parameter '{}' has {} numbers for {} channel{}", name, count,
                             channels, channels == 1 ? "" : "s"));
}

std::array<uint8_t, kMaxChannels> Colour::bytes() const {
  std::array<uint8_t, kMaxChannels> out{};
  for (size_t c = 0; c < out.size(); ++c) out[c] = static_cast<uint8_t>(level[c]);
  return out;
}

Result<Colour> colour_from(const std::vector<double>& numbers, std::string_view name) {
  Colour out;
  out.count = static_cast<int>(numbers.size());
  bool good = !numbers.empty() && numbers.size() <= out.level.size();
  for (size_t c = 0; good && c < out.level.size(); ++c) {
    const double v = numbers[numbers.size() == 1 ? 0 : std::min(c, numbers.size() - 1)];
    good = v >= 0 && v <= 255;
    if (good) out.level[c] = static_cast<float>(v);
  }
  if (good) return out;
  return invalid(
      fmt::format("parameter '{}' must be a level from 0 to 255, or one for each channel", name));
}

}  // namespace headrace
