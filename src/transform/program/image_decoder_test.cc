// SPDX-License-Identifier: Apache-2.0
#include "base/have.h"
#if HEADRACE_HAVE_JPEG
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "codec/decoder_fixture.h"
#include "codec/jpeg_fixture.h"
#include "transform/kernels/resample.h"
#include "transform/program/program.h"

namespace headrace {
namespace {

using Blob = std::vector<std::byte>;
using Numbers = std::vector<double>;

class Any final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t> wanted) override {
    shape.assign(wanted.begin(), wanted.end());
    size_t n = 4;  // enough for every type
    for (const int64_t extent : wanted) n *= static_cast<size_t>(extent);
    bytes.assign(n, std::byte{0xee});
    return MutableBytes(bytes);
  }
  std::vector<int64_t> shape;
  Blob bytes;
};

Step step(std::string name, std::map<std::string, Param> params = {}) {
  return {std::move(name), Params(std::move(params))};
}
Step crop() {
  return step("random_resized_crop", {{"size", int64_t{32}}});
}
Step pixels() {
  return step("layout", {{"order", std::string("NHWC")}});
}

std::unique_ptr<Decoder> make(std::vector<Step> steps, Params options = {}) {
  FieldSpec spec{
      .name = "image", .what = "image", .options = std::move(options), .steps = std::move(steps)};
  return make_decoder(spec).value();
}

Any run(const Decoder& decoder, Bytes jpeg, uint64_t seed = 1) {
  Any slot;
  const Status s = decode_one(decoder, jpeg, Key(seed), slot);
  EXPECT_TRUE(s.ok()) << s.text();
  return slot;
}

Blob photo() {
  return fixture::encode(fixture::make_image(160, 120, 3, 5), {});
}

TEST(ImageDecoderTest, NoStepsGiveThePictureAsItIs) {
  const Blob jpeg = photo();
  const Any got = run(*make({pixels()}), jpeg);
  EXPECT_EQ(got.shape, (std::vector<int64_t>{120, 160, 3}));
  const fixture::Image whole = fixture::decode_all(jpeg);
  EXPECT_EQ(std::memcmp(got.bytes.data(), whole.pixels.data(), whole.pixels.size()), 0);
}

TEST(ImageDecoderTest, SameDrawsSamePictureOtherDrawsAnother) {
  const Blob jpeg = photo();
  const auto decoder = make({crop(), step("random_flip")});
  EXPECT_EQ(run(*decoder, jpeg, 1).bytes, run(*decoder, jpeg, 1).bytes);
  EXPECT_NE(run(*decoder, jpeg, 1).bytes, run(*decoder, jpeg, 2).bytes);
}

TEST(ImageDecoderTest, FieldsOfOneGroupShareTheirDraws) {
  const Blob jpeg = photo();
  FieldSpec spec{.name = "a", .what = "image", .steps = {crop()}};
  const auto a = make_decoder(spec).value();
  spec.name = "b";
  const auto b = make_decoder(spec).value();
  EXPECT_NE(run(*a, jpeg).bytes, run(*b, jpeg).bytes);
  spec.draw_group = Key(0).with("a").value();
  const auto joint = make_decoder(spec).value();
  EXPECT_EQ(run(*a, jpeg).bytes, run(*joint, jpeg).bytes);
}

TEST(ImageDecoderTest, ThreadsGiveTheSameBytes) {
  const Blob jpeg = photo();
  const auto decoder =
      make({crop(), step("random_flip"), step("normalize", {{"mean", 0.5}, {"std", 0.5}})});
  const Any alone = run(*decoder, jpeg, 7);
  std::vector<Any> got(4);
  {
    std::vector<std::jthread> threads;
    for (Any& slot : got)
      threads.emplace_back([&] {
        for (uint64_t i = 0; i < 20; ++i) slot = run(*decoder, jpeg, i == 19 ? 7 : i);
      });
  }
  for (const Any& slot : got) EXPECT_EQ(slot.bytes, alone.bytes);
}

