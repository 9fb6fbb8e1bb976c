// SPDX-License-Identifier: Apache-2.0
//
// Pictures in .npy files: u8, (h, w) or (h, w, c).  base/npy.h has the header, raw_picture.h the
// rest; layout="CHW" is told to that directly.
#include "codec/elements.h"
#include "codec/raw_picture.h"

namespace headrace {
namespace {

bool sniff(Bytes head) {
  return is_npy(head);
}

Result<ImageInfo> probe(Bytes bytes) {
  HEADRACE_ASSIGN(const NpyArray array, open_npy(bytes, bytes.size()));
  HEADRACE_ASSIGN(const RawLayout layout, raw_layout(array.shape, false));
  return ImageInfo{static_cast<int>(layout.width), static_cast<int>(layout.height),
                   layout.channels};
}

Status decode(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  return decode_npy_picture(bytes, false, options, sink);
}

Bytes exif(Bytes) {
  return {};
}

}  // namespace

extern constinit const ImageCodec npy_codec{
    .name = "npy",
    .doc = "NumPy's .npy of u8: (h, w), (h, w, 1), (h, w, 3) or (h, w, 4)",
    .library = "headrace",
    .sniff = sniff,
    .probe = probe,
    .decode = decode,
    .exif = exif,
};

}  // namespace headrace
