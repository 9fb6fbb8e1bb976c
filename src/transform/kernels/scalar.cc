// SPDX-License-Identifier: Apache-2.0
//
// The kernels in plain C++: the reference for the vectors, and what machines without them run.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "transform/kernels/kernels.h"

namespace headrace {
namespace {

uint8_t clipped(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

int32_t weight_of(const TapPair* taps, int k) {
  return taps[k / 2].high[k % 2] * (1 << kSplitBits) + taps[k / 2].low[k % 2];
}

void across_row(const AcrossRow& row, int channels, size_t plane, const Taps& taps) {
  for (int i = 0; i < taps.count(); ++i) {
    const uint8_t* in = row.in + static_cast<ptrdiff_t>(taps.start(i)) * channels;
    for (int c = 0; c < channels; ++c) {
      int32_t sum = kRound;
      for (int k = 0; k < taps.used(i); ++k)
        sum += in[k * channels + c] * weight_of(taps.weights(i), k);
      row.out[static_cast<size_t>(c) * plane + static_cast<size_t>(i)] = clipped(sum);
    }
  }
}

void across(const AcrossRow* rows, int count, int channels, size_t plane, const Taps& taps) {
  for (int r = 0; r < count; ++r) across_row(rows[r], channels, plane, taps);
}

void split(const AcrossRow& row, int pixels, int channels, size_t plane, bool reverse) {
  for (int i = 0; i < pixels; ++i) {
    const uint8_t* in = row.in + static_cast<ptrdiff_t>(reverse ? pixels - 1 - i : i) * channels;
    for (int c = 0; c < channels; ++c)
      row.out[static_cast<size_t>(c) * plane + static_cast<size_t>(i)] = in[c];
  }
}

void down(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n,
          uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    int32_t sum = kRound;
    for (int k = 0; k < 2 * pairs; ++k) sum += rows[k][offset + i] * weight_of(taps, k);
    out[i] = clipped(sum);
  }
}

template <DType D>
size_t put(uint8_t v, float scale, float bias, std::byte* out) {
  if constexpr (D == DType::kU8) {
    *out = std::byte{v};
    return 1;
  }
  const float f = std::fma(static_cast<float>(v), scale, bias);
  if constexpr (D == DType::kF32) {
    std::memcpy(out, &f, 4);
    return 4;
  }
  const uint16_t half = D == DType::kF16 ? to_f16(f) : to_bf16(f);
  std::memcpy(out, &half, 2);
  return 2;
}

template <DType D>
void planes(const PlanarRow& row, const PixelOutput& store, std::byte* out, size_t out_plane) {
  for (size_t c = 0; c < static_cast<size_t>(row.channels); ++c) {
    const uint8_t* in = row.data + c * row.plane;
    std::byte* to = out + c * out_plane;
    for (int i = 0; i < row.pixels; ++i) to += put<D>(in[i], store.scale[c], store.bias[c], to);
  }
}

template <DType D>
void interleaved(const PlanarRow& row, const PixelOutput& store, std::byte* out, size_t) {
  for (int i = 0; i < row.pixels; ++i)
    for (size_t c = 0; c < static_cast<size_t>(row.channels); ++c)
      out += put<D>(row.data[c * row.plane + static_cast<size_t>(i)], store.scale[c], store.bias[c],
                    out);
}

constexpr Kernels kScalar{
    "scalar",
    across,
    split,
    down,
    {planes<DType::kU8>, planes<DType::kF16>, planes<DType::kBF16>, planes<DType::kF32>},
    {interleaved<DType::kU8>, interleaved<DType::kF16>, interleaved<DType::kBF16>,
     interleaved<DType::kF32>},
    [] {}};

}  // namespace

const Kernels& scalar_kernels() {
  return kScalar;
}

}  // namespace headrace
