// SPDX-License-Identifier: Apache-2.0
//
// A Format says how samples lie in bytes.  index() turns one shard into a part,
// once; after that only bytes that someone else read are looked at.  It owns no
// thread, no cache and no socket.
//
//   index(shard) ──► Part        create(sink) ──► Writer ──► a shard
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/indexed_source.h"
#include "storage/sink.h"
#include "storage/store.h"

namespace headrace {

// One shard to be indexed.
struct ShardInput {
  const Store& store;
  FileInfo info;  // its size and time go into the part
  unsigned threads = 1;
  const std::atomic<bool>* cancel = nullptr;

  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

// A sample on its way into a shard.
struct RecordValue {
  std::string_view field;
  Kind kind = Kind::kBytes;
  Storage storage = Storage::kExtent;  // kInline: int64, double or text as the index holds it
  Bytes bytes;
};

struct Record {
  std::string_view key;
  std::span<const RecordValue> values;
};

// One thread at a time.  The same records give the same bytes.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual Status append(const Record& record) = 0;
  virtual Status finish() = 0;  // and closes the sink
};

// One row of the format table: plain data, constant-initialised.
struct Format {
  std::string_view name;
  std::string_view doc;
  std::span<const std::string_view> suffixes;
  std::string_view companion = {};  // suffix of a second file, in place of the shard's suffix
  // Names of the fields it can hold, where it cannot hold any; keys are then numbers.
  std::span<const std::string_view> only = {};
  bool takes_folders = false;           // a shard may be a folder
  bool has_checksum = false;            // the format itself notices changed payload bytes
  bool has_end = true;                  // and a cut between two samples: an end mark, a count
  bool guards_lengths = true;           // and changed lengths and names
  bool (*sniff)(Bytes head) = nullptr;  // true: these first bytes can only be this format
  Result<PartPointer> (*index)(const ShardInput& shard) = nullptr;
  // Null: read-only.  `companion` is there where the format has one.
  Result<std::unique_ptr<Writer>> (*create)(std::unique_ptr<Sink> sink,
                                            std::unique_ptr<Sink> companion) = nullptr;
  OpenUnit open_unit = nullptr;  // null: no unit opens only as a whole
};

// Where the second file of a shard lies.
std::string companion_path(const Format& format, std::string_view shard);

inline constexpr size_t kSniffBytes = 512;

// An inline value as a text file would hold it: decimal digits, the shortest
// fraction that reads back, or the text itself.
std::string inline_as_text(Kind kind, Bytes bytes);

}  // namespace headrace
