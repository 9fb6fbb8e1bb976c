// SPDX-License-Identifier: Apache-2.0
//
// What the formats share whose shard is one record after the other: keys where the
// records have none, and errors that name the last good sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/schema.h"

namespace headrace {

// Of a shard whose records have no names: "train-00017/00000042", the file's name without the
// suffix and the record's number, so that keys stay apart when shards are packed into one.
class NumberedKeys {
 public:
  NumberedKeys(std::string_view path, std::span<const std::string_view> suffixes);
  // Valid until the next call.
  const std::string& at(uint64_t number);

 private:
  const std::string prefix_;
  std::string key_;
};

// A kCorrupt status with how far the shard `path` was good; others only get the file.
Status after_last_good(const Status& status, std::string_view path, uint64_t good,
                       std::string_view last_key);

// Of a part of a file ("record", "shard") that is not as the index has it.
Status not_as_indexed(std::string_view what);

// Of a value whose name does not tell: pictures by their first 12 bytes, else kBytes.
inline constexpr uint64_t kMagicBytes = 12;
Kind kind_of_magic(std::string_view bytes);

}  // namespace headrace
