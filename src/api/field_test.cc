// SPDX-License-Identifier: Apache-2.0
#include "headrace/field.h"

#include <gtest/gtest.h>

#include "api/inside.h"
#include "transform/parameters.h"

namespace hr {
namespace {

// What the engine takes of a step that leaves everything out that may be: its own defaults.
Values defaults_of(const std::string& step) {
  Values out;
  for (const headrace::TransformEntry* entry : headrace::all_transforms())
    for (const headrace::ParamInfo& p :
         entry->name == step ? headrace::parameters_of(*entry) : std::vector<headrace::ParamInfo>())
      if (p.fallback)
        out.emplace(p.name, std::visit([](const auto& v) { return Value(v); }, *p.fallback));
  return out;
}

std::vector<double> as_list(const Value& value) {
  if (const auto* list = std::get_if<std::vector<double>>(&value.get())) return *list;
  if (const auto* real = std::get_if<double>(&value.get())) return {*real};
  if (const auto* whole = std::get_if<int64_t>(&value.get())) return {static_cast<double>(*whole)};
  if (const auto* flag = std::get_if<bool>(&value.get())) return {*flag ? 1.0 : 0.0};
  return {};
}

TEST(FieldSteps, have_the_defaults_of_the_engine) {
  const Field all = image("jpg")
                        .random_resized_crop(224)
                        .random_crop({20, 30})
                        .pad(2)
                        .random_flip()
                        .random_rotation(10)
                        .random_affine({-5, 5})
                        .color_jitter()
                        .gaussian_blur(3)
                        .random_erasing()
                        .rand_augment()
                        .trivial_augment()
                        .auto_augment();
  EXPECT_EQ(all.steps.size(), 12u);
  for (const auto& [name, values] : all.steps) {
    for (const auto& [parameter, wanted] : defaults_of(name)) {
      const auto given = values.find(parameter);
      if (given == values.end()) {
        EXPECT_TRUE(as_list(wanted).empty()) << name << ' ' << parameter;
      } else if (std::holds_alternative<std::string>(wanted.get())) {
        EXPECT_EQ(given->second.get(), wanted.get()) << name << ' ' << parameter;
      } else {
        EXPECT_EQ(as_list(given->second), as_list(wanted)) << name << ' ' << parameter;
      }
    }
  }
}

TEST(FieldSteps, take_what_is_given_and_nothing_else) {
  const Field field = image("jpg")
                          .random_resized_crop({224, 200}, {.scale = {0.2, 1}, .filter = "bicubic"})
                          .color_jitter({.hue = 0.1})
                          .random_erasing({.value = "random"})
                          .normalize(kImageNet);
  const Values& crop = field.steps[0].second;
  EXPECT_EQ(as_list(crop.at("size")), (std::vector<double>{224, 200}));
  EXPECT_EQ(as_list(crop.at("scale")), (std::vector<double>{0.2, 1}));
  EXPECT_EQ(std::get<std::string>(crop.at("filter").get()), "bicubic");
  EXPECT_EQ(field.steps[1].second.count("brightness"), 0u);
  EXPECT_EQ(as_list(field.steps[1].second.at("hue")), (std::vector<double>{0.1}));
  EXPECT_EQ(std::get<std::string>(field.steps[2].second.at("value").get()), "random");
  EXPECT_EQ(as_list(field.steps[3].second.at("mean")), (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(requests_of({{"image", field}})[0].steps.size(), 4u);
}

}  // namespace
}  // namespace hr
