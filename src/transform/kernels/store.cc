// SPDX-License-Identifier: Apache-2.0
//
// split and the stores in vectors: pixels to planes, and planes to floats, halves and pixels.
// The last pixels of a row, fewer than a vector, go through the plain kernels.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/store.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>

#include "transform/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void fill(Kernels&) {}

#else
namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<float, 8> df;
const hn::Rebind<int32_t, decltype(df)> di32;
const hn::Rebind<uint32_t, decltype(df)> du32;
const hn::Rebind<uint16_t, decltype(df)> du16;
const hn::Rebind<uint8_t, decltype(df)> du8;
const hn::CappedTag<uint8_t, 16>
    d16x8;  // one load of three of these reads 48 bytes: within the slack
using VF = hn::Vec<decltype(df)>;
using VU16 = hn::Vec<decltype(du16)>;

HWY_INLINE VF scaled(const uint8_t* in, VF scale, VF bias) {
  return hn::MulAdd(hn::ConvertTo(df, hn::PromoteTo(di32, hn::LoadU(du8, in))), scale, bias);
}

// To the nearest, ties to even; no NaN and no infinity comes here.
HWY_INLINE VU16 to_bf16(VF v) {
  const auto bits = hn::BitCast(du32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du32, 0x7fff)));
  return hn::DemoteTo(du16, hn::BitCast(di32, hn::ShiftRight<16>(rounded)));
}

// Where the instruction set rounds to nearest even by itself; elsewhere the plain kernels do it.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
#define HEADRACE_VECTOR_F16 1
HWY_INLINE VU16 to_f16(VF v) {
  const hn::Rebind<hwy::float16_t, decltype(df)> df16;
  return hn::BitCast(du16, hn::DemoteTo(df16, v));
}
#else
#define HEADRACE_VECTOR_F16 0
#endif

template <DType D>
HWY_INLINE auto converted(VF v) {
  if constexpr (D == DType::kF32) return v;
#if HEADRACE_VECTOR_F16
  if constexpr (D == DType::kF16) return to_f16(v);
#endif
  if constexpr (D == DType::kBF16) return to_bf16(v);
}

template <DType D>
constexpr size_t kBytes = D == DType::kF32 ? 4 : 2;

// The vectors write to memory of any alignment; the pointer type is for Highway alone.
template <DType D>
HWY_INLINE auto lane_pointer(std::byte* p) {
  if constexpr (D == DType::kF32)
    return reinterpret_cast<float*>(p);
  else
    return reinterpret_cast<uint16_t*>(p);
}

template <DType D>
HWY_INLINE auto lane_tag() {
  if constexpr (D == DType::kF32)
    return df;
  else
    return du16;
}

// From pixel `done` on, by the plain kernel; `out` is that pixel's place.
void rest(Kernels::StoreFn plain, PlanarRow row, size_t done, const PixelOutput& store,
          std::byte* out, size_t out_plane) {
  row.data += done;
  row.pixels -= static_cast<int>(done);
  if (row.pixels > 0) plain(row, store, out, out_plane);
}

size_t whole_vectors(int pixels, size_t lanes) {
  return static_cast<size_t>(pixels) / lanes * lanes;
}

template <DType D>
void planes(const PlanarRow& row, const PixelOutput& store, std::byte* out, size_t out_plane) {
  const size_t n = whole_vectors(row.pixels, hn::Lanes(df));
  for (size_t c = 0; c < static_cast<size_t>(row.channels); ++c) {
    const VF scale = hn::Set(df, store.scale[c]);
    const VF bias = hn::Set(df, store.bias[c]);
    const uint8_t* in = row.data + c * row.plane;
    std::byte* to = out + c * out_plane;
    // Whole cache lines go past the caches: nobody here reads the batch again (4 % at f32).
    if (reinterpret_cast<uintptr_t>(to) % 64 == 0 && n * kBytes<D> % 64 == 0) {
      for (size_t i = 0; i < n; i += hn::Lanes(df))
        hn::Stream(converted<D>(scaled(in + i, scale, bias)), lane_tag<D>(),
                   lane_pointer<D>(to + i * kBytes<D>));
      continue;
    }
    for (size_t i = 0; i < n; i += hn::Lanes(df))
      hn::StoreU(converted<D>(scaled(in + i, scale, bias)), lane_tag<D>(),
                 lane_pointer<D>(to + i * kBytes<D>));
  }
  rest(scalar_kernels().planes[store_index(D)], row, n, store, out + n * kBytes<D>, out_plane);
}

