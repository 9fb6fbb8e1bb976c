// SPDX-License-Identifier: Apache-2.0
//
// A Format says how samples lie in bytes.  index() turns one shard into a part,
// once; after that only bytes that someone else read are looked at.  It owns no
// thread, no cache and no socket.
//
//   index(shard) ──► Part        create(output) ──► Writer ──► a shard
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/indexed_source.h"
#include "storage/kept_blocks.h"
#include "storage/sink.h"
#include "storage/store.h"

namespace headrace {

// One shard to be indexed.
struct ShardInput {
  const Store& store;
  FileInfo info;  // its size and time go into the part; info.part: which part of it is meant
  unsigned threads = 1;
  const std::atomic<bool>* cancel = nullptr;
  unsigned blocks_ahead = 8;         // of a server, that are streamed at a time
  const KeptBlocks* kept = nullptr;  // which get what was streamed; may be null

  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

// A sample on its way into a shard.  Values of one field follow one another.
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

// Where a shard goes, and what is known of it before the first sample.
struct ShardOutput {
  std::unique_ptr<Sink> file = nullptr;
  std::unique_ptr<Sink> companion = nullptr;  // there where Format::companion is
  Schema schema = {};    // of all records: names, kinds, types; `many` is exact
  uint64_t samples = 0;  // how many will come
};

// One thread at a time.  The same records give the same bytes.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual Status append(const Record& record) = 0;
  virtual Status finish() = 0;  // and closes the sinks: the companion first, then the shard
};

// A shard as pack wrote it.
struct WrittenShard {
  std::string name;  // in its folder
  uint64_t samples = 0;
  uint64_t bytes = 0;
};

// One row of the format table: plain data, constant-initialised.
struct Format {
  std::string_view name;
  std::string_view doc;
  std::span<const std::string_view> suffixes;
  std::string_view companion = {};  // suffix of a second file, in place of the shard's suffix
  // Names of the fields it can hold, where it cannot hold any; keys are then numbers.
  std::span<const std::string_view> only = {};
  bool takes_folders = false;  // a shard may be a folder
  bool takes_parts = false;    // `path#part` means something
  bool holds_gaps = true;      // written, a sample may lack a field that others have
  bool unique_keys = false;    // written, a shard holds no two samples of one key
  bool sorts_keys = false;     // samples come to its writer in the order of their keys
  bool rewrites = false;       // its writer goes back in its file: no object store can take that
  bool needs_python = false;   // works only where the Python module brought a library
  bool has_checksum = false;   // the format itself notices changed payload bytes
  bool has_end = true;         // and a cut between two samples: an end mark, a count
  bool guards_lengths = true;  // and changed lengths and names
  bool (*sniff)(Bytes head) = nullptr;  // true: these first bytes can only be this format
  // The shards of a folder that is this format's as a whole (an index.json, a data.mdb), in
  // order: files in it, or the folder itself where that is one shard.  Empty: not its own.
  Result<std::vector<std::string>> (*claim)(const Store& store, const std::string& folder,
                                            std::span<const FileInfo> entries) = nullptr;
  Result<PartPointer> (*index)(const ShardInput& shard) = nullptr;
  Result<std::unique_ptr<Writer>> (*create)(ShardOutput out) = nullptr;  // null: read-only
  // Before the first shard: can it hold these fields?  The error names the one it cannot, and
  // what to drop.  Null: it can hold any.
  Status (*can_hold)(const Schema& schema) = nullptr;
  // After the last shard: files that describe all of them.  The same bytes every time.
  Status (*finish_folder)(const std::string& folder,
                          std::span<const WrittenShard> shards) = nullptr;
  OpenUnit decode_unit = nullptr;  // null: no unit opens only as a whole
  // Units open as a whole only in shards that are compressed, whose blocks hold more bytes than
  // the file has: of others nobody need look at the part.
  bool opens_if_compressed = false;
};

// Where the second file of a shard lies.
std::string companion_path(const Format& format, std::string_view shard);

inline constexpr size_t kSniffBytes = 512;
inline constexpr std::string_view kPackManifest = "headrace.json";  // beside the shards of a pack

// An inline value as a text file would hold it: decimal digits, the shortest
// fraction that reads back, or the text itself.
std::string inline_as_text(Kind kind, Bytes bytes);

}  // namespace headrace
