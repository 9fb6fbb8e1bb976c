// SPDX-License-Identifier: Apache-2.0
//
// Fields as the core takes them; those that go together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "api/inside.h"
#include "api/map.h"

namespace hr {
namespace {

headrace::Params params(const Values& values) {
  std::map<std::string, headrace::Param> out;
  for (const auto& [name, value] : values)
    out.emplace(name, std::visit([](const auto& v) { return headrace::Param(v); }, value.get()));
  return headrace::Params(std::move(out));
}

std::optional<headrace::Packing> packing(const std::string& name, const std::string& output) {
  if (name.empty()) return {};
  if (name == "dense") return headrace::Packing::kDense;
  if (name == "list") return headrace::Packing::kList;
  if (name == "padded") return headrace::Packing::kPadded;
  if (name == "ragged") return headrace::Packing::kRagged;
  raise(headrace::invalid(
      fmt::format("field '{}': packing is dense, list, padded or ragged, not '{}'", output, name)));
}

headrace::PadNumber number_of(const Value& value, const std::string& output, const char* what) {
  if (const auto* whole = std::get_if<int64_t>(&value.get())) return *whole;
  if (const auto* real = std::get_if<double>(&value.get())) return *real;
  raise(headrace::invalid(fmt::format("field '{}': {} takes a number", output, what)));
}

headrace::DefaultValue default_of(const Value& value, const std::string& output) {
  if (const auto* text = std::get_if<std::string>(&value.get())) return *text;
  const auto* list = std::get_if<std::vector<double>>(&value.get());
  if (list == nullptr) return number_of(value, output, "with_default()");
  const auto* data = reinterpret_cast<const std::byte*>(list->data());
  return headrace::DefaultArray{headrace::DType::kF64,
                                {static_cast<int64_t>(list->size())},
                                {data, data + list->size() * sizeof(double)}};
}

// A mask's step: it moves pixels, and takes the nearest.
Values mask_step(const std::string& output, const std::string& step, Values values) {
  static const std::map<std::string, std::string, std::less<>> kMoves{
      {"random_resized_crop", "filter"},
      {"resize", "filter"},
      {"random_rotation", "interpolation"},
      {"random_affine", "interpolation"},
      {"center_crop", ""},
      {"random_crop", ""},
      {"pad", ""},
      {"random_flip", ""},
      {"random_vertical_flip", ""},
      {"cast", ""},
      {"layout", ""}};
  const auto found = kMoves.find(step);
  if (found == kMoves.end())
    raise(headrace::invalid(
        fmt::format("field '{}': {} would change the class numbers of a mask; hr::image takes it",
                    output, step)));
  if (!found->second.empty()) values.insert_or_assign(found->second, Value("nearest"));
  return values;
}

bool is_picture(const Field& field) {
  return field.what == "image";
}

// Steps that draw whether they move pixels or change colours: no other picture could follow.
void check_can_follow(const std::string& name, const Field& field, size_t pictures) {
  if (!is_picture(field) && field.what != "boxes" && field.what != "points")
    raise(headrace::invalid(fmt::format(
        "hr::joint joins pictures, masks, boxes and points; '{}' is {}", name, field.what)));
  if (!field.group.empty())
    raise(headrace::invalid(fmt::format("'{}' belongs to another hr::joint already", name)));
  for (const auto& [step, values] : field.steps)
    if (pictures > 1 &&
        (step == "rand_augment" || step == "trivial_augment" || step == "auto_augment"))
      raise(headrace::invalid(fmt::format(
          "'{}': {} draws whether it moves pixels, and the other picture of the joint cannot "
          "follow; use steps that only move pixels on both, and colour steps on the image",
          name, step)));
}

}  // namespace

Fields joint(const Fields& fields) {
  std::set<std::string> names;
  size_t pictures = 0;
  for (const auto& [name, field] : fields) {
    names.insert(name);
    pictures += is_picture(field) ? 1 : 0;
  }
  if (fields.size() < 2 || pictures == 0)
    raise(headrace::invalid(
        "hr::joint joins a picture with masks, boxes or points: hr::joint({{\"image\", "
        "hr::image(\"jpg\")}, {\"mask\", hr::mask(\"png\")}})"));
  std::string group = "joint";  // as in Python: it names the draws
  for (const std::string& name : names) group += " " + name;
  Fields out = fields;
  for (auto& [name, field] : out) {
    check_can_follow(name, field, pictures);
    field.group = group;
  }
  const auto leader = std::find_if(out.begin(), out.end(),
                                   [](const auto& entry) { return is_picture(entry.second); });
  leader->second.leads = true;
  std::rotate(out.begin(), leader, leader + 1);
  return out;
}

std::vector<headrace::FieldRequest> requests_of(const Fields& fields) {
  std::vector<headrace::FieldRequest> out;
  for (const auto& [name, field] : fields) {
    headrace::FieldRequest request;
    request.output = name;
    request.field = field.field;
    request.what = field.what;
    request.options = params(field.options);
    for (const auto& [step, values] : field.steps)
      request.steps.push_back(
          {step, params(field.is_mask ? mask_step(name, step, values) : values)});
    request.packing = packing(field.packing, name);
    request.many = field.many;
    request.joint = field.group;
    request.leads = field.leads;
    if (field.pad_value) request.pad = number_of(*field.pad_value, name, "padded()");
    if (field.otherwise) request.otherwise = default_of(*field.otherwise, name);
    request.optional = field.is_optional;
    if (field.function) request.wrap_decoder = call_wrapper(name, *field.function);
    out.push_back(std::move(request));
  }
  return out;
}

}  // namespace hr
