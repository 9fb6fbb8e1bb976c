// SPDX-License-Identifier: Apache-2.0
//
// Moments: count, mean, spread and ends of numbers, in f64.  The same calls in the same order give
// the same bits; NaN is counted and otherwise left out.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/bytes.h"
#include "base/dtype.h"

namespace headrace {

struct Moments {
  uint64_t count = 0;  // without NaN
  uint64_t nans = 0;
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  // Of the numbers as a whole, not of a sample of them; NaN where there are none.
  double deviation() const;
  void merge(const Moments& other);
  // Elements of one type, little-endian.
  void add(Bytes elements, DType dtype);
};

}  // namespace headrace
