// SPDX-License-Identifier: Apache-2.0
//
// LmdbFile: a bounded reader of LMDB's pages.  It never maps the file: whatever the bytes say,
// a walk looks at no page twice as often as the tree says it has pages, and ends.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "format/format.h"
#include "format/header_window.h"
#include "format/lmdb/page.h"

namespace headrace {

// An entry of a tree.
struct LmdbEntry {
  Bytes key;
  uint16_t flags = 0;
  uint64_t page_at = 0;   // where the page of the node begins in the file
  uint64_t value_at = 0;  // of a big value: where its run begins; check_run() first
  uint64_t value_bytes = 0;
  Bytes value;  // empty where it is big
};

// One thread at a time.
class LmdbFile {
 public:
  explicit LmdbFile(const ShardInput& shard) : shard_(shard), window_(shard) {}

  // Reads both meta pages: the later transaction wins.
  Status open();
  uint64_t page_bytes() const { return page_bytes_; }
  const LmdbTree& main() const { return meta_.main; }

  // Every entry of the tree in the order of its keys.  Bytes are good until `visit` returns.
  using Visit = std::function<Status(const LmdbEntry&)>;
  Status walk(const LmdbTree& tree, const Visit& visit);
  // That a big value's pages are there, and its own; `entry` then has the place of the value.
  Status check_run(LmdbEntry& entry);

 private:
  struct Walk;
  Status read_meta(uint64_t number, LmdbMeta& out);
  Status check_tree(const LmdbTree& tree) const;
  // That pages [number, number + count) can be there.
  Status check_page(uint64_t number, uint64_t count) const;
  Status visit_page(Walk& walk, uint64_t number, uint32_t level);
  Status visit_branch(Walk& walk, Bytes page, uint64_t number, uint32_t level);
  Status visit_leaf(Walk& walk, Bytes page, uint64_t number);
  uint64_t pages_in_file() const { return shard_.info.bytes / page_bytes_; }

  const ShardInput& shard_;
  HeaderWindow window_;
  uint64_t page_bytes_ = 0;
  LmdbMeta meta_;
};

}  // namespace headrace
