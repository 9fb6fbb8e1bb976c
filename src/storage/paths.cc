// SPDX-License-Identifier: Apache-2.0
#include "storage/paths.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr std::string_view kMark = "://";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_of_scheme(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

// How many bytes of the path say where everything begins: "/", "s3://", or nothing.
size_t root_bytes(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  if (!scheme.empty()) return scheme.size() + kMark.size();
  return path.starts_with('/') ? 1 : 0;
}

}  // namespace

std::string_view scheme_of(std::string_view path) {
  const size_t mark = path.find(kMark);
  if (mark == std::string_view::npos || mark == 0 || !is_letter(path[0])) return {};
  const std::string_view scheme = path.substr(0, mark);
  return std::all_of(scheme.begin(), scheme.end(), is_of_scheme) ? scheme : std::string_view();
}

bool is_absolute(std::string_view path) {
  return root_bytes(path) > 0;
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty() || is_absolute(name)) return std::string(name);
  std::string out;
  out.reserve(folder.size() + 1 + name.size());
  out.append(folder);
  if (!folder.ends_with('/')) out.push_back('/');
  return out.append(name);
}

std::string parent_folder(std::string_view path) {
  const size_t root = root_bytes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash < root) return std::string(path.substr(0, root));
  return std::string(path.substr(0, slash));
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace headrace
