// SPDX-License-Identifier: Apache-2.0
#include "format/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/names.h"

namespace headrace {
namespace {

std::string prefix_of(std::string_view path, std::span<const std::string_view> suffixes) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string lower = lower_case(name);
  size_t longest = 0;
  for (const std::string_view suffix : suffixes)
    if (lower.ends_with(suffix)) longest = std::max(longest, suffix.size());
  name.remove_suffix(longest);
  return name.empty() ? std::string() : std::string(name) + '/';
}

}  // namespace

NumberedKeys::NumberedKeys(std::string_view path, std::span<const std::string_view> suffixes)
    : prefix_(prefix_of(path, suffixes)) {}

const std::string& NumberedKeys::at(uint64_t number) {
  key_ = fmt::format("{}{:08}", prefix_, number);
  return key_;
}

Status after_last_good(const Status& status, std::string_view path, uint64_t good,
                       std::string_view last_key) {
  if (status.code() != Code::kCorrupt) return status.in_file(path);
  const std::string after =
      good == 0 ? "no sample is good before it"
                : fmt::format("the last good sample is '{}', number {}", last_key, good - 1);
  Status full = corrupt(fmt::format("{}; {}", status.message(), after));
  if (status.place().offset >= 0) full = full.at(static_cast<uint64_t>(status.place().offset));
  return full.in_file(path);
}

Status not_as_indexed(std::string_view what) {
  return corrupt(
      fmt::format("this {} is not the one that was indexed: the file has changed; remove its index "
                  "(.hridx) and open it again",
                  what));
}

Kind kind_of_magic(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return Kind::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Kind::kPng;
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP") && bytes.size() >= 12)
    return Kind::kWebp;
  return Kind::kBytes;
}

}  // namespace headrace
