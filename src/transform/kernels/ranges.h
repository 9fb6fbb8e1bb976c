// SPDX-License-Identifier: Apache-2.0
//
// The kinds of parameter that steps share: a range to draw from, a probability, a colour.
// Each is checked when the step is made; errors name the parameter.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "transform/output/pixel_output.h"

namespace headrace {

struct Range {
  double low = 0;
  double high = 0;
  double draw(Rng& rng) const { return rng.uniform(low, high); }
  bool operator==(const Range&) const = default;
};

// (low, high) within [least, most].
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};
Result<Range> range_from(const std::vector<double>& numbers, std::string_view name,
                         const Limits& limits = {});
// Likewise, with one number v for (-v, v), as torchvision takes angles.
Result<Range> angles_from(const std::vector<double>& numbers, std::string_view name);

// "parameter 'p' must be in [0, 1]"
Status check_probability(double p);

// A level of 0 to 255 for each channel; one number serves all.
struct Colour {
  std::array<float, kMaxChannels> level{};
  int count = 1;  // how many were given

  // Whether it says what a picture of so many channels needs.
  Status check_channels(int channels, std::string_view name) const;
  std::array<uint8_t, kMaxChannels> bytes() const;
};
Result<Colour> colour_from(const std::vector<double>& numbers, std::string_view name);

}  // namespace headrace
