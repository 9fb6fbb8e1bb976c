// SPDX-License-Identifier: Apache-2.0
//
// Segment: a file of the cache, up to 64 consecutive blocks of one object (storage/cache/cache.h).
//
//   0        8       16        32       40       48      56          60       64
//   +--------+-------+---------+--------+--------+-------+-----------+--------+-----------+
//   | magic  | nonce | object  | number | bytes  | block | blocks in | CRC of | what it   |
//   |HRCACHE1|       | hash    | of it  | of the | bytes | a segment | 0..60, | is of, as |
//   |        |       |         |        | object |       |           | 64..   | text      |
//   +--------+-------+---------+--------+--------+-------+-----------+--------+-----------+
//   4096: a record for each block          then, at a multiple of 4096, the blocks where they
//   belong
//   +-----------------------+------+-------------+
//   | 16 checksums, one for | "HR" | CRC of the  |   zeros: the block is not there
//   | each piece of a block | 0x01 | 68 before   |
//   +-----------------------+------+-------------+
//
// The file is sparse.  A block is written first and its record after it, so a record means that all
// of the block was handed to the kernel; the checksums tell where the disk lost it since (power,
// damage).  What a block holds follows from the file's name, so two processes that write the same
// one write the same bytes.  A segment is never shortened: it goes as a whole, by unlink(), and
// whoever has it open reads on.  A block that proves damaged loses its record and is fetched again.
//
// A process reads a piece against its checksum once, and trusts it after that.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "storage/descriptors.h"

namespace headrace {

// Of a cache folder: fixed when it is made.
struct CacheShape {
  uint32_t block_bytes = 1 << 20;
  uint32_t segment_blocks = 64;
  uint64_t segment_bytes() const { return uint64_t{block_bytes} * segment_blocks; }
  bool operator==(const CacheShape&) const = default;
};

inline constexpr uint32_t kCachePieces = 16;  // of a block
inline constexpr uint32_t kMostSegmentBlocks = 64;

// What the segment is of.
struct SegmentName {
  Hash128 object;
  uint64_t number = 0;  // of the segment in the object
  uint64_t object_bytes = 0;
  CacheShape shape;
  std::string text;  // the object's URL and version, for people
};

// What a segment's head says, for who lists a cache.
Result<SegmentName> read_segment_name(int fd);

// Thread-safe.
class Segment {
 public:
  Segment(std::string path, SegmentName name);

  enum class Found {
    kRead,     // all of it is in `out`
    kAbsent,   // some of it is not there, or not at once
    kDamaged,  // a block was not what it was when it was written; it is absent now
  };
  // [offset, + out.size()) of the segment.  `at_once`: only from the page cache.
  Found read(const Descriptors& files, uint64_t offset, MutableBytes out, bool at_once) const;
  // Whether a block is there, as far as its record says.
  bool has(const Descriptors& files, uint32_t block) const;

  // A block that this process is to write.  While it lives no other does.
  class Claim {
   public:
    Claim(OpenFile file, uint32_t block) : file_(std::move(file)), block_(block) {}
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    friend class Segment;
    const OpenFile file_;
    const uint32_t block_;
  };
  // Makes the file where there is none, by a temporary name in `temporary`.  Null: another process
  // has the block in hand.
  Result<std::unique_ptr<Claim>> claim(uint32_t block, const std::string& temporary) const;
  // All of the block.
  Status write(const Claim& claim, Bytes data) const;

  // The file is gone, or another than it was: what is known of it is worth nothing.
  bool is_stale() const { return stale_.load(); }
  const std::string& path() const { return path_; }
  const SegmentName& name() const { return name_; }
  uint32_t blocks() const { return static_cast<uint32_t>(records_.size()); }
  uint64_t block_bytes(uint32_t block) const;  // the last of an object is shorter
  // What the file takes when a block more is in it.
  static uint64_t head_bytes(uint32_t blocks);

 private:
  struct Record {
    std::atomic<bool> is_there{false};
    std::atomic<uint32_t> checked{0};  // a bit for each piece
    std::atomic<uint32_t> sums[kCachePieces] = {};
  };
  OpenFile open(const Descriptors& files) const;
  bool load_record(int fd, uint32_t block) const;
  Found read_checking(int fd, uint32_t block, uint64_t begin, MutableBytes out, bool at_once) const;
  bool is_checked(uint32_t block, uint64_t begin, uint64_t end) const;
  void drop(uint32_t block) const;
  void touch(int fd) const;
  Result<OpenFile> open_to_write(const std::string& temporary) const;
  uint64_t piece_bytes() const { return name_.shape.block_bytes / kCachePieces; }
  uint64_t place(uint32_t block) const;

  const std::string path_;
  const SegmentName name_;
  mutable std::vector<Record> records_;
  mutable std::atomic<bool> stale_{false};
  mutable std::atomic<uint64_t> touched_ns_{0};
  mutable Mutex mu_;
  mutable std::optional<uint64_t> nonce_ HEADRACE_GUARDED_BY(mu_);
  mutable std::weak_ptr<const Descriptor> known_ HEADRACE_GUARDED_BY(mu_);
  mutable std::weak_ptr<const Descriptor> writing_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
