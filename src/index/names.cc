// SPDX-License-Identifier: Apache-2.0
#include "index/names.h"

namespace headrace {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_packed(std::string_view extension) {
  const std::string lower = lower_case(extension);
  return lower == "gz" || lower == "bz2" || lower == "xz" || lower == "zst";
}

}  // namespace

NameParts split_stem(std::string_view path) {
  const size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || dot <= base) return {path, {}};
  if (is_packed(path.substr(dot + 1))) {
    // "a.nii.gz", not "a.1.gz": an extension begins with a letter.
    const size_t inner = path.rfind('.', dot - 1);
    if (inner != std::string_view::npos && inner > base && is_letter(path[inner + 1])) dot = inner;
  }
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace headrace
