// SPDX-License-Identifier: Apache-2.0
#include "open/array_gaps.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr double kGap = 1.5;  // times the median step

// As NumPy's: of an even number the mean of the two in the middle.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

std::vector<bool> find_gaps(const std::vector<double>& values) {
  if (values.size() < 2) return {};
  std::vector<double> steps(values.size() - 1);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = values[i + 1] - values[i];
  std::vector<bool> gaps(steps.size(), false);
  const auto is_finite = [](double step) { return std::isfinite(step); };
  if (steps.size() < 2 || !std::all_of(steps.begin(), steps.end(), is_finite)) return gaps;
  const double median = median_of(steps);
  if (median == 0) return gaps;
  for (size_t i = 0; i < steps.size(); ++i)
    gaps[i] = steps[i] / median <= 0 || steps[i] / median > kGap;
  return gaps;
}

std::vector<int64_t> starts_between(const std::vector<bool>& gaps, int64_t reach, int64_t stride) {
  const auto total = static_cast<int64_t>(gaps.size()) + 1;
  std::vector<int64_t> before(static_cast<size_t>(total), 0);  // gaps in front of each position
  for (size_t i = 0; i < gaps.size(); ++i) before[i + 1] = before[i] + (gaps[i] ? 1 : 0);
  std::vector<int64_t> out;
  for (int64_t at = 0; at + reach <= total; at += stride)
    if (before[static_cast<size_t>(at)] == before[static_cast<size_t>(at + reach - 1)])
      out.push_back(at);
  return out;
}

}  // namespace headrace
