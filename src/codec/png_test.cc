// SPDX-License-Identifier: Apache-2.0
//
// What a PNG of our own encoder cannot show: other depths, damage, metadata.  Pixels against
// Pillow's are in tests/test_codecs.py.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "codec/encode.h"
#include "codec/keep_sink.h"

namespace headrace {
extern const ImageCodec png_codec;
namespace {

using namespace std::string_literals;

std::string u32(size_t v) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
  return out;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string whole = type + data;
  return u32(data.size()) + whole +
         u32(crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size()));
}

std::string deflated(const std::string& raw) {
  std::string out(compressBound(raw.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
           raw.size());
  return out.substr(0, size);
}

// 2 x 2 pixels.
std::string png(char depth, char colour, const std::string& rows, const std::string& more = "") {
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", u32(2) + u32(2) + std::string{depth, colour, 0, 0, 0}) + more +
         chunk("IDAT", deflated(rows)) + chunk("IEND", "");
}

Result<std::vector<uint8_t>> decode(const std::string& file, PixelMode mode, bool strict = true,
                                    std::atomic<uint64_t>* damaged = nullptr) {
  fixture::KeepSink keep({{}, mode});
  HEADRACE_TRY(png_codec.decode(as_bytes(file), {.strict = strict, .damaged = damaged}, keep));
  return std::move(keep.pixels);
}

// Pillow keeps such pictures as numbers and clips them when it converts.
TEST(PngTest, GrayOf16BitsIsClipped) {
  const std::string file =
      png(16, 0, "\0\0\x07\1\0\0\0\xff\xff\0\x10"s.substr(0, 10), chunk("tRNS", "\1\0"s));
  const auto gray = decode(file, PixelMode::kGray).value();
  EXPECT_EQ(gray, (std::vector<uint8_t>{7, 255, 255, 255}));
  const auto rgba = decode(file, PixelMode::kRgba).value();
  EXPECT_EQ(rgba[3], 255);
  EXPECT_EQ(rgba[7], 0);  // 256, the transparent one
}

TEST(PngTest, ColoursOf16BitsKeepTheirUpperHalf) {
  const std::string row = "\0\1\2\3\4\5\6\xff\xff\0\xff\x80\0"s;
  const auto rgb = decode(png(16, 2, row + row), PixelMode::kRgb).value();
  EXPECT_EQ(std::vector<uint8_t>(rgb.begin(), rgb.begin() + 6),
            (std::vector<uint8_t>{1, 3, 5, 255, 0, 128}));
}

TEST(PngTest, WrongChecksumIsAnErrorOrCounted) {
  std::string file = png(8, 0, "\0\1\2\0\3\4"s);
  const auto want = decode(file, PixelMode::kGray).value();
  EXPECT_EQ(want, (std::vector<uint8_t>{1, 2, 3, 4}));
  file[file.size() - 14] ^= 1;
  const Status s = decode(file, PixelMode::kGray).status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_EQ(s.message(), "PNG: wrong checksum of a chunk");
  EXPECT_EQ(s.place().offset, 33);
  std::atomic<uint64_t> damaged{0};
  EXPECT_EQ(decode(file, PixelMode::kGray, false, &damaged).value(), want);
  EXPECT_EQ(damaged, 1u);
}

TEST(PngTest, NotStrictStillNeedsThePixels) {
  const std::string file = png(8, 0, "\0\1\2\0\3\4"s);
  std::atomic<uint64_t> damaged{0};
  EXPECT_FALSE(decode(file.substr(0, 45), PixelMode::kGray, false, &damaged).ok());
  EXPECT_EQ(damaged, 0u);
}

TEST(PngTest, ExifIsItsChunk) {
  const std::string rows = "\0\1\2\0\3\4"s;
  EXPECT_TRUE(png_codec.exif(as_bytes(png(8, 0, rows))).empty());
  EXPECT_EQ(as_text(png_codec.exif(as_bytes(png(8, 0, rows, chunk("eXIf", "II*"))))), "II*");
  EXPECT_TRUE(png_codec.exif(as_bytes("\x89PNG\r\n\x1a\n\xff\xff\xff\xff"s + "eXIf")).empty());
}

TEST(PngTest, LengthsNearTheLimitOfTheirTypeAreNoOverflow) {
  std::string file = png(8, 0, "\0\1\2\0\3\4"s);
  file.replace(33, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(decode(file, PixelMode::kGray).status().code(), Code::kCorrupt);
  EXPECT_FALSE(decode(file, PixelMode::kGray, false).ok());
}

}  // namespace
}  // namespace headrace
