// SPDX-License-Identifier: Apache-2.0
//
// Every encoder with every decoder of this build: what is written is read, in parts as well;
// cut and flipped it is refused or decoded, and never reads or writes outside.
#include "codec/encode.h"

#include <gtest/gtest.h>

#include <string>

#include "codec/keep_sink.h"

namespace headrace {
namespace {

using fixture::KeepSink;

std::vector<uint8_t> grain(int width, int height, PixelMode mode) {
  Rng rng{Key(3)};
  std::vector<uint8_t> out;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels_of(mode); ++c)
        out.push_back(
            static_cast<uint8_t>(x * 3 + y * 2 + c * 40 + static_cast<int>(rng.below(9))));
  return out;
}

struct Way {
  const ImageEncoder* encoder;
  PixelMode mode;
  bool lossless;
  std::string name() const {
    return std::string(encoder->name) + std::to_string(channels_of(mode)) + (lossless ? "l" : "");
  }
};

std::vector<Way> ways() {
  std::vector<Way> out;
  for (const ImageEncoder* encoder : all_image_encoders())
    for (const PixelMode mode : {PixelMode::kGray, PixelMode::kRgb, PixelMode::kRgba})
      for (const bool lossless : {false, true}) {
        if (encoder->name == "jpeg" && (lossless || mode == PixelMode::kRgba)) continue;
        if (encoder->name == "png" && !lossless) continue;
        out.push_back({encoder, mode, lossless});
      }
  return out;
}

class Ways : public ::testing::TestWithParam<Way> {
 protected:
  static Buffer write(int width, int height) {
    const auto pixels = grain(width, height, GetParam().mode);
    return GetParam()
        .encoder
        ->encode({pixels.data(), width, height, GetParam().mode},
                 {.quality = 95, .lossless = GetParam().lossless})
        .value();
  }
  static Result<std::vector<uint8_t>> read(Bytes file, Box box = {}) {
    KeepSink keep({box, GetParam().mode});
    HEADRACE_TRY(decode_image(file, {.max_pixels = 1 << 20}, keep));
    return std::move(keep.pixels);
  }
};

TEST_P(Ways, ReadsWhatWasWritten) {
  const Buffer file = write(61, 45);
  const auto want = grain(61, 45, GetParam().mode);
  const auto got = read(file.bytes()).value();
  ASSERT_EQ(got.size(), want.size());
  if (GetParam().lossless) {
    EXPECT_EQ(got, want);
  } else {
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) sum += std::abs(got[i] - want[i]);
    EXPECT_LT(sum / static_cast<double>(got.size()), 12);
  }
}

TEST_P(Ways, TheSamePixelsGiveTheSameBytes) {
  EXPECT_EQ(as_text(write(40, 30).bytes()), as_text(write(40, 30).bytes()));
}

TEST_P(Ways, ProbeKnowsTheSize) {
  const Buffer file = write(61, 45);
  const ImageInfo info = find_image_codec(file.bytes()).value()->probe(file.bytes()).value();
  EXPECT_EQ(info.width, 61);
  EXPECT_EQ(info.height, 45);
}

TEST_P(Ways, EveryCropIsThatPartOfTheWhole) {
  Rng rng{Key(5)};
  const int channels = channels_of(GetParam().mode);
  for (const auto& [width, height] : {std::pair{97, 61}, {33, 130}, {16, 16}, {5, 3}, {1, 1}}) {
    const Buffer file = write(width, height);
    const auto whole = read(file.bytes()).value();
    for (int i = 0; i < 60; ++i) {
      const Box box = fixture::random_box(rng, width, height);
      ASSERT_EQ(read(file.bytes(), box).value(), fixture::cut(whole, width, channels, box))
          << width << " x " << height << ": " << box.x << ' ' << box.y << ' ' << box.width << ' '
          << box.height;
    }
  }
}

TEST_P(Ways, CutAnywhereItIsCorrupt) {
  const Buffer file = write(97, 61);
  for (size_t percent = 0; percent < 100; ++percent) {
    const Bytes part = file.bytes().first(file.size() * percent / 100);
    const auto got = read(part);
    ASSERT_FALSE(got.ok()) << percent;
    EXPECT_EQ(got.status().code(), Code::kCorrupt) << percent << got.status().text();
    EXPECT_LE(got.status().place().offset, static_cast<int64_t>(part.size()));
  }
}

TEST_P(Ways, DamageIsAnErrorOrAPictureNeverACrash) {
  const Buffer good = write(61, 47);
  Rng rng{Key(11)};
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bad(good.data(), good.data() + good.size());
    for (int k = 0; k < 3; ++k)
      bad[rng.below(bad.size())] ^= std::byte{static_cast<uint8_t>(1 + rng.below(255))};
    std::atomic<uint64_t> damaged{0};
    KeepSink keep({{}, GetParam().mode});
    const Status s = decode_image(
        bad, {.max_pixels = 1 << 20, .strict = i % 2 == 0, .damaged = &damaged, .orient = true},
        keep);
    EXPECT_TRUE(s.ok() || s.code() == Code::kCorrupt || s.code() == Code::kUnsupported) << s.text();
    if (i % 2 == 0) {
      EXPECT_EQ(damaged, 0u);
    }
    // A PNG's checksums leave nothing unnoticed.
    if (GetParam().encoder->name == "png" && i % 2 == 0) {
      EXPECT_FALSE(s.ok());
    }
  }
}

TEST_P(Ways, LimitIsTheUsers) {
  KeepSink keep;
  const Status s = decode_image(write(61, 47).bytes(), {.max_pixels = 1000}, keep);
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_NE(s.message().find("61 x 47 pixels are more than the limit of 1000"),
            std::string_view::npos);
  EXPECT_EQ(keep.info.width, 0);
}

TEST_P(Ways, RegionOutsideIsOurBug) {
  EXPECT_EQ(read(write(61, 47).bytes(), {60, 0, 2, 10}).status().code(), Code::kInternal);
}

INSTANTIATE_TEST_SUITE_P(All, Ways, ::testing::ValuesIn(ways()),
                         [](const auto& row) { return row.param.name(); });

TEST(EncodeTest, RefusesWhatIsNoPicture) {
  const uint8_t pixel[8] = {};
  for (const ImageEncoder* encoder : all_image_encoders()) {
    EXPECT_EQ(encoder->encode({pixel, 0, 1}, {}).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(encoder->encode({pixel, 2, 1, PixelMode::kRgb, 5}, {}).status().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(encoder->encode({pixel, 1, 1}, {.quality = 101}).status().code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(find_image_encoder("tiff").status().code(), Code::kUnsupported);
}

TEST(PictureKindTest, KnowsWhatItCannotDecode) {
  using namespace std::string_view_literals;
  EXPECT_EQ(picture_kind(as_bytes("II*\0etc"sv)), "TIFF");
  EXPECT_EQ(picture_kind(as_bytes("RIFF....WEBPVP8 "sv)), "WebP");
  EXPECT_EQ(picture_kind(as_bytes("RIFF....WAVEfmt "sv)), "");
  EXPECT_EQ(picture_kind(as_bytes("hello"sv)), "");
  EXPECT_EQ(picture_kind({}), "");
  EXPECT_EQ(find_image_codec(as_bytes("GIF89a"sv)).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace headrace
