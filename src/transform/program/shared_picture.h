// SPDX-License-Identifier: Apache-2.0
//
// SharedPicture: a decoded picture that several views, or several fields, are made from.  A part of
// the sample's context.
#pragma once

#include <cstdint>
#include <functional>

#include "base/buffer.h"
#include "base/rng.h"
#include "codec/image.h"
#include "transform/geometry/geometry.h"

namespace headrace {

// One thread at a time; it borrows nothing.
class SharedPicture {
 public:
  // Which picture of the sample this is: the number of the fields that share it, which of its
  // values, its bytes.
  struct Name {
    uint64_t share = 0;  // 0: nobody else wants it
    Key draws{0};
    const std::byte* data = nullptr;
    size_t bytes = 0;
    PixelMode mode = PixelMode::kRgb;
    bool strict = true;
    bool orient = false;
    bool operator==(const Name&) const = default;
  };

  void begin_sample() { name_ = {}; }
  bool holds(const Name& name) const { return name.share != 0 && name == name_; }
  // Keeps the region that `wanted` chooses, once it knows the size of the picture, of what
  // `decode` gives.
  Status decode(const Name& name, const std::function<Status(ImageSink&)>& decode,
                const std::function<Box(Size)>& wanted);

  Size size() const { return size_; }  // of the whole picture
  // Rows of a part of the region, which is in coordinates of the whole picture.
  Rows rows(const Box& part) const;

 private:
  class Capture;
  Name name_;
  Size size_;
  Box region_;
  size_t pixel_ = 0;   // bytes
  size_t stride_ = 0;  // bytes
  int filled_ = 0;     // rows
  Buffer pixels_;
};

}  // namespace headrace
