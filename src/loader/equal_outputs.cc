// SPDX-License-Identifier: Apache-2.0
#include "loader/equal_outputs.h"

#include <fmt/format.h>

namespace headrace {
namespace {

std::string_view packing_name(Packing packing) {
  constexpr std::string_view kNames[] = {"dense", "padded", "ragged", "a list"};
  return kNames[static_cast<size_t>(packing)];
}

}  // namespace

const FieldRequest* request_of(const LoaderSource& source, const std::string& output) {
  for (const FieldRequest& request : source.requests)
    if (request.output == output) return &request;
  return nullptr;
}

Status check_names(const std::vector<LoaderSource>& sources) {
  const auto lacks = [](const LoaderSource& has, const LoaderSource& other) -> Status {
    for (const FieldRequest& request : has.requests)
      if (request_of(other, request.output) == nullptr)
        return invalid(fmt::format(
            "source '{}' gives '{}' and source '{}' does not: the sources of a blend give the same "
            "outputs; open each with fields of these names",
            has.name, request.output, other.name));
    return {};
  };
  for (size_t k = 1; k < sources.size(); ++k) {
    HEADRACE_TRY(lacks(sources.front(), sources[k]));
    HEADRACE_TRY(lacks(sources[k], sources.front()));
  }
  return {};
}

Status check_equal(const std::string& first, const ColumnSpec& a, const std::string& other,
                   const ColumnSpec& b) {
  const auto differ = [&](std::string_view in_a, std::string_view in_b) {
    return invalid(
        fmt::format("field '{}' is {} in source '{}' and {} in source '{}': the sources "
                    "of a blend give equal outputs",
                    a.name, in_a, first, in_b, other));
  };
  if (a.value != b.value) return differ(a.value.text(), b.value.text());
  if (a.many != b.many)
    return differ(a.many ? "many values" : "one value", b.many ? "many values" : "one value");
  if (a.packing != b.packing) return differ(packing_name(a.packing), packing_name(b.packing));
  if (!(a.pad == b.pad)) return differ("padded by one value", "padded by another");
  if (a.pad_multiple != b.pad_multiple || a.pad_left != b.pad_left)
    return differ("padded in one way", "padded in another");
  return {};
}

}  // namespace headrace
