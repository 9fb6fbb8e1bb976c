// SPDX-License-Identifier: Apache-2.0
//
// FieldColumn: one field of a stretch of samples, as numbers or texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

enum class ColumnType : uint8_t { kInt, kFloat, kText };

// One of the three lists is filled; an entry of a sample without the field is 0 or "".
struct FieldColumn {
  ColumnType type = ColumnType::kInt;
  std::vector<uint8_t> present;  // 1 where the sample has the field
  std::vector<int64_t> ints = {};
  std::vector<double> floats = {};
  std::vector<std::string> texts = {};
};

}  // namespace headrace
