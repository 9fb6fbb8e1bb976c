// SPDX-License-Identifier: Apache-2.0
//
// What a sample consists of: fields with a name and a kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

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
std::optional<Kind> kind_named(std::string_view name);
// By the extension a file or a tar member carries, lower case without the dot: "jpg" is kJpeg.
Kind kind_of_extension(std::string_view extension);

// Whether files of this extension are pictures, each a sample of its own: what Pillow opens and
// people keep pictures in.  "seg.png" is one: the last part decides.
bool is_picture_extension(std::string_view extension);

// Where values of the field lie.
enum class Storage : uint8_t {
  kExtent = 0,  // bytes of a unit
  kInline = 1,  // bytes in the index itself (labels of class folders)
};

// What all values of one name have in common.
struct Field {
  std::string name;
  Kind kind = Kind::kBytes;
  Storage storage = Storage::kExtent;
  // Of a number: as the data hold it (an inline one is int64 or double all the same); of
  // kArray and kTokens: of each element, which lie little-endian, last axis fastest.
  std::optional<DType> dtype = {};
  // Of kArray: kVaries where the sample decides, at most once: its length tells.
  std::vector<int64_t> shape = {};
  // Some sample has several values: then each sample's are a list.
  bool many = false;

  // `many` is no part of what a field is: one shard may have pairs and another not.
  bool operator==(const Field& o) const {
    return name == o.name && kind == o.kind && storage == o.storage && dtype == o.dtype &&
           shape == o.shape;
  }
};

// Whether shards of one data set may hold the two under one name: equal, or bytes of any picture,
// which decoders look at one by one.
bool same_values(const Field& a, const Field& b);

// "jpeg", "array i32[?,3]", "int u8".
std::string field_text(const Field& field);

using Schema = std::vector<Field>;

}  // namespace headrace
