// SPDX-License-Identifier: Apache-2.0
//
// tf.train.Example: a map from names to lists of one type, as a protocol buffer.
//
//   Example  { 1: Features }                  Feature   { 1: BytesList | 2: FloatList | 3:
//   Int64List } Features { 1: Entry, repeated }           BytesList { 1: bytes, repeated } Entry {
//   1: name, 2: Feature }          the others: { 1: numbers, packed or one by one }
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

enum class FeatureType : uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

std::string_view feature_type_name(FeatureType type);

// Borrows from the record.
struct Feature {
  std::string_view name;
  FeatureType type = FeatureType::kNone;  // kNone: a feature without a list
  Bytes list = {};                        // the list message
  uint64_t count = 0;                     // of values in it
};

// False where the record is anything but an Example with at least one feature.  `out` is
// then of no use.
bool parse_example(Bytes record, std::vector<Feature>& out);

// The values of a list that parse_example() has seen.
std::vector<Bytes> bytes_values(const Feature& feature);
int64_t first_int(const Feature& feature);
float first_float(const Feature& feature);
// The numbers of a float list where they lie, if they do so in one run.
bool float_run(const Feature& feature, Bytes& run);

// A list message of numbers as an array: int64 or float32, little-endian.  Bad bytes are kCorrupt.
Status open_number_list(FeatureType type, Bytes list, Buffer& out);

}  // namespace headrace
