// SPDX-License-Identifier: Apache-2.0
//
// Manifest: the counted index of a whole data set in one small file, made ahead of
// time; the parts lie one after the other in a second file and are read as samples
// come up.  10^6 shards start with one read of some 30 MB.
//
//   DIR/headrace.manifest
//   0       8         12       16            24
//   +-------+---------+--------+-------------+- - - - - - - - - - - - - - - - - - - -+
//   | magic | version | crc32c | total bytes | format | schema | shards | blocks     |
//   | 8     | u32     | [16,…) | u64         |                                       |
//   +-------+---------+--------+-------------+- - - - - - - - - - - - - - - - - - - -+
//   shard: name (front-coded), bytes, samples, files, [hash of the names u64 u64 if has_files],
//          bytes of its part, checksum of its part (u32), blocks, bytes of the blocks
//   DIR/headrace.parts: the parts of all shards (part.h), in order
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/indexed_source.h"
#include "storage/sink.h"
#include "storage/store.h"
#include "storage/store_options.h"

namespace headrace {

inline constexpr uint32_t kManifestVersion = 1;
inline constexpr std::string_view kManifestName = "headrace.manifest";
inline constexpr std::string_view kPartsName = "headrace.parts";

struct ManifestShard {
  std::string name;    // relative to the data set
  uint64_t bytes = 0;  // 0 where the shard only names files
  uint64_t samples = 0;
  uint64_t files = 1;
  bool has_files = false;
  Hash128 file_names = {};
  uint64_t part_bytes = 0;
  uint32_t part_checksum = 0;
  uint64_t blocks = 0;
  uint64_t block_bytes = 0;
};

struct Manifest {
  std::string format;
  Schema schema;
  std::vector<ManifestShard> shards;
  std::vector<uint32_t> block_samples;  // of all shards, one after the other
};

std::vector<std::byte> encode_manifest(const Manifest& manifest);
Result<Manifest> parse_manifest(Bytes bytes);

// What a manifest says of a part, and a source of a part without one.
ManifestShard describe_part(const Part& part, std::string_view name);
std::vector<uint32_t> block_samples(const Part& part);
// It as a row of a source's table.  Refers to all three.
ShardRow table_row(const ManifestShard& shard, std::string_view place,
                   std::span<const uint32_t> block_samples);

// Writes an index folder: parts in order, then the manifest.  One thread at a time.
class IndexWriter {
 public:
  // `folder` is there, or of a store that has none.
  static Result<std::unique_ptr<IndexWriter>> create(const std::string& folder, std::string format,
                                                     const StoreOptions& options = {});
  Status add(const Part& part, std::string_view name);
  Status finish();

 private:
  IndexWriter(std::string folder, const StoreOptions& options, std::unique_ptr<Sink> parts)
      : folder_(std::move(folder)), options_(options), parts_(std::move(parts)) {}
  const std::string folder_;
  const StoreOptions options_;
  std::unique_ptr<Sink> parts_;
  Manifest manifest_;
};

// The parts of an index folder, by shard number, opened from the parts file as asked for.
// Each is checked against the manifest.
std::function<Result<PartPointer>(size_t)> part_loader(std::shared_ptr<const Store> store,
                                                       const std::string& folder,
                                                       const Manifest& manifest);

}  // namespace headrace
