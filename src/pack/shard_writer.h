// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/format.h"
#include "pack/journal.h"
#include "pack/sample_reader.h"

namespace headrace {

// A shard that is being written, and its companion: counted and checksummed on the way.
// One thread at a time.  Destroyed without finish(): nothing is left behind.
class ShardWriter {
 public:
  static Result<std::unique_ptr<ShardWriter>> open(const Format& format, const std::string& folder,
                                                   const std::string& name, uint64_t samples,
                                                   const Schema& schema);

  Status append(const HeldRecord& record);
  // The shard as it lies there, durable.
  Result<PackedShard> finish();

 private:
  ShardWriter(std::string folder, const Schema& schema)
      : folder_(std::move(folder)), schema_(schema) {}

  const std::string folder_;
  const Schema schema_;
  PackedShard shard_;
  bool rewritten_ = false;  // the checksum is not that of the file any more
  bool companion_rewritten_ = false;
  std::unique_ptr<Writer> writer_;
  std::vector<RecordValue> values_;
};

// CRC-32C of a whole file.
Result<uint32_t> checksum_of(const Store& store, const std::string& path);

}  // namespace headrace
