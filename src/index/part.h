// SPDX-License-Identifier: Apache-2.0
//
// Part: the resolved index of one shard, packed.  A shard is a file that holds
// samples (a tar), or a folder or list that names files.  Nothing is materialised
// for the whole shard: one look-up unpacks one group of 64 samples.
//
//   0       8         12        16           24            32
//   +-------+---------+---------+------------+-------------+- - - - -+- - - - - +- - - -+- - - - -+
//   | magic | version | crc32c  | head bytes | total bytes | head    | sample   | path  | groups, |
//   | 8     | u32     | [16, h) | u64 = h    | u64         | fields  | dir.     | dir.  | packed  |
//   +-------+---------+---------+------------+-------------+- - - - -+- - - - - +- - - -+- - - - -+
//                                                                                       h total
//   directory entry, one per 64 samples and one per 64 paths:
//   +-----------------+----------------+
//   | u64 offset - h  | crc32c of it   |     a group ends where the next begins
//   +-----------------+----------------+
//   sample group: varint bytes of the values, values, keys      (part_group.cc)
//   path group:   front-coded paths: varint shared, varint rest, rest
//
// Little-endian.  The same bytes are a sidecar file of their own and a stretch of
// an index' parts file.  Made by PartBuilder, which is the only writer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/status.h"
#include "index/schema.h"
#include "storage/store.h"

namespace headrace {

inline constexpr uint32_t kPartVersion = 3;
inline constexpr uint64_t kGroupSamples = 64;
inline constexpr uint64_t kMaxFields = 4096;  // more are a mistake: dots in file names, say

// The rule that cuts shards into blocks; its number is part of the fingerprint.
// Rule 1: consecutive samples until 4 MiB; a plain file counts 128 KiB, whatever its size.
inline constexpr uint32_t kCuttingRule = 1;
inline constexpr uint64_t kBlockBytes = uint64_t{4} << 20;
inline constexpr uint64_t kNominalFileBytes = uint64_t{128} << 10;
inline constexpr uint32_t kMaxBlockSamples = 1u << 20;

struct PartBlock {
  uint32_t samples = 0;
  uint64_t bytes = 0;
  bool operator==(const PartBlock&) const = default;
};

struct FolderStamp {
  std::string path;  // relative to the shard; "" is the shard itself
  int64_t modified_ns = 0;
  bool operator==(const FolderStamp&) const = default;
};

// What a part says of its shard as a whole.
struct PartHead {
  std::string format;
  uint64_t shard_bytes = 0;  // size and time of the shard when it was indexed
  int64_t modified_ns = 0;
  std::vector<FolderStamp> folders = {};  // of a folder: all listed; of a file: what describes it
  Schema schema = {};
  bool has_files = false;     // values lie in files of a table; else in the shard itself
  bool whole_files = false;   // each value is all of its file
  bool own_keys = false;      // of whole files: keys are stored, not made of their paths
  bool has_openings = false;  // some units open only as a whole
  uint64_t align = 1;         // an extent is expected at round_up(end of the last, align) + gap
  uint64_t gap = 0;
  uint64_t samples = 0;
  uint64_t files = 0;
  std::vector<std::vector<uint32_t>> shapes = {};  // pieces per field of the common samples
  std::vector<PartBlock> blocks = {};
  Hash128 names = {};                     // of all paths, where there are files
  std::vector<std::string> classes = {};  // names of the class numbers, where there are some
  std::vector<std::string> notices = {};  // what a user should hear about this shard
};

// One value of one field of one sample, unpacked; or a piece of one.
struct PartValue {
  uint64_t offset = 0;  // in the file; of an inline value: in PartGroup::inline_bytes
  uint64_t stored = 0;  // kWholeFile: all of the file
  uint64_t decoded = 0;
  uint64_t begin = 0;            // of the value in its opened unit
  uint64_t length = kWholeFile;  // kWholeFile: to the end of it; kRow: `begin` is a row
  uint32_t encoding = 0;
  bool continues = false;  // the value of the piece before goes on; only with has_openings
  uint32_t file = 0;       // of the part's table; 0 where the shard is the file
};

// 64 samples, unpacked.  Refilled: keeps its memory.
struct PartGroup {
  std::vector<PartValue> values;
  std::vector<uint32_t> first;  // field f of sample s has values [first[s*F+f], first[s*F+f+1])
  std::vector<std::byte> inline_bytes;
};

class Part;
using PartPointer = std::shared_ptr<const Part>;

// Immutable, hence thread-safe.
class Part {
 public:
  // All in memory, every checksum verified now.  Bad bytes are kCorrupt, an other version
  // kUnsupported.
  static Result<PartPointer> parse(Buffer bytes);
  // Only the head in memory; groups are read, and verified, as they are asked for.  For
  // large parts and for many: not mapped, because a mapping of a file that someone
  // truncates ends the process, and a pread of a group costs 1 µs.
  static Result<PartPointer> open(std::shared_ptr<const Store> store, std::string path,
                                  uint64_t base, uint64_t length);

  const PartHead& head() const { return head_; }
  uint64_t groups() const { return (head_.samples + kGroupSamples - 1) / kGroupSamples; }
  uint64_t total_bytes() const { return total_bytes_; }
  // Of the head, whose directory holds those of the groups: it stands for all of the part.
  uint32_t checksum() const { return checksum_; }
  // The bytes of the file form; empty when it is not all in memory.
  Bytes bytes() const { return store_ == nullptr ? memory_.bytes() : Bytes(); }

  Status unpack(uint64_t group, PartGroup& out) const;
  Status key(uint64_t sample, std::string& out) const;
  Status path(uint64_t file, std::string& out) const;
  // All keys of a group: a tenth of what they cost one by one.
  Status keys(uint64_t group, std::vector<std::string>& out) const;

 private:
  Status file_keys(uint64_t group, std::vector<std::string>& out) const;
  Part() = default;
  Status parse_head(Bytes head);
  Status check_directory() const;
  // Entry `at` of both directories taken as one; `scratch` is used where it must be read.
  Status group_bytes(uint64_t at, Buffer& scratch, Bytes& out) const;
  uint64_t directory_size() const { return groups() + path_groups(); }
  uint64_t path_groups() const { return (head_.files + kGroupSamples - 1) / kGroupSamples; }
  uint64_t group_offset(uint64_t at) const;

  PartHead head_;
  Buffer memory_;  // all of it, or the head
  uint64_t head_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t directory_at_ = 0;
  uint32_t checksum_ = 0;
  std::shared_ptr<const Store> store_;  // null when all is in memory
  std::string path_;
  uint64_t base_ = 0;
};

// Used by Part and PartBuilder: the head fields, without the frame around them.
void put_head(const PartHead& head, std::vector<std::byte>& out);
// Takes the fields off the front of `bytes` and says how long they were.
Result<PartHead> take_head(Bytes bytes, uint64_t& taken);

// Used by Part: one sample group.
Status unpack_values(const PartHead& head, uint64_t samples, Bytes group, PartGroup& out);
Status unpack_key(uint64_t sample_in_group, Bytes group, std::string& out);
// The n-th of front-coded texts.
Status unpack_text(uint64_t n, Bytes coded, std::string& out);
// The first n of them; those of a sample group's keys.
Status unpack_texts(uint64_t n, Bytes coded, std::vector<std::string>& out);
Status unpack_keys(uint64_t n, Bytes group, std::vector<std::string>& out);

}  // namespace headrace
