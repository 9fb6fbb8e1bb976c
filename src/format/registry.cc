// SPDX-License-Identifier: Apache-2.0
//
// The format table.  No static initialisers, no macros in the format files: a name
// listed in formats.inc without a <name>_format is a link error.

#include "format/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/inflate.h"
#include "index/names.h"

namespace headrace {

#define HEADRACE_FORMAT(name) extern const Format name##_format;
#include "format/formats.inc"
#undef HEADRACE_FORMAT

std::span<const Format* const> all_formats() {
#define HEADRACE_FORMAT(name) &name##_format,
  static constexpr const Format* kAll[] = {
#include "format/formats.inc"
  };
#undef HEADRACE_FORMAT
  return kAll;
}

namespace {

// The command that unpacks what begins so; "" where it is not packed as a whole.
std::string_view unpacks(Bytes head) {
  using namespace std::string_view_literals;
  const std::string_view text = as_text(head);
  if (is_gzip(head)) return "gzip";
  if (text.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (text.starts_with("\xfd"
                       "7zXZ\0"sv))
    return "xz";
  if (text.starts_with("BZh"sv)) return "bzip2";
  if (text.starts_with("\x04\x22\x4d\x18"sv)) return "lz4";
  return "";
}

bool is_json_list(Bytes head) {
  const std::string_view text = as_text(head);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '[';
}

std::string known_formats() {
  std::string known;
  for (const Format* format : all_formats())
    known.append(known.empty() ? "" : " ").append(format->name);
  return known;
}

}  // namespace

Result<const Format*> find_format(std::string_view name) {
  for (const Format* format : all_formats())
    if (format->name == name) return format;
  return invalid(fmt::format("no format named '{}'; known: {}", name, known_formats()));
}

Result<const Format*> guess_format(Bytes head, std::string_view path) {
  for (const Format* format : all_formats())
    if (format->sniff(head)) return format;
  const std::string lower = lower_case(path);
  for (const Format* format : all_formats())
    if (std::any_of(format->suffixes.begin(), format->suffixes.end(),
                    [&lower](std::string_view suffix) { return lower.ends_with(suffix); }))
      return format;
  if (const std::string_view command = unpacks(head); !command.empty())
    return unsupported(
               fmt::format(
                   "the file is compressed with {}, and headrace does not read it so; unpack "
                   "it first: {} -dk '{}'",
                   command, command, path))
        .in_file(path);
  if (as_text(head).starts_with("MATLAB 5.0 MAT-file"))
    return unsupported(
               "a .mat file of MATLAB before 7.3, which headrace does not read; in MATLAB: "
               "save(…, '-v7.3'), or in Python: np.savez('x.npz', **scipy.io.loadmat('x.mat'))")
        .in_file(path);
  if (lower.ends_with(".json") && is_json_list(head))
    return invalid(fmt::format("it is one JSON list, and tables are read a record a line; write it "
                               "so: jq -c '.[]' {} > {}l",
                               path, path))
        .in_file(path);
  return invalid(fmt::format("neither its bytes nor its name tell a format; known: {}; unpack or "
                             "convert it, or teach headrace the format with hr.register_format",
                             known_formats()))
      .in_file(path);
}

std::string companion_path(const Format& format, std::string_view shard) {
  const std::string lower = lower_case(shard);
  for (const std::string_view suffix : format.suffixes)
    if (lower.ends_with(suffix)) {
      shard.remove_suffix(suffix.size());
      break;
    }
  return std::string(shard).append(format.companion);
}

std::string inline_as_text(Kind kind, Bytes bytes) {
  if (kind == Kind::kInt && bytes.size() == 8) return fmt::format("{}", load_le<int64_t>(bytes));
  if (kind == Kind::kFloat && bytes.size() == 8) return fmt::format("{}", load_le<double>(bytes));
  return std::string(as_text(bytes));
}

}  // namespace headrace
