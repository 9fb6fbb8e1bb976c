// SPDX-License-Identifier: Apache-2.0
//
// What the kernels are told (pictures.cu has the same structs, field by field), and how it is made
// of a picture's record.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/deferred.h"

namespace headrace {

struct PictureJob {
  uint64_t plane[3] = {};  // addresses of Y, Cb, Cr, or of pixels
  int32_t pitch[2] = {};   // bytes a row, of Y (or pixels) and of chroma
  int32_t width = 0, height = 0;
  int32_t chroma_width = 0, chroma_height = 0;
  int32_t kind = 0;  // JpegSampling, or kPixels
  int32_t box_x = 0, box_y = 0, box_width = 0, box_height = 0;
  int32_t size_width = 0, size_height = 0;
  int32_t window_x = 0, window_y = 0, window_width = 0, window_height = 0;
  int32_t filter = 0, flip = 0, flip_down = 0, border = 0;
  uint32_t fill = 0;
  int32_t content_x = 0, content_y = 0, content_width = 0, content_height = 0;
  int32_t most_x = 0, most_y = 0;
  uint64_t taps_x = 0, taps_y = 0;
  uint64_t pixels = 0;
  int32_t region_x = 0, region_y = 0, region_width = 0, region_height = 0;
  uint64_t middle = 0;
  int32_t middle_low = 0, middle_extent = 0;
  int32_t down_first = 0;
  int32_t slot = 0;
  uint64_t changes = 0, sums = 0;
  int32_t change_count = 0;
  int32_t orientation = 0;

  static constexpr int32_t kPixels = 5;
};
static_assert(sizeof(PictureJob) == 224);

struct PictureOutput {
  uint64_t address = 0;
  int32_t channels = 3;
  int32_t dtype = 0;  // 0 u8, 1 f16, 2 bf16, 3 f32
  int32_t channels_first = 1;
  int32_t width = 0, height = 0;
  float scale[4] = {1, 1, 1, 1}, bias[4] = {};
};
static_assert(sizeof(PictureOutput) == 64);

// Each picture of a batch with the one before it.
struct PictureMixing {
  uint64_t from = 0, to = 0;
  int32_t count = 0;
  int32_t first = 0;
  int32_t channels = 3;
  int32_t dtype = 0;
  int32_t channels_first = 1;
  int32_t width = 0, height = 0;
  int32_t cuts = 0;
  float share = 1, rest = 0;
  int32_t x0 = 0, x1 = 0, y0 = 0, y1 = 0;
};
static_assert(sizeof(PictureMixing) == 72);

// Bytes of device memory that a job wants for itself.
struct JobMemory {
  uint64_t planes = 0;  // Y, then the two of chroma, each beginning at a multiple of 256
  uint64_t chroma = 0;  // where those begin, and the size of one
  uint64_t chroma_bytes = 0;
  uint64_t taps_x = 0, taps_y = 0;
  uint64_t pixels = 0;
  uint64_t middle = 0;
  uint64_t sums = 0;
};

// How many changes of contrast there are: each needs a sum.
int contrasts_of(const std::vector<PixelChange>& changes);

// The job of a picture that the engines decode, without addresses, and what memory it takes.
PictureJob plan_job(const DeferredValue& value, JobMemory& memory);

}  // namespace headrace
