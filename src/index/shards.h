// SPDX-License-Identifier: Apache-2.0
//
// ShardTable: the counted index of a data set: which shards, how many samples and
// blocks in each.  Enough for the plan; says which part resolves a sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "index/names.h"
#include "index/part.h"
#include "index/source.h"

namespace headrace {

struct ShardRow {
  std::string_view name;   // relative to the data set: goes into the fingerprint
  std::string_view place;  // the shard as the store opens it, or the root of its files
  uint64_t bytes = 0;      // 0 where the shard only names files
  uint64_t samples = 0;
  uint64_t files = 1;      // 1 where the shard is the file
  bool has_files = false;  // it names files; `place` is their root
  Hash128 file_names = {};
  std::span<const uint32_t> block_samples;
  uint64_t block_bytes = 0;  // of all its blocks
};

// Immutable after the last add(), hence thread-safe.  40 bytes and two short names a shard.
class ShardTable {
 public:
  // `shares_units`: samples of a block share units that open as a whole.
  explicit ShardTable(std::string_view format, bool shares_units = false);

  Status add(const ShardRow& row);

  size_t size() const { return bytes_.size(); }
  uint64_t samples() const { return first_sample_.back(); }
  const Blocks& blocks() const { return blocks_; }
  std::string_view name(size_t shard) const { return names_[shard]; }
  std::string_view place(size_t shard) const { return places_[shard]; }
  uint64_t bytes(size_t shard) const { return bytes_[shard]; }
  // Of all its blocks: what its values take in storage.
  uint64_t value_bytes(size_t shard) const { return value_bytes_[shard]; }
  uint64_t samples(size_t shard) const { return first_sample_[shard + 1] - first_sample_[shard]; }
  uint64_t first_sample(size_t shard) const { return first_sample_[shard]; }
  uint64_t first_file(size_t shard) const { return first_file_[shard]; }
  bool has_files(size_t shard) const { return has_files_[shard]; }
  // Precondition: there is such a sample, or file.
  size_t shard_of_sample(uint64_t sample) const;
  size_t shard_of_file(uint64_t file) const;
  // Format, names, sizes, counts and cutting rule; no places, no times.
  Hash128 fingerprint() const { return hasher_.finish(); }

 private:
  Names names_, places_;
  std::vector<uint64_t> bytes_, value_bytes_;
  std::vector<uint64_t> first_sample_{0};
  std::vector<uint64_t> first_file_{0};
  std::vector<bool> has_files_;
  Blocks blocks_;
  Hasher hasher_;
};

// Adds the fields of one shard to those of the data set.  A name that is of two kinds is an error.
Status merge_schema(const Schema& shard, Schema& all);

}  // namespace headrace
