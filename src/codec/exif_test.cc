// SPDX-License-Identifier: Apache-2.0
#include "codec/exif.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/turn.h"

namespace headrace {
namespace {

using namespace std::string_literals;

// A directory of two entries, the second of which is the orientation.
std::string tiff(bool little, uint16_t value, uint16_t type = 3) {
  std::string out = little ? "II" : "MM";
  const auto number = [&](uint32_t v, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out.push_back(static_cast<char>(v >> 8 * (little ? i : bytes - 1 - i)));
  };
  number(42, 2), number(8, 4), number(2, 2);
  number(0x010f, 2), number(2, 2), number(4, 4), number(0, 4);
  number(0x0112, 2), number(type, 2), number(1, 4), number(value, 2), number(0, 2);
  return out;
}

TEST(ExifTest, ReadsBothByteOrders) {
  for (const bool little : {false, true}) {
    EXPECT_TRUE(exif_orientation(as_bytes(tiff(little, 1))).is_upright());
    EXPECT_EQ(exif_orientation(as_bytes(tiff(little, 6))), (Orientation{false, true, true}));
    EXPECT_EQ(exif_orientation(as_bytes("Exif\0\0"s + tiff(little, 2))),
              (Orientation{true, false, false}));
  }
}

TEST(ExifTest, WhatMakesNoSenseIsUpright) {
  for (const std::string& bad : {""s, "II"s, "XX*\0\10\0\0\0"s, tiff(true, 0), tiff(true, 9),
                                 tiff(true, 6, 4), "II*\0\xff\xff\xff\xff"s})
    EXPECT_TRUE(exif_orientation(as_bytes(bad)).is_upright());
  const std::string whole = tiff(false, 6);
  for (size_t n = 0; n < whole.size() - 4; ++n)
    EXPECT_TRUE(exif_orientation(as_bytes(whole).first(n)).is_upright()) << n;
}

TEST(ExifTest, FindsItAmongTheSegmentsOfAJpeg) {
  const std::string exif = "Exif\0\0"s + tiff(true, 3);
  const std::string length{'\0', static_cast<char>(exif.size() + 2)};
  const std::string jpeg =
      "\xff\xd8\xff\xe0\0\4ab\xff\xff\xe1\0\6http"s + "\xff\xe1" + length + exif + "\xff\xda\0\2"s;
  EXPECT_EQ(as_text(exif_of_jpeg(as_bytes(jpeg))), tiff(true, 3));
  for (size_t n = 0; n < jpeg.size() - 4; ++n)
    EXPECT_TRUE(exif_of_jpeg(as_bytes(jpeg).first(n)).empty()) << n;
  EXPECT_TRUE(exif_of_jpeg(as_bytes("\xff\xd8\xff\xda\0\2"s + jpeg.substr(2))).empty());
}

// A sink that asks for a part and keeps it.
class Part final : public ImageSink {
 public:
  explicit Part(Box box) : box_(box) {}
  Result<ImageRequest> begin(const ImageInfo& info) override {
    seen = info;
    return ImageRequest{box_, PixelMode::kGray};
  }
  Status rows(const Rows& rows) override {
    for (int r = 0; r < rows.count; ++r)
      for (int x = 0; x < box_.width; ++x)
        pixels.push_back(rows.first[static_cast<size_t>(r) * rows.stride + static_cast<size_t>(x)]);
    return {};
  }
  ImageInfo seen;
  std::vector<int> pixels;

 private:
  Box box_;
};

// The stored picture is 4 x 3 with pixel 10 * y + x; EXIF 6 is a quarter turn clockwise.
TEST(TurnTest, AsksForThePartThatItNeedsAndTurnsIt) {
  Part part({1, 0, 2, 3});
  Turner turner(exif_orientation(as_bytes(tiff(true, 6))), part);
  const ImageRequest request = turner.begin({4, 3, 1, true}).value();
  EXPECT_EQ(part.seen.width, 3);
  EXPECT_EQ(part.seen.height, 4);
  EXPECT_FALSE(part.seen.can_shrink);
  EXPECT_EQ(request.region, (Box{0, 0, 3, 2}));
  const uint8_t row[2][3] = {{0, 1, 2}, {10, 11, 12}};
  ASSERT_TRUE(turner.rows({row[0], 3, 1}).ok());
  EXPECT_TRUE(part.pixels.empty());
  ASSERT_TRUE(turner.rows({row[1], 3, 1}).ok());
  EXPECT_EQ(part.pixels, (std::vector<int>{10, 0, 11, 1, 12, 2}));
  EXPECT_EQ(turner.rows({row[1], 3, 1}).code(), Code::kInternal);
}

TEST(TurnTest, PartOutsideIsOurBug) {
  Part part({0, 0, 5, 5});
  Turner turner({.mirror_x = true}, part);
  EXPECT_EQ(turner.begin({4, 3, 1}).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace headrace
