// SPDX-License-Identifier: Apache-2.0
//
// Pictures made smaller, or of another quality, or plain pixels, on their way into a shard.
//
// A picture that is encoded anew has no EXIF and no colour profile any more; what its EXIF said
// of its orientation is done to its pixels.  The same bytes give the same bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "index/schema.h"

namespace headrace {

struct RecodeOptions {
  int max_side = 0;    // 0: any; else pictures whose longer side exceeds it are made smaller
  int quality = 0;     // 0: 90 for pictures that are made smaller; else every JPEG is encoded anew
  bool raw = false;    // pictures become uint8 [height, width, channels] as the bytes of a .npy
  bool orient = true;  // false: pixels stay as they lie, whatever EXIF says
  bool any() const { return max_side != 0 || quality != 0 || raw; }
};

Status validate(const RecodeOptions& options);

inline bool is_picture(Kind kind) {
  return kind == Kind::kJpeg || kind == Kind::kPng || kind == Kind::kWebp;
}

// Appends the picture to `out`: as it is where nothing has to be done.  A picture that cannot be
// decoded is kCorrupt with the offset in it.  Thread-safe; scratch memory is the thread's own.
Status recode(const RecodeOptions& options, Bytes picture, std::vector<std::byte>& out);

}  // namespace headrace
