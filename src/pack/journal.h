// SPDX-License-Identifier: Apache-2.0
//
// Journal: what of a pack is done, on disk.  While it goes on, a line per finished
// shard in DST/headrace.unfinished; in the end DST/headrace.json with all of them.
//
//   {"headrace": 1, "pack": "<plan>", "format": "tar", "samples": 1000, "fields": […], "shards": [
//   {"name": "shard-000000.tar", "samples": 500, "bytes": 123, "crc32c": "0123abcd"},
//   …
//   ]}
//
// A shard that has a second file (a RecordIO's .idx) has ', "companion": {"name": …, "bytes": …,
// "crc32c": …}' at the end of its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/status.h"
#include "format/format.h"
#include "storage/store.h"

namespace headrace {

struct PackedFile {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  bool operator==(const PackedFile&) const = default;
};

struct PackedShard {
  PackedFile file = {};
  uint64_t samples = 0;
  std::optional<PackedFile> companion = {};
  bool operator==(const PackedShard&) const = default;
};

std::string shard_line(const PackedShard& shard);
std::optional<PackedShard> parse_shard_line(std::string_view line);
// All lines of either file that parse, in their order.
std::vector<PackedShard> parse_shard_lines(std::string_view text);

// Thread-safe.
class Journal {
 public:
  // Looks at what is in `folder`: nothing, this plan unfinished, or this plan finished.
  // Anything else is kInvalidArgument and names it.  Removes temporary files that a killed
  // run of this plan left.
  static Result<Journal> open(const std::string& folder, Hash128 plan, std::string head);

  bool finished() const { return finished_; }
  // Shards that an earlier run finished and whose files, companions too, have their sizes.
  const std::vector<PackedShard>& done() const { return done_; }

  Status add(const PackedShard& shard);
  // `shards` in order.  The manifest appears, then the unfinished mark goes.
  Status finish(const std::vector<PackedShard>& shards);

 private:
  Journal(std::string folder, std::string head)
      : folder_(std::move(folder)), head_(std::move(head)) {}
  void read_lines(const Store& store, const std::string& text);

  std::string folder_;
  std::string head_;  // first line of both files
  std::string text_;  // of the unfinished one, as far as it is known here
  bool finished_ = false;
  std::vector<PackedShard> done_;
  std::unique_ptr<Mutex> mu_ = std::make_unique<Mutex>();  // one line at a time
};

}  // namespace headrace
