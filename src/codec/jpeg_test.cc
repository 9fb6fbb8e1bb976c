// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codec/image.h"
#include "codec/jpeg_fixture.h"
#include "codec/jpeg_golden.h"

namespace headrace {
extern const ImageCodec jpeg_codec;
namespace {

using fixture::Image;
using fixture::JpegKind;
using Blob = std::vector<std::byte>;

// Keeps the region it asks for.
class Keep final : public ImageSink {
 public:
  explicit Keep(ImageRequest request) : request_(request) {}
  Result<ImageRequest> begin(const ImageInfo& seen) override {
    info = seen;
    if (request_.region.width == 0) request_.region = {0, 0, seen.width, seen.height};
    image = {request_.region.width, request_.region.height, channels_of(request_.mode), {}};
    return request_;
  }
  Status rows(const Rows& rows) override {
    const size_t bytes = static_cast<size_t>(image.width * image.channels);
    for (int r = 0; r < rows.count; ++r) {
      const uint8_t* row = rows.first + static_cast<size_t>(r) * rows.stride;
      image.pixels.insert(image.pixels.end(), row, row + bytes);
    }
    return {};
  }
  ImageInfo info;
  Image image;

 private:
  ImageRequest request_;
};

Result<Image> decode(Bytes jpeg, ImageRequest request = {}, ImageOptions options = {}) {
  Keep keep(request);
  HEADRACE_TRY(jpeg_codec.decode(jpeg, options, keep));
  return std::move(keep.image);
}

Image cut(const Image& from, const Box& box) {
  Image out{box.width, box.height, from.channels, {}};
  for (int y = box.y; y < box.y + box.height; ++y) {
    const auto row =
        from.pixels.begin() + (static_cast<ptrdiff_t>(y) * from.width + box.x) * from.channels;
    out.pixels.insert(out.pixels.end(), row, row + box.width * from.channels);
  }
  return out;
}

Box random_box(Rng& rng, int width, int height) {
  Box box;
  box.x = static_cast<int>(rng.below(static_cast<uint64_t>(width)));
  box.y = static_cast<int>(rng.below(static_cast<uint64_t>(height)));
  box.width = 1 + static_cast<int>(rng.below(static_cast<uint64_t>(width - box.x)));
  box.height = 1 + static_cast<int>(rng.below(static_cast<uint64_t>(height - box.y)));
  return box;
}

Blob photo(JpegKind kind = {}) {
  return fixture::encode(fixture::make_image(160, 120, 3, 5), kind);
}

class JpegKinds : public ::testing::TestWithParam<JpegKind> {};

TEST_P(JpegKinds, WholePictureIsLibjpegsOwn) {
  const Blob jpeg =
      fixture::encode(fixture::make_image(97, 61, GetParam().channels, 1), GetParam());
  EXPECT_EQ(decode(jpeg).value().pixels, fixture::decode_all(jpeg).pixels);
}

TEST_P(JpegKinds, EveryCropIsThatPartOfTheWhole) {
  Rng rng{Key(7)};
  for (const auto& [width, height] :
       {std::pair{97, 61}, {33, 130}, {16, 16}, {200, 24}, {5, 3}, {1, 1}}) {
    const Blob jpeg =
        fixture::encode(fixture::make_image(width, height, GetParam().channels, 1), GetParam());
    const Image whole = fixture::decode_all(jpeg);
    for (int i = 0; i < 60; ++i) {
      const Box box = random_box(rng, width, height);
      ASSERT_EQ(decode(jpeg, {box}).value().pixels, cut(whole, box).pixels)
          << width << " x " << height << ": " << box.x << ' ' << box.y << ' ' << box.width << ' '
          << box.height;
    }
  }
}

TEST_P(JpegKinds, CutAnywhereItIsCorrupt) {
  const Blob jpeg =
      fixture::encode(fixture::make_image(97, 61, GetParam().channels, 1), GetParam());
  for (size_t percent = 0; percent < 100; ++percent) {
    const Bytes part = Bytes(jpeg).first(jpeg.size() * percent / 100);
    const auto got = decode(part);
    ASSERT_FALSE(got.ok()) << percent;
    EXPECT_EQ(got.status().code(), Code::kCorrupt);
    EXPECT_LE(got.status().place().offset, static_cast<int64_t>(part.size()));
    EXPECT_GE(got.status().place().offset, 0);
  }
}

TEST_P(JpegKinds, DamageIsAnErrorOrAPictureNeverACrash) {
  const Blob good =
      fixture::encode(fixture::make_image(61, 47, GetParam().channels, 1), GetParam());
  Rng rng{Key(11)};
  for (int i = 0; i < 300; ++i) {
    Blob bad = good;
    for (int k = 0; k < 3; ++k)
      bad[rng.below(bad.size())] ^= std::byte{static_cast<uint8_t>(1 + rng.below(255))};
    Keep keep({});
    const Status s = jpeg_codec.decode(bad, ImageOptions{.max_pixels = 1 << 20}, keep);
    EXPECT_TRUE(s.ok() || s.code() == Code::kCorrupt || s.code() == Code::kUnsupported) << s.text();
  }
  // The thread's decompressor is as good as new.
  EXPECT_EQ(decode(good).value().pixels, fixture::decode_all(good).pixels);
}

INSTANTIATE_TEST_SUITE_P(All, JpegKinds, ::testing::ValuesIn(fixture::kinds()),
                         [](const auto& row) { return "k" + row.param.name; });

TEST(JpegTest, ProbeReadsTheHeaderOnly) {
  const Blob jpeg = photo();
  const ImageInfo info = jpeg_codec.probe(Bytes(jpeg).first(700)).value();
  EXPECT_EQ(info.width, 160);
  EXPECT_EQ(info.height, 120);
  EXPECT_EQ(info.channels, 3);
}

TEST(JpegTest, OtherBytesAreNoPicture) {
  EXPECT_EQ(find_image_codec(as_bytes("hello")).status().code(), Code::kCorrupt);
  EXPECT_EQ(find_image_codec({}).status().code(), Code::kCorrupt);
  EXPECT_EQ(find_image_codec(photo()).value(), &jpeg_codec);
}

TEST(JpegTest, ColourIsConvertedAsPillowConverts) {
  const Bytes colour = std::as_bytes(std::span(golden::kColourJpeg));
  const auto gray = decode(colour, {.region = {}, .mode = PixelMode::kGray}).value();
  EXPECT_TRUE(
      std::equal(gray.pixels.begin(), gray.pixels.end(), std::begin(golden::kColourAsGray)));
  const Bytes grayscale = std::as_bytes(std::span(golden::kGrayJpeg));
  const auto rgb = decode(grayscale).value();
  EXPECT_TRUE(std::equal(rgb.pixels.begin(), rgb.pixels.end(), std::begin(golden::kGrayAsColour)));
}

TEST(JpegTest, CmykIsConvertedAsPillowConverts) {
  const Bytes cmyk = std::as_bytes(std::span(golden::kCmykJpeg));
  const auto rgb = decode(cmyk).value();
  ASSERT_EQ(rgb.pixels.size(), std::size(golden::kCmykAsColour));
  EXPECT_TRUE(std::equal(rgb.pixels.begin(), rgb.pixels.end(), std::begin(golden::kCmykAsColour)));
}

TEST(JpegTest, YcckCropsLikeTheRest) {
  const Blob jpeg =
      fixture::encode(fixture::make_image(70, 50, 4, 3), {.name = "ycck", .ycck = true});
  const Image whole = decode(jpeg).value();
  Rng rng{Key(3)};
  for (int i = 0; i < 50; ++i) {
    const Box box = random_box(rng, 70, 50);
    ASSERT_EQ(decode(jpeg, {box}).value().pixels, cut(whole, box).pixels);
  }
}

// The dimensions of the frame header, made large.
Blob with_size(Blob jpeg, int width, int height) {
  for (size_t i = 0; i + 9 < jpeg.size(); ++i)
    if (jpeg[i] == std::byte{0xff} &&
        (jpeg[i + 1] == std::byte{0xc0} || jpeg[i + 1] == std::byte{0xc2})) {
      jpeg[i + 5] = static_cast<std::byte>(height >> 8),
               jpeg[i + 6] = static_cast<std::byte>(height);
      jpeg[i + 7] = static_cast<std::byte>(width >> 8), jpeg[i + 8] = static_cast<std::byte>(width);
      break;
    }
  return jpeg;
}

TEST(JpegTest, BombIsRefusedBeforeTheSinkIsAsked) {
  for (const bool progressive : {false, true}) {
    const Blob bomb = with_size(photo({.progressive = progressive}), 65000, 65000);
    Keep keep({});
    const Status s = jpeg_codec.decode(bomb, {}, keep);
    EXPECT_EQ(s.code(), Code::kCorrupt);
    EXPECT_NE(s.message().find("65000 x 65000"), std::string_view::npos);
    EXPECT_EQ(keep.info.width, 0);
  }
}

TEST(JpegTest, LyingHeaderUnderTheLimitEndsWithTheData) {
  for (const bool progressive : {false, true}) {
    const Blob liar = with_size(photo({.progressive = progressive}), 20000, 8000);
    EXPECT_EQ(decode(liar, {{0, 0, 100, 8000}}).status().code(), Code::kCorrupt);
  }
}

TEST(JpegTest, ScansAreBounded) {
  const Blob jpeg = photo({.progressive = true});
  EXPECT_TRUE(decode(jpeg, {}, {.max_scans = 10}).ok());
  const Status s = decode(jpeg, {}, {.max_scans = 3}).status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_NE(s.message().find("scans"), std::string_view::npos);
}

TEST(JpegTest, StopsReadingBelowTheRegion) {
  const Blob jpeg = photo();
  const Image whole = decode(jpeg).value();
  const Box top{30, 0, 50, 16};
  EXPECT_EQ(decode(Bytes(jpeg).first(jpeg.size() / 2), {top}).value().pixels,
            cut(whole, top).pixels);
}

TEST(JpegTest, FillerBeforeTheEndMarkIsNoDamage) {
  Blob jpeg = photo({.progressive = true});
  const Image whole = decode(jpeg).value();
  jpeg.insert(jpeg.end() - 2, 5, std::byte{0x55});
  EXPECT_EQ(decode(jpeg).value().pixels, whole.pixels);
}

TEST(JpegTest, ShrinksByTheInverseTransform) {
  const Blob jpeg = fixture::encode({64, 48, 3, std::vector<uint8_t>(64 * 48 * 3, 100)}, {});
  for (const int shrink : {2, 4, 8}) {
    const auto small =
        decode(jpeg, {{0, 0, 64 / shrink, 48 / shrink}, PixelMode::kRgb, shrink}).value();
    for (const uint8_t v : small.pixels) ASSERT_NEAR(v, 100, 2);
  }
}

TEST(JpegTest, SinkEndsTheDecode) {
  class Refuse final : public ImageSink {
   public:
    Result<ImageRequest> begin(const ImageInfo&) override { return cancelled("enough"); }
    Status rows(const Rows&) override { return {}; }
  } refuse;
  EXPECT_EQ(jpeg_codec.decode(photo(), {}, refuse).code(), Code::kCancelled);
}

TEST(JpegTest, RegionOutsideIsOurBug) {
  EXPECT_EQ(decode(photo(), {{100, 0, 61, 10}}).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace headrace
