// SPDX-License-Identifier: Apache-2.0
//
// The inner loops over pixels, once in plain C++ and once in vectors.  Both give the same
// bytes.  Between the passes rows are planar: channel c of a row begins at c * plane.
//
//   decoded row, interleaved ──across()──► planar u8 row ──down()──► planar u8 row ──store──► slot
//                             (or split()  ╰── a ring of them
//                              for a copy)
//
// Kernels read up to kRowSlack bytes past the end of a row, and write up to kKernelSlack past the
// end of a planar one; into the slot they write what they must and no more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/kernels/taps.h"
#include "transform/output/pixel_output.h"

namespace headrace {

inline constexpr size_t kKernelSlack = 64;

// One row in, one planar row out; `in` is pixel taps.low().
struct AcrossRow {
  const uint8_t* in;
  uint8_t* out;
};

// Channel c begins at data + c * plane.
struct PlanarRow {
  const uint8_t* data;
  size_t plane;
  int pixels;
  int channels;
};

struct Kernels {
  const char* name;
  // Resamples rows along themselves, each into `channels` planes.
  void (*across)(const AcrossRow* rows, int count, int channels, size_t plane, const Taps& taps);
  // The same where the taps are a copy: takes pixels apart, from the right end if `reverse`.
  void (*split)(const AcrossRow& row, int pixels, int channels, size_t plane, bool reverse);
  // Weighs 2 * pairs rows, from `offset` on, into n bytes.
  void (*down)(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n,
               uint8_t* out);
  // One planar row into the slot; its planes there are out_plane bytes apart.
  using StoreFn = void (*)(const PlanarRow& row, const PixelOutput& store, std::byte* out,
                           size_t out_plane);
  StoreFn planes[4];  // by store_index(): a plane per channel
  StoreFn pixels[4];  // channels interleaved
  // After the last store of a picture: then another thread may be told of it.
  void (*flush)();
};

inline size_t store_index(DType dtype) {
  return dtype == DType::kU8 ? 0 : dtype == DType::kF16 ? 1 : dtype == DType::kBF16 ? 2 : 3;
}

const Kernels& scalar_kernels();
// The widest vectors this machine has, up to 256 bits: 512-bit instructions slow the decoder
// beside them (1.59 ms an image instead of 1.10, measured on Ice Lake).
const Kernels& vector_kernels();

// What vector_kernels() is put together from.
void use_vector_across(Kernels& kernels);
void use_vector_down(Kernels& kernels);
void use_vector_stores(Kernels& kernels);

}  // namespace headrace
