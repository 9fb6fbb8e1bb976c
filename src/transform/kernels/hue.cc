// SPDX-License-Identifier: Apache-2.0
//
// Turning the hue.  On the hexagon of hues the largest and the smallest of a pixel's three colours
// stay what they are, and each colour is a ramp between them, so there is no way to HSV and back
// and no division: with c = largest - smallest, positions on the hexagon count in units of c,
//
//   position   0     c     2c    3c    4c    5c    6c
//   red        ──────╮           ╭───────────────        largest
//                      ╲_______╱                         smallest
//
// and green and blue are the same shape, 2c and 4c further on.  Whole numbers with 16 bits of
// fraction, so that vectors and single pixels give the same.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/hue.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <cmath>

#include "transform/colour/colour.h"
#include "transform/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {

constexpr int kBits = 16;

// How far a colour is below the largest, `away` from its own position.
HWY_INLINE V fall(V away, V c) {
  return hn::Min(hn::Max(hn::Sub(away, c), hn::Zero(d32)), c);
}

// torchvision scales [0, 1] to u8 by 255.999 and rounds down: times 1 + 0.999/255, nearly.
HWY_INLINE V to_level(V v) {
  const V more = hn::Add(hn::ShiftRight<kBits + 1>(v), hn::ShiftRight<kBits + 2>(v));
  return hn::ShiftRight<kBits>(hn::Add(hn::Add(v, hn::ShiftRight<8>(v)), more));
}

struct TurnHue {
  V sixths;
  HWY_INLINE Colours operator()(const Colours& in) const {
    const V high = hn::Max(hn::Max(in.r, in.g), in.b);
    const V range = hn::Sub(high, hn::Min(hn::Min(in.r, in.g), in.b));
    const V range2 = hn::Add(range, range);
    const V from_blue = hn::Add(hn::Add(range2, range2), hn::Sub(in.r, in.g));
    const V from_green = hn::Add(range2, hn::Sub(in.b, in.r));
    V at = hn::IfThenElse(hn::Eq(high, in.g), from_green, from_blue);
    at = hn::IfThenElse(hn::Eq(high, in.r), hn::Sub(in.g, in.b), at);
    at = hn::Add(hn::ShiftLeft<kBits>(at), hn::Mul(range, sixths));
    const V c = hn::ShiftLeft<kBits>(range);
    const V c2 = hn::Add(c, c);
    const V c3 = hn::Add(c2, c);
    const V c6 = hn::Add(c3, c3);
    at = hn::IfThenElse(hn::Lt(at, hn::Zero(d32)), hn::Add(at, c6), at);
    at = hn::IfThenElse(hn::Lt(at, c6), at, hn::Sub(at, c6));
    const V top = hn::ShiftLeft<kBits>(high);
    // Red's position is both ends.
    const V red = hn::Sub(c3, hn::Abs(hn::Sub(at, c3)));
    const V green = hn::Abs(hn::Sub(at, c2));
    const V blue = hn::Abs(hn::Sub(at, hn::Add(c2, c2)));
    return {to_level(hn::Sub(top, fall(red, c))), to_level(hn::Sub(top, fall(green, c))),
            to_level(hn::Sub(top, fall(blue, c)))};
  }
};

void turn_hue(const Pixels& pixels, int32_t turn) {
  change_colours(pixels, TurnHue{hn::Set(d32, turn)});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(turn_hue);
int32_t hue_turn(double turn) {
  return static_cast<int32_t>(std::lround(6 * turn * (1 << 16)));
}
void adjust_hue(const Pixels& pixels, double turn) {
  if (pixels.channels == 1) return;
  HWY_DYNAMIC_DISPATCH(turn_hue)(pixels, hue_turn(turn));
}
}  // namespace headrace
#endif
