// SPDX-License-Identifier: Apache-2.0
//
// Turner: stands between a codec and a sink and turns the picture on the way.  The sink sees
// the picture upright; the codec is asked for the part of the stored one that this needs.  The
// part is held in memory, since its last column may be the sink's first row.
#pragma once

#include "base/buffer.h"
#include "codec/exif.h"
#include "codec/image.h"

namespace headrace {

// One thread at a time.
class Turner final : public ImageSink {
 public:
  Turner(Orientation how, ImageSink& sink) : how_(how), sink_(sink) {}
  Result<ImageRequest> begin(const ImageInfo& stored) override;
  Status rows(const Rows& rows) override;

 private:
  Status give();

  const Orientation how_;
  ImageSink& sink_;
  ImageRequest upright_;
  Box part_;  // of the stored picture
  int taken_ = 0;
  Buffer pixels_;  // part_, rows without gaps
};

}  // namespace headrace
