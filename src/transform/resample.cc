// SPDX-License-Identifier: Apache-2.0
#include "transform/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace headrace {
namespace {

constexpr int kTogether = 4;  // rows that the horizontal pass takes at once

size_t aligned(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// [begin, begin + extent) cut to [0, limit), as first and count.
struct Span {
  int first;
  int count;
};
Span cut(int begin, int extent, int limit) {
  const int first = std::clamp(begin, 0, limit);
  return {first, std::clamp(begin + extent, 0, limit) - first};
}

// The axis of a box side: begin is where the box starts within the whole pixels decoded for it.
Axis axis_of(int begin, int extent, int size, const Span& wanted, int shrink, Filter filter) {
  const double from = static_cast<double>(begin) / shrink;
  const double base = std::floor(from);
  const double to = static_cast<double>(begin + extent) / shrink;
  Axis axis;
  axis.begin = from - base;
  axis.end = to - base;
  axis.size = size;
  axis.first = wanted.first;
  axis.count = wanted.count;
  axis.low = 0;
  axis.high = static_cast<int>(std::ceil(axis.end));
  axis.filter = filter;
  return axis;
}

}  // namespace

void Resampler::plan(const View& view, int shrink) {
  const Span columns = cut(view.window.x, view.window.width, view.size.width);
  const Span lines = cut(view.window.y, view.window.height, view.size.height);
  content_ = {columns.first - view.window.x, lines.first - view.window.y, columns.count, lines.count};
  if (view.flip) content_.x = view.window.width - content_.x - content_.width;
  reverse_ = view.flip;
  Axis x = axis_of(view.box.x, view.box.width, view.size.width, columns, shrink, view.filter);
  x.reverse = view.flip;
  across_.build(x);
  down_.build(axis_of(view.box.y, view.box.height, view.size.height, lines, shrink, view.filter));
}

Box Resampler::begin(const View& view, int shrink, int channels, const Store& store,
                     MutableBytes out) {
  plan(view, shrink);
  store_ = store;
  result_ = view.result();
  channels_ = channels;
  out_ = out.data();
  direct_ = store.dtype == DType::kU8 && store.layout == Layout::kNCHW && content_.width == result_.width;
  plane_ = aligned(static_cast<size_t>(content_.width) + kKernelSlack);
  wide_ = aligned(static_cast<size_t>(result_.width) + kKernelSlack);
  ring_rows_ = 2 * down_.pairs() + kTogether;
  ring_.resize(static_cast<size_t>(ring_rows_) * plane_ * static_cast<size_t>(channels));
  line_.resize(wide_ * static_cast<size_t>(channels));
  std::memset(line_.data(), 0, line_.size());
  pointers_.resize(2 * static_cast<size_t>(down_.pairs()));
  taken_ = made_ = 0;
  for (int y = 0; y < content_.y; ++y) store_line(y);
  for (int y = content_.y + content_.height; y < result_.height; ++y) store_line(y);
  return {view.box.x / shrink + across_.low(), view.box.y / shrink + down_.low(),
          across_.high() - across_.low(), down_.high() - down_.low()};
}

uint8_t* Resampler::ring_at(int slot) {
  return reinterpret_cast<uint8_t*>(ring_.data()) +
         static_cast<size_t>(slot) * plane_ * static_cast<size_t>(channels_);
}

void Resampler::rows(const Rows& rows) {
  for (int r = 0; r < rows.count; r += kTogether) {
    take(rows.first + static_cast<size_t>(r) * rows.stride, rows.stride, std::min(kTogether, rows.count - r));
    emit();
  }
}

void Resampler::take(const uint8_t* row, size_t stride, int count) {
  AcrossRow group[kTogether];
  for (int r = 0; r < count; ++r) group[r] = {row + static_cast<size_t>(r) * stride, ring_row(taken_ + r)};
  if (across_.is_copy())
    for (int r = 0; r < count; ++r) kernels_.split(group[r], across_.count(), channels_, plane_, reverse_);
  else
    kernels_.across(group, count, channels_, plane_, across_);
  taken_ += count;
}

void Resampler::emit() {
  while (made_ < content_.height && down_.start(made_) + down_.used(made_) <= taken_) {
    finish_row(made_);
    ++made_;
  }
}

// Makes content row y out of the ring, then the row of the result that it lies in.
void Resampler::finish_row(int y) {
  const int first = down_.start(y);
  const int used = down_.used(y);
  const int pairs = (used + 1) / 2;
  // The partner of an odd last tap has weight 0 and may be any row.
  for (int k = 0; k < 2 * pairs; ++k) pointers_[static_cast<size_t>(k)] = ring_row(first + std::min(k, used - 1));
  const auto width = static_cast<size_t>(content_.width);
  const size_t out_row = static_cast<size_t>(content_.y + y) * static_cast<size_t>(result_.width);
  const size_t out_plane = static_cast<size_t>(result_.width) * static_cast<size_t>(result_.height);
  for (size_t c = 0; c < static_cast<size_t>(channels_); ++c) {
    uint8_t* to = direct_ ? reinterpret_cast<uint8_t*>(out_) + c * out_plane + out_row
                          : reinterpret_cast<uint8_t*>(line_.data()) + c * wide_ + content_.x;
    if (down_.is_copy())
      std::memcpy(to, pointers_[0] + c * plane_, width);
    else
      kernels_.down(pointers_.data(), c * plane_, down_.weights(y), pairs, width, to);
  }
  if (!direct_) store_line(content_.y + y);
}

// Writes line_ as row y of the result.
void Resampler::store_line(int y) {
  const size_t element = size_of(store_.dtype);
  const size_t row = static_cast<size_t>(y) * static_cast<size_t>(result_.width) * element;
  const size_t plane = static_cast<size_t>(result_.width) * static_cast<size_t>(result_.height) * element;
  const bool planar = store_.layout == Layout::kNCHW;
  const auto which = static_cast<size_t>(store_index(store_.dtype));
  std::byte* to = out_ + (planar ? row : row * static_cast<size_t>(channels_));
  (planar ? kernels_.planes : kernels_.pixels)[which](reinterpret_cast<const uint8_t*>(line_.data()), wide_,
                                                      result_.width, channels_, store_, to, plane);
}

}  // namespace headrace
