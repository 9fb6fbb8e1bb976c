// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/taps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headrace {
namespace {

// Types, not functions, so that fill() has the filter inside its loop.
struct Triangle {
  double operator()(double x) const {
    x = std::abs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};

// Keys' cubic with a = -1/2.
struct Cubic {
  double operator()(double x) const {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
    return 0.0;
  }
};

double sinc(double x) {
  if (x == 0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// Three lobes of a sinc, in the window of a wider one.
struct Lanczos {
  double operator()(double x) const { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }
};

// To the nearest, halves away from zero.
int32_t fixed(double w) {
  return static_cast<int32_t>(w * (1 << kWeightBits) + (w < 0 ? -0.5 : 0.5));
}

}  // namespace

void Taps::shape(const Axis& axis, int most) {
  pairs_ = most <= 2 ? 1 : (most + 3) / 4 * 2;
  count_ = axis.count;
  // Kernels make eight outputs at a time: those past the end have no weight.
  const size_t n = (static_cast<size_t>(axis.count) + 7) / 8 * 8;
  starts_.assign(n, 0);
  used_.assign(n, 0);
  weights_.assign(n * static_cast<size_t>(pairs_), TapPair{});
}

void Taps::put(int i, int k, int32_t weight) {
  TapPair& pair =
      weights_[static_cast<size_t>(i) * static_cast<size_t>(pairs_) + static_cast<size_t>(k / 2)];
  const int32_t high = (weight + (1 << (kSplitBits - 1))) >> kSplitBits;
  pair.high[k % 2] = static_cast<int16_t>(high);
  pair.low[k % 2] = static_cast<int16_t>(weight - (high << kSplitBits));
}

template <typename F>
void Taps::fill(const Axis& axis, double radius, F filter) {
  const double scale = (axis.end - axis.begin) / axis.size;
  const double stretch = std::max(scale, 1.0);  // antialiasing: the filter grows when shrinking
  const double support = radius * stretch;
  const double inverse = 1.0 / stretch;
  const int most = std::min(static_cast<int>(std::floor(2 * support)) + 1, axis.high - axis.low);
  shape(axis, most);
  scratch_.resize(static_cast<size_t>(most) + 1);
  double* w = scratch_.data();
  for (int i = 0; i < axis.count; ++i) {
    const double center = axis.begin + (axis.wanted(i) + 0.5) * scale;
    const int begin = std::max(static_cast<int>(center - support + 0.5), axis.low);
    const int end = std::min(static_cast<int>(center + support + 0.5), axis.high);
    const int n = end - begin;
    double sum = 0;
    for (int k = 0; k < n; ++k) {
      w[k] = filter((k + begin - center + 0.5) * inverse);
      sum += w[k];
    }
    const int at = axis.reverse ? axis.count - 1 - i : i;
    for (int k = 0; k < n; ++k) put(at, k, fixed(w[k] / sum));
    starts_[static_cast<size_t>(at)] = begin;
    used_[static_cast<size_t>(at)] = n;
  }
}

// Positions add up from the first, as Pillow's do: where one falls on the border of two pixels,
// the rounding of the sum decides.
void Taps::fill_nearest(const Axis& axis) {
  shape(axis, 1);
  const double scale = (axis.end - axis.begin) / axis.size;
  scratch_.resize(static_cast<size_t>(axis.size));
  double position = axis.begin + scale * 0.5;
  for (double& p : scratch_) {
    p = position;
    position += scale;
  }
  for (int i = 0; i < axis.count; ++i) {
    const auto at = static_cast<size_t>(axis.reverse ? axis.count - 1 - i : i);
    const double here = scratch_[static_cast<size_t>(axis.wanted(i))];
    starts_[at] = std::clamp(static_cast<int>(here), axis.low, axis.high - 1);
    used_[at] = 1;
    put(static_cast<int>(at), 0, 1 << kWeightBits);
  }
}

void Taps::build(const Axis& axis) {
  const bool same_size = axis.end - axis.begin == axis.size && axis.begin == std::floor(axis.begin);
  is_copy_ = same_size && !axis.reaches_outside();
  if (same_size || axis.filter == Filter::kNearest)
    fill_nearest(axis);
  else if (axis.filter == Filter::kBilinear)
    fill(axis, 1.0, Triangle());
  else if (axis.filter == Filter::kBicubic)
    fill(axis, 2.0, Cubic());
  else
    fill(axis, 3.0, Lanczos());
  finish();
}

// Starts count from the lowest pixel used, so that nothing below it need be decoded.
void Taps::finish() {
  low_ = count_ == 0 ? 0 : starts_.front();
  high_ = low_;
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    low_ = std::min(low_, starts_[i]);
    high_ = std::max(high_, starts_[i] + used_[i]);
  }
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) starts_[i] -= low_;
}

}  // namespace headrace
