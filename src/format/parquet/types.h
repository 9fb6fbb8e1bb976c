// SPDX-License-Identifier: Apache-2.0
//
// What becomes of Arrow's types: the leaves of a schema, and the field each of them is.
//
//   bool, integers, dates, times     a number in the index       floats   likewise
//   string                           text                        binary   bytes; pictures by a look
//   struct {bytes, path}             `name` and `name.path`
//   any other struct                 `name.child` for each child
//   list of numbers                  an array [?]; of fixed-size lists of n: [?, n]
//   fixed-size list of numbers       an array [n]
//   list of string or binary         several values
//   list of lists of numbers         several arrays
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "format/arrow/abi.h"
#include "index/schema.h"

namespace headrace {

inline constexpr std::string_view kArrowKey = "__key__";         // the column that holds keys
inline constexpr std::string_view kArrowKind = "headrace.kind";  // metadata of a column

// A column of the deepest level, numbered from left to right: what Parquet stores.
struct ParquetLeaf {
  Field field;
  uint32_t leaf = 0;
  bool is_key = false;
  bool by_inspection = false;          // bytes that may be pictures: the first value tells
  std::optional<uint32_t> names = {};  // the leaf that holds their file names
};

struct ParquetLeaves {
  std::vector<ParquetLeaf> fields;
  std::vector<std::string> notices;  // columns that no field can hold
  uint32_t leaves = 0;               // of all columns
};

// `schema` is a struct of the columns.
Result<ParquetLeaves> arrow_leaves(const ArrowSchema& schema);

struct ParquetNumber {
  DType dtype;
  bool is_bool = false;  // a bit each
};
// Of the format strings of numbers, and of dates and times, which are counts.
std::optional<ParquetNumber> arrow_number(std::string_view format);
// Of string, binary, their large, fixed and view forms.
bool arrow_is_binary(std::string_view format);
bool arrow_is_text(std::string_view format);
// The size of a fixed-size list or binary, "+w:3"; nothing where there is none.
std::optional<int64_t> arrow_fixed_size(std::string_view format);
bool arrow_is_list(std::string_view format);  // of any sort

// The value of a key in a column's metadata; "" where it is not there or does not parse.
std::string arrow_metadata(const ArrowSchema& schema, std::string_view key);

}  // namespace headrace
