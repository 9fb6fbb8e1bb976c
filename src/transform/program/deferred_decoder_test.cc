// SPDX-License-Identifier: Apache-2.0
#include "base/have.h"
#if HEADRACE_HAVE_JPEG
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/guard.h"
#include "base/sanitized.h"
#include "codec/decoder_fixture.h"
#include "codec/jpeg_fixture.h"
#include "transform/kernels/resample.h"
#include "transform/program/deferred_decoder.h"
#include "transform/program/program.h"

namespace headrace {
namespace {

using Blob = std::vector<std::byte>;
using Numbers = std::vector<double>;

class Kept final : public Slot {
 public:
  explicit Kept(DType dtype) : item_(size_of(dtype)) {}
  Result<MutableBytes> room(std::span<const int64_t> wanted) override {
    shape.assign(wanted.begin(), wanted.end());
    size_t n = item_;
    for (const int64_t extent : wanted) n *= static_cast<size_t>(extent);
    bytes.assign(n, std::byte{0xee});
    return MutableBytes(bytes);
  }
  std::vector<int64_t> shape;
  Blob bytes;

 private:
  const size_t item_;
};

Step step(std::string name, std::map<std::string, Param> params = {}) {
  return {std::move(name), Params(std::move(params))};
}

FieldSpec picture(std::vector<Step> steps, std::map<std::string, Param> options = {}) {
  return {.name = "image",
          .what = "image",
          .options = Params(std::move(options)),
          .steps = std::move(steps)};
}

std::unique_ptr<Decoder> make(std::vector<Step> steps, bool defer) {
  return make_decoder(picture(std::move(steps), {{"defer", defer}})).value();
}

std::string refusal(std::vector<Step> steps, std::map<std::string, Param> options = {}) {
  options.emplace("defer", true);
  return make_decoder(picture(std::move(steps), std::move(options))).status().text();
}
bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// As a later stage does it: the whole picture, then the record's view of it.
Kept render(const DeferredSpec& spec, Bytes value) {
  const DeferredValue parts = split_deferred(value).value();
  fixture::Image whole = fixture::decode_all(parts.stored);
  EXPECT_EQ(whole.width, parts.picture.source_width);
  EXPECT_EQ(whole.height, parts.picture.source_height);
  whole.pixels.resize(whole.pixels.size() + kRowSlack);
  const View view = view_of(parts.picture);
  const PixelOutput store{.dtype = spec.result.dtype,
                          .layout = spec.channels_first ? Layout::kNCHW : Layout::kNHWC,
                          .scale = spec.scale,
                          .bias = spec.bias};
  const int channels = channels_of(spec.mode);
  Kept out(spec.result.dtype);
  const MutableBytes room = out.room(store.shape(view.result(), channels)).value();
  Resampler resampler;
  const Box part = resampler.begin(view, 1, channels, store, room);
  const size_t stride = static_cast<size_t>(whole.width) * 3;
  resampler.rows(
      {whole.pixels.data() + static_cast<size_t>(part.y) * stride + static_cast<size_t>(part.x) * 3,
       stride, part.height});
  return out;
}

TEST(DeferredDecoder, the_record_gives_the_pixels_of_the_direct_path) {
  const std::vector<std::vector<Step>> programs = {
      {},
      {step("random_resized_crop", {{"size", int64_t{32}}}), step("random_flip"),
       step("normalize", {{"mean", Numbers{0.4, 0.5, 0.6}}, {"std", Numbers{0.2, 0.3, 0.4}}})},
      {step("resize", {{"size", int64_t{60}}, {"filter", std::string("bicubic")}}),
       step("center_crop", {{"size", int64_t{40}}}), step("random_vertical_flip"),
       step("layout", {{"order", std::string("NHWC")}})},
      {step("pad", {{"padding", int64_t{9}}, {"padding_mode", std::string("reflect")}}),
       step("random_crop", {{"size", Numbers{100, 90}}}), step("random_flip"),
       step("cast", {{"dtype", std::string("f16")}})},
      {step("center_crop", {{"size", Numbers{200, 180}}})}};
  const Blob jpeg = fixture::encode(fixture::make_image(160, 120, 3, 5), {});
  for (size_t p = 0; p < programs.size(); ++p) {
    const auto direct = make(programs[p], false);
    const auto deferred = make(programs[p], true);
    ASSERT_NE(deferred->deferred(), nullptr);
    EXPECT_EQ(deferred->deferred()->result, direct->output());
    EXPECT_EQ(deferred->output(), (TensorSpec{DType::kU8, {kVaries}}));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Kept want(direct->output().dtype);
      Kept value(DType::kU8);
      ASSERT_TRUE(decode_one(*direct, jpeg, Key(seed), want).ok()) << p;
      ASSERT_TRUE(decode_one(*deferred, jpeg, Key(seed), value).ok()) << p;
      ASSERT_EQ(value.bytes.size(), sizeof(DeferredPicture) + jpeg.size());
      const Kept got = render(*deferred->deferred(), value.bytes);
      EXPECT_EQ(got.shape, want.shape);
      ASSERT_EQ(got.bytes, want.bytes) << "program " << p << " seed " << seed;
    }
  }
}

TEST(DeferredDecoder, steps_that_need_pixels_are_refused_by_name) {
  const Step crop = step("random_resized_crop", {{"size", int64_t{32}}});
  EXPECT_TRUE(says(refusal({crop, step("gaussian_blur", {{"kernel_size", int64_t{3}}})}),
                   "field 'image', step 2 gaussian_blur: it changes pixels"))
      << refusal({crop, step("gaussian_blur", {{"kernel_size", int64_t{3}}})});
  EXPECT_TRUE(says(refusal({step("resize", {{"size", int64_t{60}}}), crop}),
                   "step 2 random_resized_crop: one step may resample with defer=true"));
  EXPECT_TRUE(says(refusal({crop}, {{"fast", true}}), "fast=true and defer=true"));
  EXPECT_TRUE(says(refusal({crop}, {{"orient", true}}), "orient=true and defer=true"));
  EXPECT_TRUE(says(refusal({crop}, {{"variants", int64_t{2}}}), "variants and defer=true"));
  EXPECT_TRUE(says(refusal({crop}, {{"shape", Numbers{8, 8, 3}}}), "lie as elements"));
}

// In a process of its own, which may have no more than it has once there is room for the pixels. It
// begins anew: what other tests freed would be memory enough.
TEST(DeferredDecoder, a_picture_that_there_is_no_memory_for_is_no_longer_under_way) {
#ifdef HEADRACE_SANITIZED
  GTEST_SKIP() << "addresses cannot be limited";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  class LastRoom final : public Slot {
   public:
    Result<MutableBytes> room(std::span<const int64_t> wanted) override {
      bytes_.resize(static_cast<size_t>(wanted[0]));
      const rlimit none{1 << 20, RLIM_INFINITY};
      if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
      return MutableBytes(bytes_);
    }

   private:
    Blob bytes_;
  };
  const Blob jpeg = fixture::encode(fixture::make_image(6000, 40, 3, 5), {});
  const auto late = std::make_shared<LateWork>();
  late->share = std::make_shared<DecodeShare>(~0u, ShareLimits{.least_waiting = 0, .threads = 1});
  FieldSpec spec = picture({step("resize", {{"size", Numbers{3000, 5000}}})});
  spec.late = late;
  const auto decoder = make_decoder(spec).value();
  ASSERT_NE(decoder->deferred(), nullptr);
  const auto decode_with_little = [&] {
    LastRoom slot;
    const Status status = guard([&] { return decode_one(*decoder, jpeg, Key(0), slot); });
    const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &all) != 0) _exit(3);
    if (status.code() != Code::kExhausted) _exit(4);
    // The next one may be the CPU's again.
    _exit(late->share->leave_to_device(JpegSampling::k420) ? 1 : 0);
  };
  EXPECT_EXIT(decode_with_little(), ::testing::ExitedWithCode(0), "");
}

