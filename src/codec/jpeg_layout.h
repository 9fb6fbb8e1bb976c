// SPDX-License-Identifier: Apache-2.0
//
// What the segments of a JPEG file say about it, without decoding anything: whether a decoder in
// hardware can take it, and how its chroma is sampled.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace headrace {

enum class JpegSampling : uint8_t { kGray, k444, k422, k420, k440 };
inline constexpr int kJpegSamplings = 5;

struct JpegLayout {
  int width = 0;
  int height = 0;
  JpegSampling sampling = JpegSampling::kGray;
  // Baseline, 8 bits, one scan of one or three components (YCbCr) of a sampling above, and from its
  // first mark to its last nothing that tells of damage.
  bool is_plain = false;
};

// False where the segments cannot be followed; `out` is then as it was.
bool read_jpeg_layout(Bytes file, JpegLayout& out);

}  // namespace headrace
