// SPDX-License-Identifier: Apache-2.0
#include "transform/program/program.h"

#include <gtest/gtest.h>

#include <array>

#include "codec/decoder_fixture.h"
#include "transform/transform.h"

namespace headrace {
namespace {

using Numbers = std::vector<double>;

Step step(std::string name, std::map<std::string, Param> params = {}) {
  return {std::move(name), Params(std::move(params))};
}

FieldSpec image(std::vector<Step> steps) {
  return {.name = "image", .what = "image", .steps = std::move(steps)};
}

Step normalize() {
  return step("normalize", {{"mean", 0.5}, {"std", 0.5}});
}

std::string error(const FieldSpec& spec) {
  return std::string(make_decoder(spec).status().message());
}

TEST(ProgramTest, InfersTypeAndShapeBeforeDataMoves) {
  const auto crop = step("random_resized_crop", {{"size", int64_t{224}}});
  const auto shape = [](std::vector<Step> steps) {
    return make_decoder(image(std::move(steps))).value()->output().text();
  };
  EXPECT_EQ(shape({}), "u8[3,?,?]");
  EXPECT_EQ(shape({crop}), "u8[3,224,224]");
  EXPECT_EQ(shape({crop, step("random_flip"), normalize()}), "f32[3,224,224]");
  EXPECT_EQ(shape({crop, normalize(), step("cast", {{"dtype", std::string("bf16")}})}),
            "bf16[3,224,224]");
  EXPECT_EQ(shape({crop, step("layout", {{"order", std::string("NHWC")}})}), "u8[224,224,3]");
  EXPECT_EQ(shape({step("resize", {{"size", int64_t{256}}})}), "u8[3,?,?]");
  EXPECT_EQ(shape({step("resize", {{"size", Numbers{10, 20}}})}), "u8[3,10,20]");
}

TEST(ProgramTest, ModeGivesTheChannels) {
  FieldSpec spec = image({step("center_crop", {{"size", int64_t{8}}})});
  spec.options = Params({{"mode", std::string("L")}});
  EXPECT_EQ(make_decoder(spec).value()->output().text(), "u8[1,8,8]");
}

TEST(ProgramTest, MistakesNameTheFieldAndTheStep) {
  const auto crop = step("random_resized_crop", {{"size", int64_t{224}}});
  EXPECT_EQ(error(image({crop, step("random_flip", {{"prob", 0.5}})})),
            "field 'image', step 2 random_flip: unknown parameter 'prob'; it takes p");
  EXPECT_EQ(error(image({step("randomflip")})),
            "field 'image', step 1 randomflip: no such step; did you mean random_flip?");
  EXPECT_EQ(error(image({step("sharpen")})),
            "field 'image', step 1 sharpen: no such step; there are random_resized_crop, resize, "
            "center_crop, random_crop, pad, random_flip, random_vertical_flip, random_rotation, "
            "random_affine, color_jitter, random_grayscale, gaussian_blur, "
            "random_adjust_sharpness, random_solarize, random_posterize, random_autocontrast, "
            "random_equalize, random_invert, random_erasing, rand_augment, trivial_augment, "
            "auto_augment, normalize, cast, layout");
  EXPECT_EQ(error(image({normalize(), crop})),
            "field 'image', step 2 random_resized_crop: must come before normalize, which is part "
            "of the last pass");
}

TEST(ProgramTest, OptionsAreChecked) {
  FieldSpec spec = image({});
  spec.options = Params({{"mode", std::string("CMYK")}});
  EXPECT_EQ(error(spec), "field 'image': no mode 'CMYK'; there are RGB, L, RGBA, P");
  spec.options = Params({{"fats", true}});
  EXPECT_EQ(error(spec),
            "field 'image': unknown parameter 'fats'; it takes mode, fast, strict, orient, layout, "
            "shape, variants, max_pixels, defer");
}

TEST(ProgramTest, OtherFieldsTakeNoSteps) {
  FieldSpec spec{.name = "label", .what = "scalar", .steps = {step("resize")}};
  EXPECT_EQ(error(spec), "field 'label', step 1 resize: a scalar takes dtype=, and no steps");
  spec.steps.clear();
  spec.what = "sound";
  EXPECT_EQ(error(spec),
            "field 'label': nothing decodes 'sound'; there are image, boxes, points, scalar, "
            "array, tokens, text, bytes, json");
}

class OneElement final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t>) override { return MutableBytes(bytes); }
  std::array<std::byte, 8> bytes{};
};

TEST(ProgramTest, ScalarsComeFromTextAndFromInlineBytes) {
  FieldSpec spec{.name = "label", .what = "scalar"};
  OneElement slot;
  auto text = make_decoder(spec).value();
  EXPECT_EQ(text->output().text(), "i64[]");
  ASSERT_TRUE(decode_one(*text, as_bytes("17\n"), Key(0), slot).ok());
  EXPECT_EQ(load_le<int64_t>(slot.bytes), 17);

  spec.stored = Stored::kInlineInt;
  std::array<std::byte, 8> raw{};
  store_le<int64_t>(raw, 99);
  ASSERT_TRUE(decode_one(*make_decoder(spec).value(), raw, Key(0), slot).ok());
  EXPECT_EQ(load_le<int64_t>(slot.bytes), 99);

  spec.stored = Stored::kInlineFloat;
  EXPECT_EQ(make_decoder(spec).value()->output().text(), "f64[]");
  spec.options = Params({{"dtype", std::string("f32")}});
  EXPECT_EQ(make_decoder(spec).value()->output().text(), "f32[]");
  spec.options = Params({{"dtype", std::string("f33")}});
  EXPECT_EQ(error(spec).substr(0, 37), "field 'label': there is no type 'f33'");
}

TEST(ProgramTest, TextAndBytesVaryInLength) {
  for (const char* what : {"text", "bytes"}) {
    FieldSpec spec{.name = "caption", .what = what};
    EXPECT_EQ(make_decoder(spec).value()->output().text(), "u8[?]");
  }
}

TEST(TransformTableTest, EveryRowHasANameAndADoc) {
  for (const TransformEntry* t : all_transforms()) {
    EXPECT_FALSE(t->name.empty());
    EXPECT_FALSE(t->doc.empty());
    EXPECT_EQ(find_transform(t->name).value(), t);
    EXPECT_FALSE(t->make(Params({{"no_such_parameter", 1.0}})).ok());
  }
}

}  // namespace
}  // namespace headrace
