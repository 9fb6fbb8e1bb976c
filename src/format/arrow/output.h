// SPDX-License-Identifier: Apache-2.0
//
// A column on its way into an Arrow file: values of a field are collected until a batch is full.
//
//   bytes, pictures, npy            binary
//   text, json                      string
//   int, float                      their type; int64 and double where none is known
//   array of fixed shape            fixed_size_list, one in the other for each axis
//   array [?, …]                    list of numbers, or of such fixed_size_lists
//   tokens, other arrays            list of numbers
//   several values                  a list of these
#pragma once

#include <vector>

#include "format/arrow/columns.h"
#include "format/format.h"

namespace headrace {

// The buffers of a batch, one after the other, each at a multiple of 64.
struct ArrowBatchOutput {
  ArrowBatch batch = {};
  std::vector<std::byte> body = {};

  void add_node(uint64_t length, uint64_t nulls);
  void add_buffer(Bytes bytes);
};

// One thread at a time.
class ArrowOutput {
 public:
  explicit ArrowOutput(const Field& field);

  // The column's fields at the end of the schema.
  void describe(ArrowFileSchema& schema) const;
  // The values of one row; none is a null.  All are of this field.
  Status add_row(std::span<const RecordValue> values);
  // Hands the rows over and is empty again.
  void take(ArrowBatchOutput& out);

 private:
  Status add(const RecordValue& value);
  Status add_number(const RecordValue& value);
  Status add_array(const RecordValue& value);
  void add_nothing();
  void put(Bytes bytes) { data_.insert(data_.end(), bytes.begin(), bytes.end()); }
  void take_leaf(ArrowBatchOutput& out);

  const Field field_;
  ArrowForm form_ = ArrowForm::kBlob;
  DType stored_ = DType::kI64;  // of numbers, as Arrow has them
  uint64_t width_ = 1;          // numbers of a kFixed, of each item of a kVarying
  std::vector<int64_t> axes_;   // that the width has, outermost first; none where it is 1

  // Of the batch at hand.
  std::vector<std::byte> valid_;  // a bit for each row
  uint64_t rows_ = 0;
  uint64_t nulls_ = 0;
  uint64_t values_ = 0;
  std::vector<int32_t> lists_{0};    // where several values are: where each row's begin
  std::vector<int32_t> offsets_{0};  // of kBlob and kVarying
  std::vector<std::byte> data_;
};

}  // namespace headrace
