// SPDX-License-Identifier: Apache-2.0
//
// What a sample consists of: fields with a name and a kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// What the bytes of a value are.  Decoders are chosen by it; the numbers are on disk.
enum class Kind : uint8_t {
  kBytes = 0,
  kJpeg = 1,
  kPng = 2,
  kWebp = 3,
  kNpy = 4,
  kJson = 5,
  kText = 6,
  kInt = 7,    // decimal digits when stored as text, int64 little-endian when inline
  kFloat = 8,  // likewise, double
  kTokens = 9,
  kArray = 10,
};

std::string_view kind_name(Kind kind);
// By the extension a file or a tar member carries, lower case without the dot: "jpg" is kJpeg.
Kind kind_of_extension(std::string_view extension);

// Where values of the field lie.
enum class Storage : uint8_t {
  kExtent = 0,  // bytes of a unit
  kInline = 1,  // bytes in the index itself (labels of class folders)
};

struct Field {
  std::string name;
  Kind kind = Kind::kBytes;
  Storage storage = Storage::kExtent;
  bool operator==(const Field&) const = default;
};

using Schema = std::vector<Field>;

}  // namespace headrace
