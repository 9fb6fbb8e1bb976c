// SPDX-License-Identifier: Apache-2.0
//
// A zip archive of stored members: the same members give the same bytes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "index/schema.h"
#include "index/varint.h"
#include "storage/sink.h"

namespace headrace {

// One thread at a time.  Holds the directory, some 60 bytes and a name a member.
class ZipWriter {
 public:
  explicit ZipWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  // `parts` one after the other are its bytes.  Names beyond 64 KiB, and those with a NUL, which
  // other readers cut there, are refused.
  Status add(std::string_view name, Kind kind, std::span<const Bytes> parts);
  // The directory; closes the sink.
  Status finish();

 private:
  Status append(Bytes data);

  std::unique_ptr<Sink> sink_;
  uint64_t at_ = 0;
  uint64_t entries_ = 0;
  ByteVector directory_;
};

}  // namespace headrace