// A resize of a resize cannot be folded: the picture between is made.
TEST(ImageDecoderTest, StepsThatDoNotFoldRunOneAfterTheOther) {
  const Blob jpeg = photo();
  const Any small = run(*make({step("resize", {{"size", Numbers{40, 50}}}), pixels()}), jpeg);
  const Any twice = run(*make({step("resize", {{"size", Numbers{40, 50}}}),
                               step("resize", {{"size", Numbers{30, 20}}}), pixels()}),
                        jpeg);
  EXPECT_EQ(twice.shape, (std::vector<int64_t>{30, 20, 3}));
  Blob source = small.bytes;
  source.resize(40 * 50 * 3 + kRowSlack);
  Blob expected(30 * 20 * 3);
  Resampler resampler;
  resampler.begin(resize_view({50, 40}, {20, 30}, Filter::kBilinear), 1, 3,
                  {.layout = Layout::kNHWC}, expected);
  resampler.rows({reinterpret_cast<const uint8_t*>(source.data()), 150, 40});
  EXPECT_EQ(std::memcmp(twice.bytes.data(), expected.data(), expected.size()), 0);
}

TEST(ImageDecoderTest, CropOfAResizeIsThatPartOfTheResize) {
  const Blob jpeg = photo();
  const Any whole = run(*make({step("resize", {{"size", int64_t{60}}}), pixels()}), jpeg);
  const Any part = run(*make({step("resize", {{"size", int64_t{60}}}),
                              step("center_crop", {{"size", int64_t{40}}}), pixels()}),
                       jpeg);
  ASSERT_EQ(whole.shape, (std::vector<int64_t>{60, 80, 3}));
  for (size_t y = 0; y < 40; ++y)
    EXPECT_EQ(std::memcmp(&part.bytes[y * 120], &whole.bytes[((y + 10) * 80 + 20) * 3], 120), 0);
}

TEST(ImageDecoderTest, FastDecodesSmallerAndLooksTheSame) {
  const Blob jpeg = fixture::encode({160, 120, 3, std::vector<uint8_t>(160 * 120 * 3, 90)}, {});
  const auto fast = make({step("resize", {{"size", Numbers{15, 20}}})}, Params({{"fast", true}}));
  const Any got = run(*fast, jpeg);
  for (size_t i = 0; i < 900; ++i) EXPECT_NEAR(static_cast<int>(got.bytes[i]), 90, 2);
}

TEST(ImageDecoderTest, GrayModeHasOneChannel) {
  const Any got = run(
      *make({step("center_crop", {{"size", int64_t{10}}})}, Params({{"mode", std::string("L")}})),
      photo());
  EXPECT_EQ(got.shape, (std::vector<int64_t>{1, 10, 10}));
}

TEST(ImageDecoderTest, DamageHasItsPlace) {
  const Blob jpeg = photo();
  Any slot;
  const Status s = decode_one(*make({crop()}), Bytes(jpeg).first(300), Key(1), slot);
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_GE(s.place().offset, 0);
  EXPECT_EQ(decode_one(*make({}), {}, Key(1), slot).code(), Code::kCorrupt);
}

TEST(ImageDecoderTest, LimitIsTheUsers) {
  Any slot;
  const Status s =
      decode_one(*make({}, Params({{"max_pixels", int64_t{1000}}})), photo(), Key(1), slot);
  EXPECT_EQ(s.message(), "JPEG: 160 x 120 pixels are more than the limit of 1000");
}

TEST(ImageDecoderTest, SlotThatRefusesEndsTheRun) {
  class Refuse final : public Slot {
   public:
    Result<MutableBytes> room(std::span<const int64_t>) override { return invalid("too large"); }
  } refuse;
  EXPECT_EQ(decode_one(*make({}), photo(), Key(1), refuse).message(), "too large");
}

}  // namespace
}  // namespace headrace
#endif
