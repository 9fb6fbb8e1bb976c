// SPDX-License-Identifier: Apache-2.0
//
// The rows of an Arrow batch: for each leaf the places of its values, or its numbers.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "format/arrow/body.h"
#include "format/arrow/columns.h"

namespace headrace {

// One value: a number where the leaf's field is inline, else its place.
struct ArrowValue {
  PartValue place = {};
  int64_t integer = 0;
  double real = 0;
};

// What the numbers of a dictionary-encoded column stand for.
struct ArrowDictionary {
  ArrowFileSchema schema = {};  // of the values
  ArrowLeaf leaf = {};
  std::vector<ArrowValue> values = {};
  std::vector<bool> is_null = {};
  bool is_there = false;
};
using ArrowDictionaries = std::map<int64_t, ArrowDictionary>;

// Refilled for each batch: keeps its memory.  One thread at a time.
class ArrowRows {
 public:
  ArrowRows(const ArrowFileSchema& schema, ArrowBody& body, const ArrowDictionaries& dictionaries)
      : schema_(schema), body_(body), dictionaries_(dictionaries), held_(schema.fields.size()) {}

  // Reads what the leaves need of the batch that the body has open.
  Status load(std::span<const ArrowLeaf> leaves);
  // The values of the row; none where it is null.
  Status values(const ArrowLeaf& leaf, uint64_t row, std::vector<ArrowValue>& out);
  // Of the leaf that is the key; empty where it is null.
  Status key(const ArrowLeaf& leaf, uint64_t row, std::string_view& out) const;
  // Of the units in this batch that open as a whole, opened.
  uint64_t shared_bytes() const { return shared_bytes_; }
  // Rows that were taken as null because an item of their list was.
  uint64_t lists_with_nulls() const { return lists_with_nulls_; }

 private:
  // What is known of a field's values in this batch.
  struct Held {
    bool is_loaded = false;  // the nulls and offsets
    bool has_nulls = false;
    Buffer nulls = {};
    Buffer words = {};  // offsets, numbers, views or numbers into a dictionary
    ArrowExtent data = {};
    std::vector<ArrowExtent> more = {};  // of a view
    Buffer text = {};                    // of the key
  };

  Status load_leaf(const ArrowLeaf& leaf);
  Status load_nulls(uint32_t node);
  Status load_offsets(uint32_t node);
  Status load_blob(const ArrowLeaf& leaf);
  Status load_array(const ArrowLeaf& leaf);
  Status load_numbers(uint32_t node);
  Status locate(uint32_t node, uint32_t number, ArrowExtent& out);
  bool is_null(uint32_t node, uint64_t at) const;
  bool has_null(uint32_t node, uint64_t begin, uint64_t end) const;
  // The items of a list, or the bytes of a value: between two offsets, at most `limit`.
  Status range(uint32_t node, uint64_t at, uint64_t limit, uint64_t& begin, uint64_t& end) const;
  Status items(uint32_t list, uint64_t row, uint64_t& begin, uint64_t& end) const;

  // One value; `out` gets none where it is null.
  Status add_value(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out);
  Status add_known(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const;
  Status add_blob(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const;
  Status add_view(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const;
  Status add_array(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out);
  Status add_number(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const;

  const ArrowFileSchema& schema_;
  ArrowBody& body_;
  const ArrowDictionaries& dictionaries_;
  std::vector<Held> held_;  // by field
  uint64_t shared_bytes_ = 0;
  uint64_t lists_with_nulls_ = 0;
};

}  // namespace headrace
