// SPDX-License-Identifier: Apache-2.0
//
// A pickled dict as samples: arrays and equally long lists row by row, or the dict as one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/pickle/numpy.h"
#include "index/part_builder.h"

namespace headrace {

inline constexpr uint32_t kPickleLatin1 = 1;  // encoding: bytes that the file holds as text

// Shapes of array fields, as far as they are known: kVaries where values differ.  Of shapes that
// turn out to be wrong `changed` is set, and the part is then worth nothing.
struct PickleShapes {
  std::map<std::string, std::vector<int64_t>, std::less<>> known;
  bool changed = false;
};

// An array by itself is the field `data`.
void name_bare_array(Pickle& pickle);

// Is it data, and not a list of files with their labels?
bool is_pickle_data(const Pickle& pickle);

// One pickle, all in memory.  One thread at a time.
class PickleData {
 public:
  // `file` is its number in the part's table, and 0 where it is the shard.
  PickleData(const Pickle& pickle, Bytes bytes, uint32_t file, PickleShapes& shapes,
             PartBuilder& part)
      : pickle_(pickle), bytes_(bytes), file_(file), shapes_(shapes), part_(part) {}

  // Whether it says keys of rows (kPickleKeys).
  bool has_keys() const;
  // How many rows it can be read as; else what stands against it.
  Result<uint64_t> count_rows() const;
  Status add_rows(uint64_t rows, std::string_view prefix);
  Status add_whole(std::string_view key);

 private:
  struct Entry {
    std::string name;
    const PickleNode* value;
  };
  // What the cells of one field come from.
  struct Column {
    enum class From { kArrayRows, kNumbers, kTexts, kList };
    From from = From::kList;
    std::string name = {};
    const PickleNode* value = nullptr;
    uint32_t field = 0;
    PickleArray array = {};
    std::vector<std::byte> numbers = {};  // little-endian
    PartValue place = {};                 // of all rows
  };
  Result<std::vector<Entry>> entries() const;
  Result<std::string> key_of(const PickleNode* keys, uint64_t row, std::string_view prefix) const;
  const PickleNode& item(const PickleNode& container, uint64_t i) const {
    return pickle_.nodes[pickle_.items[container.items][i]];
  }
  uint64_t length_of(const PickleNode& node) const;
  Status open_array(const Entry& entry, Column& out);
  Status open_list(const Entry& entry, Column& out);
  Status add_cell(const Column& column, uint64_t row);
  void add_scalar(uint32_t field, const PickleNode& node);
  Status add_array(const std::string& name, const PickleNode& node);
  Status add_number(const std::string& name, const PickleArray& array);
  Status add_value(const Entry& entry);
  PartValue place(Bytes data, std::string_view encoded) const;
  Result<uint32_t> scalar_field(const std::string& name, std::span<const PickleNode* const> values);
  Result<uint32_t> array_field(const std::string& name, const NpyHeader& header);

  const Pickle& pickle_;
  const Bytes bytes_;
  const uint32_t file_;
  PickleShapes& shapes_;
  PartBuilder& part_;
};

}  // namespace headrace
