// SPDX-License-Identifier: Apache-2.0
//
// Fields as Arrow columns, for whoever writes them: a type for each field, and rows gathered
// until they are taken as arrays.
//
//   number             its own type, int64 or double where the source has none
//   text, JSON         string                        any other bytes   binary
//   array [?, 3]       list of fixed-size lists      tokens            list
//   several values     a list of the above
//
// A column's metadata say what kind of field it was.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/arrow/abi.h"
#include "format/format.h"

namespace headrace {

struct ParquetColumnType {
  std::string leaf;            // a format string
  std::vector<int64_t> lists;  // above it, outermost first; kVaries, or a size
};

// kUnsupported, with the name, for a field that no column holds.
Result<ParquetColumnType> arrow_column_type(const Field& field);

// Gathers the values of one field.  One thread at a time.
class ParquetColumn {
 public:
  static Result<ParquetColumn> make(const Field& field);

  const Field& field() const { return field_; }
  const ParquetColumnType& type() const { return type_; }
  // The values of one row, none for a null.
  Status add(std::span<const RecordValue> values);
  uint64_t bytes() const { return values_.size() + 4 * (offsets_.size() + list_.size()); }

  ArrowOwned<ArrowSchema> schema() const;
  // The rows so far; the column is empty after it.
  ArrowOwned<ArrowArray> take();

 private:
  explicit ParquetColumn(const Field& field) : field_(field) {}
  bool is_bytes() const { return type_.leaf == "u" || type_.leaf == "z"; }
  bool is_list() const { return !type_.lists.empty(); }
  Status add_value(const RecordValue& value);
  Status add_array(Bytes value);
  Status add_int(const RecordValue& value);
  Status add_float(const RecordValue& value);
  Status add_bytes(Bytes value);
  void add_null();
  ArrowOwned<ArrowArray> elements(size_t level, int64_t length);

  Field field_;
  ParquetColumnType type_;
  size_t element_bytes_ = 0;  // of an array: of all that one step of its outermost extent holds
  int64_t rows_ = 0;
  int64_t nulls_ = 0;
  std::vector<bool> present_;
  std::vector<int32_t> list_{0};     // ends of the outermost lists, where they vary
  std::vector<int32_t> offsets_{0};  // ends of texts and binaries
  std::vector<std::byte> values_;
};

// A struct of these, named as the fields are.
ArrowOwned<ArrowSchema> arrow_struct(std::vector<ArrowOwned<ArrowSchema>> columns);
ArrowOwned<ArrowArray> arrow_struct(std::vector<ArrowOwned<ArrowArray>> columns, int64_t rows);

}  // namespace headrace
