// SPDX-License-Identifier: Apache-2.0
//
// The items of LitData's chunks on their way into an index, whether they lie in the file or in
// zstd frames of it (litdata.cc has the layout).
#pragma once

#include <vector>

#include "format/format.h"
#include "format/litdata/index.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {

// A stretch of the file that opens as a whole, and where its items lie in what it opens to.
struct Frame {
  uint64_t offset = 0;
  uint64_t stored = 0;
  uint64_t decoded = 0;
  bool has_offsets = false;
  std::vector<Extent> items = {};
};

// One thread at a time.
class LitItems {
 public:
  LitItems(const ShardInput& shard, NumberedKeys& keys);

  // `stamp`: of the file that the index was read from.
  void begin(const LitIndex& index, FolderStamp stamp);
  // An item that lies in the file itself.
  Status add(const Extent& item, const ReadBytes& read) { return add(item, read, nullptr, 0); }
  // All items of a frame, which is opened to `raw`.
  Status add_frame(const Frame& frame, Bytes raw);

  uint64_t count() const { return part_.samples(); }
  Result<PartPointer> finish() { return part_.finish(); }

 private:
  struct Table {
    uint32_t encoding = 0;
    uint64_t bytes = 0;
  };
  // `frame`: that the item is number `row` of, or null.
  Status add(const Extent& item, const ReadBytes& read, const Frame* frame, uint64_t row);
  Status add_number(const StoredColumn& column, uint32_t field, Extent at, const ReadBytes& read);

  const ShardInput& input_;
  NumberedKeys& keys_;
  PartBuilder part_;
  const LitIndex* index_ = nullptr;
  std::vector<uint32_t> fields_;  // of each leaf
  std::vector<Table> tables_;     // of each leaf of the frame at hand
  std::vector<Extent> places_;
  std::vector<ColumnValue> values_;
};

// Format::decode_unit.
Status open_lit_unit(const Store& store, const std::string& path, const Unit& unit, Bytes stored,
                     Buffer& decoded);

}  // namespace headrace