void planes_u8(const PlanarRow& row, const PixelOutput&, std::byte* out, size_t out_plane) {
  for (size_t c = 0; c < static_cast<size_t>(row.channels); ++c)
    std::memcpy(out + c * out_plane, row.data + c * row.plane, static_cast<size_t>(row.pixels));
}

template <DType D>
void pixels_rgb(const PlanarRow& row, const PixelOutput& store, std::byte* out, size_t out_plane) {
  const Kernels::StoreFn plain = scalar_kernels().pixels[store_index(D)];
  if (row.channels != 3) return plain(row, store, out, out_plane);
  const size_t n = whole_vectors(row.pixels, hn::Lanes(df));
  const uint8_t* in = row.data;
  const VF s0 = hn::Set(df, store.scale[0]), b0 = hn::Set(df, store.bias[0]);
  const VF s1 = hn::Set(df, store.scale[1]), b1 = hn::Set(df, store.bias[1]);
  const VF s2 = hn::Set(df, store.scale[2]), b2 = hn::Set(df, store.bias[2]);
  for (size_t i = 0; i < n; i += hn::Lanes(df))
    hn::StoreInterleaved3(converted<D>(scaled(in + i, s0, b0)),
                          converted<D>(scaled(in + row.plane + i, s1, b1)),
                          converted<D>(scaled(in + 2 * row.plane + i, s2, b2)), lane_tag<D>(),
                          lane_pointer<D>(out + 3 * i * kBytes<D>));
  rest(plain, row, n, store, out + 3 * n * kBytes<D>, out_plane);
}

void pixels_u8(const PlanarRow& row, const PixelOutput& store, std::byte* out, size_t out_plane) {
  const Kernels::StoreFn plain = scalar_kernels().pixels[0];
  if (row.channels != 3) return plain(row, store, out, out_plane);
  const size_t n = whole_vectors(row.pixels, hn::Lanes(d16x8));
  const uint8_t* in = row.data;
  for (size_t i = 0; i < n; i += hn::Lanes(d16x8))
    hn::StoreInterleaved3(hn::LoadU(d16x8, in + i), hn::LoadU(d16x8, in + row.plane + i),
                          hn::LoadU(d16x8, in + 2 * row.plane + i), d16x8,
                          reinterpret_cast<uint8_t*>(out) + 3 * i);
  rest(plain, row, n, store, out + 3 * n, out_plane);
}

alignas(16) constexpr uint8_t kStraight[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15};
alignas(16) constexpr uint8_t kReversed[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                               7,  6,  5,  4,  3,  2,  1, 0};

void split(const AcrossRow& row, int pixels, int channels, size_t plane, bool reverse) {
  if (channels != 3) return scalar_kernels().split(row, pixels, channels, plane, reverse);
  const size_t lanes = hn::Lanes(d16x8);
  const size_t n = static_cast<size_t>(pixels) / lanes * lanes;
  const auto order = hn::LoadU(d16x8, reverse ? kReversed : kStraight);
  for (size_t i = 0; i < n; i += lanes) {
    auto r = order, g = order, b = order;
    hn::LoadInterleaved3(d16x8, row.in + 3 * i, r, g, b);
    uint8_t* out = row.out + (reverse ? static_cast<size_t>(pixels) - lanes - i : i);
    hn::StoreU(hn::TableLookupBytes(r, order), d16x8, out);
    hn::StoreU(hn::TableLookupBytes(g, order), d16x8, out + plane);
    hn::StoreU(hn::TableLookupBytes(b, order), d16x8, out + 2 * plane);
  }
  const AcrossRow left{row.in + 3 * n, row.out + (reverse ? 0 : n)};
  scalar_kernels().split(left, pixels - static_cast<int>(n), channels, plane, reverse);
}

void fill(Kernels& kernels) {
  kernels.split = split;
  kernels.flush = [] { hwy::FlushStream(); };
  kernels.planes[0] = planes_u8;
  kernels.pixels[0] = pixels_u8;
#if HEADRACE_VECTOR_F16
  kernels.planes[1] = planes<DType::kF16>;
  kernels.pixels[1] = pixels_rgb<DType::kF16>;
#endif
  kernels.planes[2] = planes<DType::kBF16>;
  kernels.pixels[2] = pixels_rgb<DType::kBF16>;
  kernels.planes[3] = planes<DType::kF32>;
  kernels.pixels[3] = pixels_rgb<DType::kF32>;
}

#undef HEADRACE_VECTOR_F16
#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(fill);
void use_vector_stores(Kernels& kernels) {
  HWY_DYNAMIC_DISPATCH(fill)(kernels);
}
}  // namespace headrace
#endif
