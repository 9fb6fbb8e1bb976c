// SPDX-License-Identifier: Apache-2.0
#include "format/npz/names.h"

#include <utility>

namespace headrace {
namespace {

constexpr std::pair<char, std::string_view> kEscapes[] = {{'%', "%25"}, {'/', "%2F"}, {'[', "%5B"}};
constexpr std::string_view kDotEscape = "%2E";  // of ".npy" at the end of a field's name
constexpr std::string_view kArraySuffix = ".npy";

std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    char c = text.front();
    size_t length = 1;
    for (const auto& [plain, escape] : kEscapes)
      if (text.starts_with(escape)) c = plain, length = escape.size();
    if (text.starts_with(kDotEscape)) c = '.', length = kDotEscape.size();
    out += c;
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

NpzName split_npz_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  std::string_view field = name.substr(slash + 1);
  const size_t bracket = field.rfind('[');
  if (bracket != std::string_view::npos && field.ends_with(']')) {
    const std::string_view digits = field.substr(bracket + 1, field.size() - bracket - 2);
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
      field = field.substr(0, bracket);
  }
  return {name.substr(0, slash), unescaped(field)};
}

std::string npz_field_name(std::string_view field) {
  std::string out;
  const bool ends_as_array = field.ends_with(kArraySuffix);
  for (size_t i = 0; i < field.size(); ++i) {
    std::string_view as = field.substr(i, 1);
    for (const auto& [plain, escape] : kEscapes)
      if (field[i] == plain) as = escape;
    if (ends_as_array && i == field.size() - kArraySuffix.size()) as = kDotEscape;
    out += as;
  }
  return out;
}

}  // namespace headrace
