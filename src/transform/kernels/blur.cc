// SPDX-License-Identifier: Apache-2.0
//
// Gaussian blur in two passes of f32.  Rows that have gone across wait in a ring as high as the
// kernel, so that the picture changes in place:
//
//   row ─across─► ring of f32 rows ─down─► row
//
// Sums are of symmetric pairs, from the middle outwards.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/blur.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "transform/colour/neighbours.h"
#include "transform/kernels/lanes-inl.h"

// What this file has once, before what it has for each instruction set.
#ifndef HEADRACE_TRANSFORM_BLUR_ONCE_
#define HEADRACE_TRANSFORM_BLUR_ONCE_
namespace headrace {
namespace {

constexpr size_t kSlack = 16;  // vectors go past the end of rows

// The middle weight and those on one side of it; all of them add up to 1.
void half_kernel(int extent, double sigma, std::vector<float>& out) {
  const auto weight = [&](int k) { return std::exp(-0.5 * (k / sigma) * (k / sigma)); };
  double sum = 1;
  for (int k = 1; k <= extent / 2; ++k) sum += 2 * weight(k);
  out.clear();
  for (int k = 0; k <= extent / 2; ++k) out.push_back(static_cast<float>(weight(k) / sum));
  // What weighs nothing need not be added.
  while (out.size() > 1 && out.back() < 1e-9f) out.pop_back();
}

// Rows, or places in one row, that weigh the same on either side of the middle.
struct Pair {
  const float* one;
  const float* other;
};

// A thread's memory, kept from picture to picture.
struct Scratch {
  std::vector<float> across;  // kernels
  std::vector<float> down;
  std::vector<Pair> pairs;
  std::vector<float> wide;  // a row with its mirrored ends
  std::vector<float> ring;
  std::vector<uint8_t> row;
};

}  // namespace
}  // namespace headrace
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {

// The weighed sum at i; pairs[0] holds the middle.
HWY_INLINE VF weighed(const Pair* pairs, const std::vector<float>& half, size_t i) {
  VF sum = hn::Mul(hn::LoadU(df, pairs[0].one + i), hn::Set(df, half[0]));
  for (size_t k = 1; k < half.size(); ++k) {
    const VF both = hn::Add(hn::LoadU(df, pairs[k].one + i), hn::LoadU(df, pairs[k].other + i));
    sum = hn::MulAdd(both, hn::Set(df, half[k]), sum);
  }
  return sum;
}

void widen(const uint8_t* row, int width, int channels, int beyond, std::vector<float>& wide) {
  const auto pixel = static_cast<size_t>(channels);
  const size_t n = static_cast<size_t>(width) * pixel;
  wide.resize(static_cast<size_t>(width + 2 * beyond) * pixel + kSlack);
  float* out = wide.data();
  const auto mirror = [&](int x) {
    const uint8_t* in = row + static_cast<size_t>(within(x, width, Border::kReflect)) * pixel;
    for (size_t c = 0; c < pixel; ++c) *out++ = in[c];
  };
  for (int x = -beyond; x < 0; ++x) mirror(x);
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadU(d8, row + i))), df, out + i);
  for (; i < n; ++i) out[i] = row[i];
  out += n;
  for (int x = width; x < width + beyond; ++x) mirror(x);
}

class Blur {
 public:
  Blur(const Pixels& pixels, Scratch& scratch) : pixels_(pixels), scratch_(scratch) {
    rows_ = std::min(2 * reach(scratch.down) + 1, pixels.size.height);
    stride_ = pixels.stride() + kSlack;
    scratch.ring.resize(static_cast<size_t>(rows_) * stride_);
    scratch.row.resize(stride_);
    scratch.pairs.resize(std::max(scratch.across.size(), scratch.down.size()));
  }
  void run() {
    int taken = 0;
    for (int y = 0; y < pixels_.size.height; ++y) {
      for (; taken < pixels_.size.height && taken <= y + reach(scratch_.down); ++taken)
        go_across(taken);
      go_down(y);
    }
  }

 private:
  static int reach(const std::vector<float>& half) { return static_cast<int>(half.size()) - 1; }
  float* ring(int y) const {
    const int row = within(y, pixels_.size.height, Border::kReflect) % rows_;
    return scratch_.ring.data() + static_cast<size_t>(row) * stride_;
  }
  void go_across(int y) {
    const auto& half = scratch_.across;
    const auto pixel = static_cast<size_t>(pixels_.channels);
    widen(pixels_.row(y), pixels_.size.width, pixels_.channels, reach(half), scratch_.wide);
    const float* middle = scratch_.wide.data() + static_cast<size_t>(reach(half)) * pixel;
    for (size_t k = 0; k < half.size(); ++k)
      scratch_.pairs[k] = {middle - k * pixel, middle + k * pixel};
    float* out = ring(y);
    for (size_t i = 0; i < pixels_.stride(); i += hn::Lanes(df))
      hn::StoreU(weighed(scratch_.pairs.data(), half, i), df, out + i);
  }
  // To the nearest, ties to even.
  void go_down(int y) {
    const auto& half = scratch_.down;
    for (int k = 0; k <= reach(half); ++k)
      scratch_.pairs[static_cast<size_t>(k)] = {ring(y - k), ring(y + k)};
    uint8_t* out = scratch_.row.data();
    for (size_t i = 0; i < pixels_.stride(); i += hn::Lanes(df)) {
      const VF sum = weighed(scratch_.pairs.data(), half, i);
      hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(sum)), d8, out + i);
    }
    std::copy(out, out + pixels_.stride(), pixels_.row(y));
  }

  const Pixels pixels_;
  Scratch& scratch_;
  int rows_ = 0;
  size_t stride_ = 0;
};

void blur(const Pixels& pixels, Scratch& scratch) {
  Blur(pixels, scratch).run();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(blur);
void gaussian_blur(const Pixels& pixels, Size extents, double sigma) {
  static thread_local Scratch scratch;
  half_kernel(extents.width, sigma, scratch.across);
  half_kernel(extents.height, sigma, scratch.down);
  HWY_DYNAMIC_DISPATCH(blur)(pixels, scratch);
}
}  // namespace headrace
#endif
