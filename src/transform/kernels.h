// SPDX-License-Identifier: Apache-2.0
//
// The inner loops over pixels, once in plain C++ and once in vectors.  Both give the
// same bytes.  Between the passes rows are planar: channel c of a row begins at c * plane.
//
//   decoded row, interleaved ──across()──► planar u8 row ──down()──► planar u8 row ──store──► slot
//                             (or split()  ╰── a ring of them
//                              for a copy)
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/store.h"
#include "transform/taps.h"

namespace headrace {

// How far kernels read past the end of a row, and write past the end of a planar one.
inline constexpr size_t kKernelSlack = 64;

// Of one row into one row; `in` is pixel taps.low().
struct AcrossRow {
  const uint8_t* in;
  uint8_t* out;
};

struct Kernels {
  const char* name;
  // Resamples `rows` rows along themselves, each into `channels` planes.
  void (*across)(const AcrossRow* rows, int count, int channels, size_t plane, const Taps& taps);
  // The same where the taps are a copy: takes the pixels apart, from the right end if `reverse`.
  void (*split)(const AcrossRow& row, int pixels, int channels, size_t plane, bool reverse);
  // Weighs 2 * pairs rows at `offset` into n bytes.
  void (*down)(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n,
               uint8_t* out);
  // One planar row into the slot; by DType, then as channel planes or as pixels.
  using StoreFn = void (*)(const uint8_t* row, size_t plane, int pixels, int channels,
                           const Store& store, std::byte* out, size_t out_plane_bytes);
  StoreFn planes[4];  // u8, f16, bf16, f32
  StoreFn pixels[4];
};

inline int store_index(DType dtype) {
  return dtype == DType::kU8 ? 0 : dtype == DType::kF16 ? 1 : dtype == DType::kBF16 ? 2 : 3;
}

const Kernels& scalar_kernels();
// The widest vectors this machine has, up to 256 bits: 512-bit instructions slow the decoder
// beside them (limits.md: 1.59 ms an image instead of 1.10).
const Kernels& vector_kernels();

}  // namespace headrace
