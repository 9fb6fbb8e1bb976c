// SPDX-License-Identifier: Apache-2.0
//
// For tests: a sink that keeps the region it asks for, and boxes to ask for.
#pragma once

#include <vector>

#include "base/rng.h"
#include "codec/image.h"

namespace headrace::fixture {

class KeepSink final : public ImageSink {
 public:
  explicit KeepSink(ImageRequest request = {}) : request_(request) {}
  Result<ImageRequest> begin(const ImageInfo& seen) override {
    info = seen;
    if (request_.region.width == 0) request_.region = {0, 0, seen.width, seen.height};
    return request_;
  }
  Status rows(const Rows& rows) override {
    const auto bytes = static_cast<size_t>(request_.region.width * channels_of(request_.mode));
    for (int r = 0; r < rows.count; ++r) {
      const uint8_t* row = rows.first + static_cast<size_t>(r) * rows.stride;
      pixels.insert(pixels.end(), row, row + bytes);
    }
    return {};
  }
  ImageInfo info;
  std::vector<uint8_t> pixels;

 private:
  ImageRequest request_;
};

inline std::vector<uint8_t> cut(const std::vector<uint8_t>& whole, int width, int channels,
                                const Box& box) {
  std::vector<uint8_t> out;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const auto row = whole.begin() + (static_cast<ptrdiff_t>(y) * width + box.x) * channels;
    out.insert(out.end(), row, row + box.width * channels);
  }
  return out;
}

inline Box random_box(Rng& rng, int width, int height) {
  Box box;
  box.x = static_cast<int>(rng.below(static_cast<uint64_t>(width)));
  box.y = static_cast<int>(rng.below(static_cast<uint64_t>(height)));
  box.width = 1 + static_cast<int>(rng.below(static_cast<uint64_t>(width - box.x)));
  box.height = 1 + static_cast<int>(rng.below(static_cast<uint64_t>(height - box.y)));
  return box;
}

}  // namespace headrace::fixture
