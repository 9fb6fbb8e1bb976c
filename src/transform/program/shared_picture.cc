// SPDX-License-Identifier: Apache-2.0
#include "transform/program/shared_picture.h"

#include <cstring>

namespace headrace {

// Copies the rows that come.
class SharedPicture::Capture final : public ImageSink {
 public:
  Capture(SharedPicture& to, PixelMode mode, const std::function<Box(Size)>& wanted)
      : to_(to), mode_(mode), wanted_(wanted) {}

  Result<ImageRequest> begin(const ImageInfo& info) override {
    to_.size_ = {info.width, info.height};
    to_.region_ = wanted_(to_.size_);
    to_.pixel_ = static_cast<size_t>(channels_of(mode_));
    to_.stride_ = static_cast<size_t>(to_.region_.width) * to_.pixel_;
    to_.filled_ = 0;
    to_.pixels_.resize(to_.stride_ * static_cast<size_t>(to_.region_.height) + kRowSlack);
    return ImageRequest{to_.region_, mode_, 1};
  }

  Status rows(const Rows& rows) override {
    if (rows.count > to_.region_.height - to_.filled_)
      return internal("the codec gave more rows than were wanted");
    for (int r = 0; r < rows.count; ++r, ++to_.filled_)
      std::memcpy(to_.pixels_.data() + static_cast<size_t>(to_.filled_) * to_.stride_,
                  rows.first + static_cast<size_t>(r) * rows.stride, to_.stride_);
    return {};
  }

 private:
  SharedPicture& to_;
  const PixelMode mode_;
  const std::function<Box(Size)>& wanted_;
};

Status SharedPicture::decode(const Name& name, const std::function<Status(ImageSink&)>& decode,
                             const std::function<Box(Size)>& wanted) {
  name_ = {};
  Capture capture(*this, name.mode, wanted);
  HEADRACE_TRY(decode(capture));
  if (filled_ != region_.height) return internal("the codec gave fewer rows than were wanted");
  name_ = name;
  return {};
}

Rows SharedPicture::rows(const Box& part) const {
  const auto y = static_cast<size_t>(part.y - region_.y);
  const auto x = static_cast<size_t>(part.x - region_.x);
  return {reinterpret_cast<const uint8_t*>(pixels_.data()) + y * stride_ + x * pixel_, stride_,
          part.height};
}

}  // namespace headrace
