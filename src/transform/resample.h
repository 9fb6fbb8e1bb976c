// SPDX-License-Identifier: Apache-2.0
//
// Resampler: rows of a picture go in from top to bottom, the view of it comes out in
// its slot.  Each row is resampled along itself as it comes and kept in a ring that is as
// high as the vertical filter; each output row is made, flipped, normalised, cast and laid
// out as soon as its rows are there.  No row is touched twice while it is out of cache,
// and no picture is held.
//
// Equal to Pillow's Image.crop(box).resize(size, filter), bit for bit.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "codec/image.h"
#include "transform/geometry.h"
#include "transform/kernels.h"
#include "transform/store.h"
#include "transform/taps.h"

namespace headrace {

// One thread at a time.  Keeps its memory from picture to picture.
class Resampler {
 public:
  explicit Resampler(const Kernels& kernels = vector_kernels()) : kernels_(kernels) {}

  // Prepares for a view; returns the region of the source whose rows must follow.  With `shrink`
  // the region, and the rows, are of the source made that much smaller.  `out` has room for
  // store.shape(view.result(), channels) and lives until the last row.
  Box begin(const View& view, int shrink, int channels, const Store& store, MutableBytes out);
  void rows(const Rows& rows);

 private:
  void plan(const View& view, int shrink);
  void take(const uint8_t* row, size_t stride, int count);
  void emit();
  void finish_row(int y);
  void store_line(int y);
  uint8_t* ring_row(int y) { return ring_at(y % ring_rows_); }
  uint8_t* ring_at(int slot);

  const Kernels& kernels_;
  Taps across_;
  Taps down_;
  Store store_;
  Size result_;
  Box content_;  // the part of the result that is not padding
  int channels_ = 0;
  std::byte* out_ = nullptr;
  bool reverse_ = false;
  bool direct_ = false;  // the vertical pass writes into the slot
  size_t plane_ = 0;     // bytes of one channel of a ring row, with slack
  size_t wide_ = 0;      // likewise of a finished row
  int ring_rows_ = 0;
  int taken_ = 0;  // source rows in the ring so far
  int made_ = 0;   // content rows written so far
  Buffer ring_;
  Buffer line_;    // one finished row, padding included
  std::vector<const uint8_t*> pointers_;
};

}  // namespace headrace
