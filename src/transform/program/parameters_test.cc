// SPDX-License-Identifier: Apache-2.0
#include "transform/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace {
namespace {

const ParamInfo* find(const std::vector<ParamInfo>& list, std::string_view name) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const ParamInfo& p) { return p.name == name; });
  return at == list.end() ? nullptr : &*at;
}

std::vector<ParamInfo> of_step(std::string_view name) {
  return parameters_of(*find_transform(name).value());
}

TEST(ParametersTest, every_parameter_of_every_step_has_a_name_and_a_type_once) {
  for (const TransformEntry* step : all_transforms()) {
    const std::vector<ParamInfo> list = parameters_of(*step);
    ASSERT_FALSE(list.empty()) << step->name;
    for (const ParamInfo& p : list) {
      EXPECT_FALSE(p.type.empty()) << step->name << " " << p.name;
      EXPECT_EQ(std::count_if(list.begin(), list.end(),
                              [&](const ParamInfo& other) { return other.name == p.name; }),
                1)
          << step->name << " " << p.name;
    }
  }
}

TEST(ParametersTest, what_must_be_given_has_no_default) {
  const std::vector<ParamInfo> crop = of_step("random_resized_crop");
  ASSERT_NE(find(crop, "size"), nullptr);
  EXPECT_FALSE(find(crop, "size")->fallback.has_value());
  EXPECT_EQ(find(crop, "scale")->fallback, Param(std::vector<double>{0.08, 1.0}));
  EXPECT_EQ(find(crop, "filter")->fallback, Param(std::string("bilinear")));
}

TEST(ParametersTest, a_word_beside_numbers_is_one_parameter) {
  const ParamInfo value = *find(of_step("random_erasing"), "value");
  EXPECT_EQ(value.type, "numbers");
  EXPECT_EQ(value.words, std::vector<std::string>{"random"});
  EXPECT_EQ(value.fallback, Param(std::vector<double>{0}));
}

TEST(ParametersTest, options_of_fields_and_steps_of_arrays) {
  EXPECT_EQ(find(options_of("image"), "mode")->fallback, Param(std::string("RGB")));
  EXPECT_EQ(find(options_of("boxes"), "min_area")->fallback, Param(1.0));
  EXPECT_EQ(find(parameters_of_array_step("random_flip"), "p")->fallback, Param(0.5));
  EXPECT_EQ(parameters_of_array_step("cast").size(), 1U);
}

TEST(ParametersTest, nothing_is_noted_without_a_recorder) {
  Params params({{"p", 0.25}});
  EXPECT_EQ(ParamRecorder::current(), nullptr);
  EXPECT_EQ(params.take_number("p", 0.5), 0.25);
}

}  // namespace
}  // namespace headrace
