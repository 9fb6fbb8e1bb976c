// SPDX-License-Identifier: Apache-2.0
//
// Where the coordinate of the axis that samples run along has gaps, and which samples go over none:
// the rules of Python's hr.array.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

// For each step from one value to the next: whether it is a gap (longer than 1.5 times the median
// step: months, of 28 to 31 days, are none) or goes the other way.
std::vector<bool> find_gaps(const std::vector<double>& values);

// Positions 0, stride, … whose `reach` steps exist and go over no gap.
std::vector<int64_t> starts_between(const std::vector<bool>& gaps, int64_t reach, int64_t stride);

}  // namespace headrace