TEST(DeferredDecoder, what_is_no_picture_or_too_large_is_an_error) {
  const auto deferred = make({}, true);
  Kept slot(DType::kU8);
  EXPECT_EQ(decode_one(*deferred, as_bytes("no picture"), Key(0), slot).code(), Code::kCorrupt);
  const Blob jpeg = fixture::encode(fixture::make_image(160, 120, 3, 5), {});
  const auto small =
      make_decoder(picture({}, {{"defer", true}, {"max_pixels", int64_t{1000}}})).value();
  EXPECT_EQ(decode_one(*small, jpeg, Key(0), slot).code(), Code::kCorrupt);
  EXPECT_EQ(split_deferred(Bytes(jpeg).first(10)).status().code(), Code::kCorrupt);
}

TEST(DeferredDecoder, boxes_follow_a_picture_that_is_yet_to_be_decoded) {
  const std::vector<Step> steps = {step("random_resized_crop", {{"size", int64_t{32}}}),
                                   step("random_flip")};
  FieldSpec boxes{.name = "boxes", .what = "boxes"};
  boxes.draw_group = Key(0).with("j").value();
  boxes.joint = Joint::kFollows;
  const auto follow = make_decoder(boxes).value();
  const Blob jpeg = fixture::encode(fixture::make_image(160, 120, 3, 5), {});
  const Bytes inputs[] = {jpeg, as_bytes("[[10, 20, 150, 110]]")};
  Blob first;
  for (const bool defer : {false, true}) {
    FieldSpec lead = picture(steps, {{"defer", defer}});
    lead.draw_group = boxes.draw_group;
    lead.joint = Joint::kLeads;
    SampleContext context;
    context.begin(Key(5), 0, 0, 0, {});
    Kept pixels(DType::kF32);
    Kept moved(DType::kF32);
    ASSERT_TRUE(make_decoder(lead).value()->run({&inputs[0], 1}, context, pixels).ok());
    ASSERT_TRUE(follow->run({&inputs[1], 1}, context, moved).ok());
    if (!defer) first = moved.bytes;
    EXPECT_EQ(moved.bytes, first);
    EXPECT_FALSE(moved.bytes.empty());
    // Another sample has left nothing yet.
    context.begin(Key(5), 0, 1, 0, {});
    EXPECT_EQ(follow->run({&inputs[1], 1}, context, moved).code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace headrace
#endif
