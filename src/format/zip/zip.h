// SPDX-License-Identifier: Apache-2.0
//
// Zip archives by their central directory: where the members lie.  Stored and deflated
// ones, zip64; whatever else is refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "format/header_window.h"

namespace headrace {

inline constexpr uint32_t kZipLocal = 0x04034b50;       // "PK\3\4"
inline constexpr uint32_t kZipCentral = 0x02014b50;     // "PK\1\2"
inline constexpr uint32_t kZipEnd = 0x06054b50;         // "PK\5\6"
inline constexpr uint32_t kZip64End = 0x06064b50;       // "PK\6\6"
inline constexpr uint32_t kZip64Locator = 0x07064b50;   // "PK\6\7"
inline constexpr uint32_t kZipDescriptor = 0x08074b50;  // "PK\7\8"
inline constexpr uint64_t kZipLocalBytes = 30;
inline constexpr uint64_t kZipCentralBytes = 46;
inline constexpr uint64_t kZipEndBytes = 22;
inline constexpr uint64_t kZip64EndBytes = 56;
inline constexpr uint64_t kZip64LocatorBytes = 20;
inline constexpr uint16_t kZip64Extra = 1;
// Extra field of ours: the Kind of a member, one byte.
inline constexpr uint16_t kKindExtra = 0x7268;  // "hr"
inline constexpr uint16_t kNoKind = 0xffff;

struct ZipMember {
  std::string name = {};
  uint16_t flags = 0;
  uint16_t method = 0;  // 0: stored, 8: deflated
  uint16_t kind = kNoKind;
  uint32_t crc = 0;
  uint64_t stored = 0;
  uint64_t size = 0;    // deflated: of what comes out
  uint64_t header = 0;  // offset of its local header
  // Found by ZipFile::locate():
  uint64_t data = 0;        // offset of its bytes
  uint64_t descriptor = 0;  // at most so many bytes behind them tell checksum and sizes

  bool is_deflated() const { return method != 0; }
};

// One thread at a time.  Does not outlive the shard it is given.
class ZipFile {
 public:
  explicit ZipFile(const ShardInput& file) : file_(file), window_(file) {}

  // All members, in the order of the central directory; `data` is not known yet.  What is not a
  // whole zip archive is kCorrupt.
  Result<std::vector<ZipMember>> members();
  // Reads the local header, which must say the same as the central directory.
  Status locate(ZipMember& member);
  // The stored bytes [begin, begin + length) of a located member.  Valid until the next call.
  Status stored_bytes(const ZipMember& member, uint64_t begin, uint64_t length, Bytes& out);
  // All that is in a located member, inflated where need be; its checksum is verified.
  Status contents(const ZipMember& member, Buffer& out);

 private:
  struct Directory {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    uint64_t entries = 0;
  };
  Status bytes(uint64_t offset, uint64_t length, Bytes& out);
  Status read_tail(uint64_t length);
  Status find_end(uint64_t& end);
  Status find_directory(Directory& out);
  Status find_directory64(uint64_t end, Directory& out, uint64_t& directory_end);
  Status central_entry(Bytes& rest, ZipMember& out) const;

  const ShardInput& file_;
  HeaderWindow window_;
  Buffer tail_;
  uint64_t tail_at_ = 0;
  uint64_t directory_at_ = 0;  // members end before it
};

// A deflated member with its local header in front and its descriptor behind: as a unit that
// opens without the directory.  Verifies the checksum.
Status open_zip_member(Bytes unit, uint64_t size, Buffer& out);

}  // namespace headrace
