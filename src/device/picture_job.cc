// SPDX-License-Identifier: Apache-2.0
#include "device/picture_job.h"

#include <algorithm>
#include <cmath>

#include "transform/kernels/resample.h"
#include "transform/program/deferred_decoder.h"

namespace headrace {
namespace {

constexpr uint64_t kPixelBytes = 4;  // between the kernels
constexpr uint64_t kPitch = 256;     // rows and planes begin at multiples of it

uint64_t aligned(uint64_t n) {
  return (n + kPitch - 1) / kPitch * kPitch;
}

// Taps of one axis, as transform/kernels/taps.cc counts them.
int most_taps(int extent, int size, Filter filter) {
  if (extent == size || filter == Filter::kNearest) return 1;
  const double scale = static_cast<double>(extent) / size;
  const double support = (filter == Filter::kBilinear ? 1.0 : 2.0) * std::max(scale, 1.0);
  return std::min(static_cast<int>(std::floor(2 * support)) + 1, extent);
}

// The source pixels that outputs [first, first + count) use, at least.
struct Reach {
  int low;
  int extent;
};
Reach reach(int extent, int size, int first, int count, Filter filter, Border border) {
  if (count == 0) return {0, 0};
  if (border != Border::kConstant) return {0, extent};
  const double scale = static_cast<double>(extent) / size;
  const double radius = filter == Filter::kBicubic ? 2.0 : 1.0;
  const double support = radius * std::max(scale, 1.0) + 1;
  const int low = std::max(0, static_cast<int>(std::floor((first + 0.5) * scale - support)));
  const int high =
      std::min(extent, static_cast<int>(std::ceil((first + count - 0.5) * scale + support)) + 1);
  return {low, high - low};
}

// What of [begin, begin + extent) lies in [0, limit).
Reach cut(int begin, int extent, int limit) {
  const int first = std::clamp(begin, 0, limit);
  return {first, std::clamp(begin + extent, 0, limit) - first};
}

void place_content(const View& view, PictureJob& job) {
  job.content_width = view.window.width;
  job.content_height = view.window.height;
  if (view.padding.border != Border::kConstant) return;
  const Reach x = cut(view.window.x, view.window.width, view.size.width);
  const Reach y = cut(view.window.y, view.window.height, view.size.height);
  const bool empty = x.extent == 0 || y.extent == 0;
  job.content_x = x.low - view.window.x;
  job.content_y = y.low - view.window.y;
  job.content_width = empty ? 0 : x.extent;
  job.content_height = empty ? 0 : y.extent;
}

}  // namespace

int contrasts_of(const std::vector<PixelChange>& changes) {
  return static_cast<int>(std::count_if(changes.begin(), changes.end(), [](const PixelChange& c) {
    return c.kind == PixelChange::kContrast;
  }));
}

PictureJob plan_job(const DeferredValue& value, JobMemory& memory) {
  const DeferredPicture& record = value.picture;
  const View view = view_of(record);
  PictureJob job;
  job.width = record.source_width;
  job.height = record.source_height;
  job.kind = record.sampling;
  const auto sampling = static_cast<JpegSampling>(record.sampling);
  const bool half_width = sampling == JpegSampling::k422 || sampling == JpegSampling::k420;
  const bool half_height = sampling == JpegSampling::k440 || sampling == JpegSampling::k420;
  if (sampling != JpegSampling::kGray) {
    job.chroma_width = half_width ? (job.width + 1) / 2 : job.width;
    job.chroma_height = half_height ? (job.height + 1) / 2 : job.height;
  }
  job.box_x = view.box.x, job.box_y = view.box.y;
  job.box_width = view.box.width, job.box_height = view.box.height;
  job.size_width = view.size.width, job.size_height = view.size.height;
  job.window_x = view.window.x, job.window_y = view.window.y;
  job.window_width = view.window.width, job.window_height = view.window.height;
  job.filter = record.filter, job.flip = record.flip, job.flip_down = record.flip_down;
  job.border = record.border;
  job.orientation = record.orientation;
  job.change_count = static_cast<int32_t>(value.changes.size());
  for (size_t c = 0; c < 4; ++c) job.fill |= static_cast<uint32_t>(record.fill[c]) << (8 * c);
  place_content(view, job);
  job.most_x = most_taps(job.box_width, job.size_width, view.filter);
  job.most_y = most_taps(job.box_height, job.size_height, view.filter);
  job.down_first = goes_down_first(view) ? 1 : 0;
  const Border border = view.padding.border;
  const Reach x = reach(job.box_width, job.size_width, job.window_x + job.content_x,
                        job.content_width, view.filter, border);
  const Reach y = reach(job.box_height, job.size_height, job.window_y + job.content_y,
                        job.content_height, view.filter, border);
  job.region_x = x.low, job.region_width = x.extent;
  job.region_y = y.low, job.region_height = y.extent;
  const Reach r = job.down_first != 0 ? x : y;
  job.middle_low = r.low;
  job.middle_extent = r.extent;

  job.pitch[0] = static_cast<int32_t>(aligned(static_cast<uint64_t>(job.width)));
  job.pitch[1] = static_cast<int32_t>(aligned(static_cast<uint64_t>(job.chroma_width)));
  // Engines write whole blocks of 8 or 16 rows.
  const auto rows = [](int n) { return (static_cast<uint64_t>(n) + 15) / 16 * 16; };
  memory.chroma = static_cast<uint64_t>(job.pitch[0]) * rows(job.height);
  memory.chroma_bytes = static_cast<uint64_t>(job.pitch[1]) * rows(job.chroma_height);
  memory.planes = memory.chroma + 2 * memory.chroma_bytes;
  const auto taps = [](int count, int most) {
    return aligned(static_cast<uint64_t>(count) * static_cast<uint64_t>(most + 2) * 4);
  };
  memory.taps_x = taps(job.content_width, job.most_x);
  memory.taps_y = taps(job.content_height, job.most_y);
  const auto other = job.down_first != 0 ? job.content_height : job.content_width;
  const auto pixels = [](int width, int height) {
    return aligned(static_cast<uint64_t>(width) * static_cast<uint64_t>(height) * kPixelBytes);
  };
  memory.pixels = pixels(x.extent, y.extent);
  memory.middle = pixels(r.extent, other);
  memory.sums = aligned(static_cast<uint64_t>(contrasts_of(value.changes)) * sizeof(uint64_t));
  return job;
}

}  // namespace headrace
