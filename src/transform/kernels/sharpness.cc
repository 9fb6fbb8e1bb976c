// SPDX-License-Identifier: Apache-2.0
//
// The blurred pixel weighs its neighbours 1/13 and itself 5/13, rounded; the result is
// pixel + (blurred - pixel) * (1 - factor), in f32 with one rounding, then down.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/sharpness.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <algorithm>

#include "transform/colour/neighbours.h"
#include "transform/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {

// A row and those above and below it, from a byte on; neighbours are `step` bytes away.
struct Around {
  const uint8_t* rows[3];
  size_t step;
};

uint8_t sharp(const Around& in, size_t i, float rest) {
  uint32_t sum = 4u * in.rows[1][i];
  for (const uint8_t* row : in.rows) sum += row[i - in.step] + row[i] + row[i + in.step];
  const int here = in.rows[1][i];
  const auto blurred = static_cast<int>((2 * sum + 13) / 26);
  const auto v = static_cast<float>(here + (blurred - here) * static_cast<double>(rest));
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(v, 0.0f), 255.0f)));
}

#if HWY_NATIVE_FMA

HWY_INLINE V at(const uint8_t* p) {
  return hn::PromoteTo(d32, hn::LoadU(d8, p));
}

HWY_INLINE V sum_of(const uint8_t* p, size_t step) {
  return hn::Add(hn::Add(at(p - step), at(p)), at(p + step));
}

HWY_INLINE V8 sharp_lanes(const Around& in, size_t i, VF rest) {
  const V here = at(in.rows[1] + i);
  V sum = hn::Add(sum_of(in.rows[0] + i, in.step), sum_of(in.rows[1] + i, in.step));
  sum = hn::Add(sum, hn::Add(sum_of(in.rows[2] + i, in.step), hn::ShiftLeft<2>(here)));
  // (2 sum + 13) / 26, which is 10083 / 2^18 for all sums there are (up to 13 * 255).
  sum = hn::Add(hn::Add(sum, sum), hn::Set(d32, 13));
  const V blurred = hn::ShiftRight<18>(hn::Mul(sum, hn::Set(d32, 10083)));
  const VF change = hn::ConvertTo(df, hn::Sub(blurred, here));
  return hn::DemoteTo(d8, hn::ConvertTo(d32, hn::MulAdd(change, rest, hn::ConvertTo(df, here))));
}

size_t sharpen_lanes(const Around& in, size_t begin, size_t end, float rest, uint8_t* out) {
  const size_t lanes = hn::Lanes(d32);
  const VF rest_lanes = hn::Set(df, rest);
  for (; begin + lanes <= end; begin += lanes)
    hn::StoreU(sharp_lanes(in, begin, rest_lanes), d8, out + begin);
  return begin;
}

#else

size_t sharpen_lanes(const Around&, size_t begin, size_t, float, uint8_t*) {
  return begin;
}

#endif

void sharpen(const Pixels& source, float rest, const Pixels& pixels) {
  const auto step = static_cast<size_t>(pixels.channels);
  const size_t end = pixels.stride() - step;
  for (int y = 1; y + 1 < pixels.size.height; ++y) {
    const Around in{{source.row(y - 1), source.row(y), source.row(y + 1)}, step};
    uint8_t* out = pixels.row(y);
    for (size_t i = sharpen_lanes(in, step, end, rest, out); i < end; ++i)
      out[i] = sharp(in, i, rest);
    if (step == 4)
      for (size_t i = 3; i < pixels.stride(); i += 4) out[i] = in.rows[1][i];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(sharpen);
void adjust_sharpness(const Pixels& pixels, double factor) {
  if (pixels.size.width <= 2 || pixels.size.height <= 2) return;
  HWY_DYNAMIC_DISPATCH(sharpen)
  (copy_for_reading(pixels), static_cast<float>(1 - factor), pixels);
}
}  // namespace headrace
#endif
