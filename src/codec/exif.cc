// SPDX-License-Identifier: Apache-2.0
//
//   TIFF   "II" or "MM" | u16 42 | u32 where the first directory lies
//          directory: u16 entries, each u16 tag | u16 type | u32 count | 4 bytes value
//   JPEG   ff d8 | ff marker | u16 length, itself included | …      until the scan, ff da
//          ff e1 with "Exif" 0 0 before the TIFF
#include "codec/exif.h"

#include <cstdint>

namespace headrace {
namespace {

constexpr size_t kTagBytes = 12;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr std::string_view kExif("Exif\0\0", 6);

uint32_t big_endian(Bytes at, size_t bytes) {
  uint32_t v = 0;
  for (size_t i = 0; i < bytes; ++i) v = v << 8 | static_cast<uint32_t>(at[i]);
  return v;
}

// Numbers of a TIFF; 0 where the data ends before.
class Numbers {
 public:
  Numbers(Bytes tiff, bool little) : tiff_(tiff), little_(little) {}
  uint32_t read(uint64_t at, size_t bytes) const {
    if (at > tiff_.size() || tiff_.size() - at < bytes) return 0;
    const Bytes here = tiff_.subspan(at, bytes);
    if (!little_) return big_endian(here, bytes);
    uint32_t v = 0;
    for (size_t i = bytes; i-- > 0;) v = v << 8 | static_cast<uint32_t>(here[i]);
    return v;
  }

 private:
  Bytes tiff_;
  bool little_;
};

Orientation orientation_of(uint32_t value) {
  if (value < 1 || value > 8) return {};
  return {.mirror_x = value == 2 || value == 3 || value == 7 || value == 8,
          .mirror_y = value == 3 || value == 4 || value == 6 || value == 7,
          .transpose = value >= 5};
}

}  // namespace

Orientation exif_orientation(Bytes tiff) {
  if (as_text(tiff).starts_with(kExif)) tiff = tiff.subspan(kExif.size());
  const std::string_view text = as_text(tiff);
  if (!text.starts_with("II") && !text.starts_with("MM")) return {};
  const Numbers numbers(tiff, text[0] == 'I');
  if (numbers.read(2, 2) != 42) return {};
  const uint64_t directory = numbers.read(4, 4);
  const uint32_t entries = numbers.read(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{i} * kTagBytes;
    if (entry >= tiff.size()) break;
    if (numbers.read(entry, 2) == kOrientationTag && numbers.read(entry + 2, 2) == kShort)
      return orientation_of(numbers.read(entry + 8, 2));
  }
  return {};
}

Bytes exif_of_jpeg(Bytes jpeg) {
  size_t at = 2;
  while (at < jpeg.size() && jpeg.size() - at >= 4) {
    if (jpeg[at] != std::byte{0xff}) return {};
    const auto marker = static_cast<uint8_t>(jpeg[at + 1]);
    if (marker == 0xff) {  // filler
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) return {};
    const size_t length = big_endian(jpeg.subspan(at + 2), 2);
    if (length < 2 || length > jpeg.size() - at - 2) return {};
    const Bytes body = jpeg.subspan(at + 4, length - 2);
    if (marker == 0xe1 && as_text(body).starts_with(kExif)) return body.subspan(kExif.size());
    at += 2 + length;
  }
  return {};
}

}  // namespace headrace
