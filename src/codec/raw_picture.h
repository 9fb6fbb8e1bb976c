// SPDX-License-Identifier: Apache-2.0
//
// Pictures that lie as numbers: u8 arrays of shape (h, w), (h, w, 1), (h, w, 3) or (h, w, 4), or
// with the channels first, (c, h, w).
#pragma once

#include <string>
#include <vector>

#include "codec/image.h"

namespace headrace {

// Where a picture of these extents (kVaries where the sample decides) has its sides.
struct RawLayout {
  int64_t width = 0;
  int64_t height = 0;
  int channels = 1;
};
// kInvalidArgument for a shape that is no picture; the text names layout="CHW" where that helps.
Result<RawLayout> raw_layout(const std::vector<int64_t>& shape, bool channels_first);

// Gives a picture to the sink.  `pixels` are as many as `shape`, which has no kVaries, says.
Status decode_raw(const std::vector<int64_t>& shape, bool channels_first, Bytes pixels,
                  const ImageOptions& options, ImageSink& sink);

// Of a .npy file.
Status decode_npy_picture(Bytes file, bool channels_first, const ImageOptions& options,
                          ImageSink& sink);

}  // namespace headrace
