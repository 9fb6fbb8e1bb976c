// SPDX-License-Identifier: Apache-2.0
//
// How a name becomes a key and a field: of a tar member by the conventions of
// WebDataset (the first dot), of a file up to the last dot; and Names, many strings in one block of
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// "a.b/cat.seg.PNG" is key "a.b/cat" and extension "seg.PNG".
struct NameParts {
  std::string_view key;        // the path up to the first dot of the base name
  std::string_view extension;  // what follows that dot; "" where there is none
};

inline NameParts split_name(std::string_view path) {
  const size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = path.find('.', base);
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Of files: up to the last dot, as people name them: "cat.0.jpg" is key "cat.0" and extension
// "jpg".  What a compressed file holds belongs to its extension: "scan.nii.gz" is "nii.gz".
NameParts split_stem(std::string_view path);

// ASCII only: an extension with other letters stays as written.
inline std::string lower_case(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Immutable after the last add(), hence thread-safe.  A million short names cost a
// million times (length + 8) bytes, and two allocations.
class Names {
 public:
  void add(std::string_view name) {
    all_ += name;
    ends_.push_back(all_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(all_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string all_;
  std::vector<uint64_t> ends_;
};

}  // namespace headrace
