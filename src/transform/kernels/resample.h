// SPDX-License-Identifier: Apache-2.0
//
// Resampler: rows of a picture go in from top to bottom, the view of it comes out in its
// slot.  No picture is held: a ring keeps as many rows as the vertical filter is high, and
// each output row is made, flipped, normalised, cast and laid out as soon as its rows are there.
//
//   across first   row ─across─► ring of planar rows ─down─► line ─store─► slot
//   down first     row ─copy──► ring of rows ─down─► row ─across─► line ─store─► slot
//
// Equal to Pillow's Image.crop(box).resize(size, filter), bit for bit; the order of the two
// passes follows Pillow 13, which goes down first where that leaves less for the other pass.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "codec/image.h"
#include "transform/geometry/geometry.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/taps.h"
#include "transform/output/pixel_output.h"

namespace headrace {

// Whether the rows of a view are made first, and then what is across.
bool goes_down_first(const View& view);

// One thread at a time.  Keeps its memory from picture to picture.
class Resampler {
 public:
  explicit Resampler(const Kernels& kernels = vector_kernels()) : kernels_(kernels) {}

  // Prepares for a view; returns the region of the source whose rows must follow.  With `shrink`
  // the region, and the rows, are of the source made that much smaller.  `out` has room for
  // store.shape(view.result(), channels) and lives until the last row.
  Box begin(const View& view, int shrink, int channels, const PixelOutput& store, MutableBytes out);
  // The next rows of the region; kRowSlack bytes may be read past the end of each.
  void rows(const Rows& rows);

 private:
  static constexpr int kTogether = 4;  // rows that the horizontal pass takes at once

  void plan(const View& view, int shrink);
  void paint_padding();
  void paint_right(int line);
  void reserve();
  void take(const uint8_t* row, size_t stride, int count);
  void go_across(const AcrossRow* group, int count, size_t plane);
  void emit();
  void point_at_taps(int y);
  void finish_row(int y);
  void add_tall(int y);
  void finish_line(int line);
  void store_line(int line, int y);
  // Where row y of the window comes to lie.
  int row_of(int y) const { return flip_down_ ? result_.height - 1 - y : y; }

  uint8_t* ring_row(int y) {
    return bytes_of(ring_) + static_cast<size_t>(y % ring_rows_) * ring_stride_;
  }
  uint8_t* line(int i) { return bytes_of(lines_) + static_cast<size_t>(i) * wide_ * channels(); }
  uint8_t* tall(int i) { return bytes_of(tall_) + static_cast<size_t>(i) * ring_stride_; }
  size_t channels() const { return static_cast<size_t>(channels_); }
  static uint8_t* bytes_of(Buffer& b) { return reinterpret_cast<uint8_t*>(b.data()); }

  const Kernels& kernels_;
  Taps across_;
  Taps down_;
  PixelOutput store_;
  Size result_;
  Box content_;  // the part of the result that is not padding
  int channels_ = 0;
  std::byte* out_ = nullptr;
  Padding padding_;
  bool reverse_ = false;
  bool flip_down_ = false;
  bool down_first_ = false;
  bool premultiplied_ = false;  // RGBA: colours are weighed by their alpha, as Pillow does
  bool direct_ = false;         // the vertical pass writes into the slot
  bool keeps_all_ = false;      // rows above the picture show rows yet to come: none may go
  size_t plane_ = 0;            // bytes of one channel of a planar ring row, with slack
  size_t wide_ = 0;             // likewise of a line
  size_t ring_stride_ = 0;
  int ring_rows_ = 0;
  int taken_ = 0;  // source rows in the ring so far
  int made_ = 0;   // content rows made so far
  Buffer ring_;
  Buffer lines_;       // finished rows of the result, planar, padding included
  Buffer alpha_rows_;  // source rows, premultiplied
  Buffer tall_;        // down first: rows that wait for the horizontal pass
  std::vector<const uint8_t*> pointers_;
};

}  // namespace headrace
