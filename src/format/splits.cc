// SPDX-License-Identifier: Apache-2.0
#include "format/splits.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/names.h"

namespace headrace {
namespace {

constexpr std::string_view kWords[] = {"train", "training", "val",  "valid",      "validation",
                                       "dev",   "test",     "eval", "evaluation", "testing"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Where the word lies in the name; length 0 where there is none.
struct Found {
  size_t begin = 0;
  size_t length = 0;
};

Found find_word(std::string_view name) {
  for (size_t begin = 0; begin < name.size();) {
    if (!is_letter(name[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < name.size() && is_letter(name[end])) ++end;
    if (is_split_name(name.substr(begin, end - begin))) return {begin, end - begin};
    begin = end;
  }
  return {};
}

}  // namespace

bool is_split_name(std::string_view name) {
  const std::string lower = lower_case(name);
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

std::string split_in_name(std::string_view name) {
  const Found found = find_word(name);
  return std::string(name.substr(found.begin, found.length));
}

std::string without_split(std::string_view name) {
  const Found found = find_word(name);
  if (found.length == 0) return std::string(name);
  std::string_view before = name.substr(0, found.begin);
  std::string_view after = name.substr(found.begin + found.length);
  const auto is_joint = [](char c) { return c == '_' || c == '-' || c == '.' || c == '/'; };
  if (!after.empty() && is_joint(after.front()))
    after.remove_prefix(1);
  else if (!before.empty() && is_joint(before.back()))
    before.remove_suffix(1);
  return std::string(before).append(after);
}

Status which_split(std::string_view path, std::span<const std::string> splits) {
  std::string names;
  for (const std::string& split : splits) names.append(names.empty() ? "" : ", ").append(split);
  return invalid(
      fmt::format("it holds the splits {}: say which, as in '{}#{}'", names, path, splits.front()));
}

}  // namespace headrace
