// SPDX-License-Identifier: Apache-2.0
//
// RowTable: an opened unit whose values are found only once it is open (a column of a
// row group).  A Piece of length kRow names a row of it: all values of that row.
//
//   0      8        16                16+8(r+1)          +8(v+1)
//   +------+--------+-----------------+------------------+- - - - - - -+
//   | rows | values | first value of  | begin of each    | the bytes   |
//   | u64  | u64    | each row, u64   | value, u64       |             |
//   +------+--------+-----------------+------------------+- - - - - - -+
//
// Both lists have one entry more: where the last ends.  A null is a row without values.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// A look at an opened unit; cheap to make.  Checks what it touches, so that damaged bytes
// are an error.
class RowTable {
 public:
  static Result<RowTable> open(Bytes unit);

  uint64_t rows() const { return rows_; }
  // How many values the row has; 0 where there is no such row.
  uint64_t values(uint64_t row) const;
  Result<Bytes> value(uint64_t row, uint64_t v) const;

 private:
  uint64_t number(uint64_t at) const { return load_le<uint64_t>(unit_.subspan(at)); }
  uint64_t first(uint64_t row) const { return number(16 + 8 * row); }

  Bytes unit_;
  uint64_t rows_ = 0;
  uint64_t values_ = 0;
  uint64_t begins_at_ = 0;
  uint64_t bytes_at_ = 0;
};

// Makes one.  One thread at a time.
class RowTableBuilder {
 public:
  // Room for so many more; a growing one would copy what it has.
  void reserve(uint64_t rows, uint64_t values, uint64_t bytes) {
    firsts_.reserve(firsts_.size() + rows);
    begins_.reserve(begins_.size() + values);
    bytes_.reserve(bytes_.size() + bytes);
  }
  void add_value(Bytes value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    begins_.push_back(bytes_.size());
  }
  void end_row() { firsts_.push_back(begins_.size() - 1); }
  void finish(Buffer& out) const;

 private:
  std::vector<uint64_t> firsts_{0};
  std::vector<uint64_t> begins_{0};
  std::vector<std::byte> bytes_;
};

}  // namespace headrace
