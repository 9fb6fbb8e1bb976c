// SPDX-License-Identifier: Apache-2.0
//
// Colour pixels in vectors of 32 bits, a colour each, for changes of one pixel at a time.  To be
// included after highway.h, once for each instruction set.
#if defined(HEADRACE_TRANSFORM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_TRANSFORM_LANES_INL_H_
#undef HEADRACE_TRANSFORM_LANES_INL_H_
#else
#define HEADRACE_TRANSFORM_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "transform/program/pixels.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<int32_t> d32;
constexpr hn::Rebind<uint8_t, decltype(d32)> d8;
constexpr hn::Rebind<float, decltype(d32)> df;
using V = hn::Vec<decltype(d32)>;
using V8 = hn::Vec<decltype(d8)>;
using VF = hn::Vec<decltype(df)>;

struct Colours {
  V r, g, b;
};

// Change is a class with Colours operator()(const Colours&) const; lambdas would not be inlined.
template <typename Change>
HWY_INLINE void change_lanes(uint8_t* p, int channels, const Change& change) {
  V8 r, g, b, alpha;
  if (channels == 3)
    hn::LoadInterleaved3(d8, p, r, g, b);
  else
    hn::LoadInterleaved4(d8, p, r, g, b, alpha);
  const Colours out = change({hn::PromoteTo(d32, r), hn::PromoteTo(d32, g), hn::PromoteTo(d32, b)});
  r = hn::DemoteTo(d8, out.r);
  g = hn::DemoteTo(d8, out.g);
  b = hn::DemoteTo(d8, out.b);
  if (channels == 3)
    hn::StoreInterleaved3(r, g, b, d8, p);
  else
    hn::StoreInterleaved4(r, g, b, alpha, d8, p);
}

// All pixels of a picture of 3 or 4 channels; what does not fill a vector goes through a buffer.
template <typename Change>
HWY_INLINE void change_colours(const Pixels& pixels, const Change& change) {
  const size_t lanes = hn::Lanes(d32);
  const auto pixel = static_cast<size_t>(pixels.channels);
  const size_t n = pixels.count();
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) change_lanes(pixels.data + i * pixel, pixels.channels, change);
  if (i == n) return;
  uint8_t rest[4 * hn::MaxLanes(d32)] = {};
  std::copy(pixels.data + i * pixel, pixels.data + n * pixel, rest);
  change_lanes(rest, pixels.channels, change);
  std::copy(rest, rest + (n - i) * pixel, pixels.data + i * pixel);
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#endif
