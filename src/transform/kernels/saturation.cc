// SPDX-License-Identifier: Apache-2.0
//
// Colours mixed with the gray of their own pixel.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/saturation.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "transform/colour/colour.h"
#include "transform/colour/gray.h"
#include "transform/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {
#if HWY_NATIVE_FMA

struct Saturate {
  VF factor, rest;
  HWY_INLINE V blend(V colour, VF gray) const {
    const VF product = hn::Mul(hn::ConvertTo(df, colour), factor);
    return hn::ConvertTo(d32, hn::MulAdd(gray, rest, product));
  }
  HWY_INLINE Colours operator()(const Colours& in) const {
    const V red = hn::Mul(in.r, hn::Set(d32, static_cast<int32_t>(kRedWeight)));
    const V green = hn::Mul(in.g, hn::Set(d32, static_cast<int32_t>(kGreenWeight)));
    const V blue = hn::Mul(in.b, hn::Set(d32, static_cast<int32_t>(kBlueWeight)));
    const hn::RebindToUnsigned<decltype(d32)> du;  // the sum takes all 32 bits
    const auto sum = hn::BitCast(du, hn::Add(hn::Add(red, green), blue));
    const VF gray = hn::ConvertTo(df, hn::BitCast(d32, hn::ShiftRight<kGrayBits>(sum)));
    return {blend(in.r, gray), blend(in.g, gray), blend(in.b, gray)};
  }
};

void saturate(const Pixels& pixels, float factor, float rest) {
  change_colours(pixels, Saturate{hn::Set(df, factor), hn::Set(df, rest)});
}

#else

void saturate(const Pixels& pixels, float factor, float rest) {
  const uint8_t* end = pixels.data + pixels.bytes();
  for (uint8_t* p = pixels.data; p != end; p += pixels.channels) {
    const double other = gray_of(p) * static_cast<double>(rest);
    for (int c = 0; c < 3; ++c) p[c] = blended(p[c], factor, other);
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(saturate);
void adjust_saturation(const Pixels& pixels, double factor) {
  if (pixels.channels == 1) return;
  HWY_DYNAMIC_DISPATCH(saturate)
  (pixels, static_cast<float>(factor), static_cast<float>(1 - factor));
}
}  // namespace headrace
#endif
