// SPDX-License-Identifier: Apache-2.0
//
// tar, by the conventions of WebDataset: consecutive members with equal key form a
// sample.  Key: the path up to the first dot of the base name; field: the rest, lower case.
//
//   +--------+------+-----+--------+------+-----+- - -+-------+-------+- - - - -+
//   | header | data | pad | header | data | pad |     | zeros | zeros | zeros … |
//   | 512    | n    |     | 512    | n    |     |     | 512   | 512   |         |
//   +--------+------+-----+--------+------+-----+- - -+-------+-------+- - - - -+
//                                                     \__ end mark __/
//
// ustar, GNU long names (types L, K), PAX (types x, g), base-256 sizes (tar_header.h).
// The end mark is required and nothing but zeros may follow it, so that a file that was
// cut, or two that were joined, never pass for fewer samples.  Payload has no checksum.
//
// A tar that is compressed as a whole (.tar.gz, .tar.zst, .tar.xz) is one unit, which opens as a
// whole (file_bytes.h): its members are places in the unpacked bytes, and all its samples are one
// block, so that a shuffled epoch unpacks it once where memory allows.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/file_bytes.h"
#include "format/format.h"
#include "format/members.h"
#include "format/tar/header.h"
#include "format/tar/writer.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxNameBytes = uint64_t{1} << 20;  // of a long name or PAX records
constexpr uint64_t kScanBytes = uint64_t{256} << 10;   // behind the end mark
constexpr std::string_view kSuffixes[] = {".tar",  ".tar.gz", ".tgz", ".tar.zst",
                                          ".tzst", ".tar.xz", ".txz"};
constexpr uint32_t kPackedTar = 1;  // how the unit opens that a compressed tar is

// Walks the members once.  One thread at a time.
class TarIndexer {
 public:
  // `unpacked`: the bytes of a compressed tar, as far as they are known; where they turn out to be
  // others, the part is worth nothing.
  TarIndexer(const ShardInput& shard, Compression compression, FileBytes& bytes, uint64_t unpacked)
      : shard_(shard),
        compression_(compression),
        bytes_(bytes),
        unpacked_(unpacked),
        part_(PartHead{.format = "tar",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = is_packed(),
                       .align = is_packed() ? 1 : kTarBlock,
                       .gap = is_packed() ? 0 : kTarBlock}) {
    if (is_packed()) part_.begin_shared(~uint64_t{0}, unpacked);
  }

  Result<PartPointer> run() {
    if (Status s = walk(); !s.ok()) return members_.blame(placed(s), shard_.info.path);
    members_.end_sample();
    if (part_.samples() == 0) part_.head().blocks.clear();
    if (is_packed()) HEADRACE_TRY(check_unit_fits(walked(), compression_, shard_.info.path));
    if (is_packed() && walked() != unpacked_) return part_.finish();
    HEADRACE_TRY(check_keys());
    if (const std::string notice = large_unit_notice(walked(), compression_);
        is_packed() && !notice.empty())
      part_.head().notices.push_back(notice);
    members_.note_skipped(
        "members are no part of a sample (no file, or no name of the form key.extension)");
    return part_.finish();
  }
  // All bytes of the tar, once run() is through.
  uint64_t walked() const { return bytes_.seen(); }

 private:
  bool is_packed() const { return compression_ != Compression::kNone; }

  // An offset in unpacked bytes is no place in the file.
  Status placed(const Status& status) const {
    const Place& place = status.place();
    if (!is_packed() || place.offset < 0 || !place.file.empty()) return status;
    return Status(status.code(), fmt::format("{} (offset {} of the unpacked data)",
                                             status.message(), place.offset));
  }

  Status walk() {
    if (shard_.info.bytes == 0) return corrupt("the file is empty: not even an end mark").at(0);
    for (uint64_t at = 0;;) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      Bytes block;
      if (size() - at < kTarBlock) return no_end(at);
      HEADRACE_TRY(bytes_.bytes(at, kTarBlock, block));
      if (block.size() < kTarBlock) return no_end(at);
      if (block[0] == std::byte{0} && is_zero(block)) return end_mark(at);
      if (Status s = parse_tar_header(block, header_); !s.ok()) return s.at(at);
      HEADRACE_TRY(member(at));
    }
  }

  // Takes the member whose header is header_, and moves `at` behind it.
  Status member(uint64_t& at) {
    const char type = header_.type;
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') return extension(at, type);
    if (!pax_.path.empty())
      header_.name = pax_.path;
    else if (!long_name_.empty())
      header_.name = long_name_;
    else if (!global_.path.empty())
      header_.name = global_.path;
    if (pax_.size != kNoSize)
      header_.size = pax_.size;
    else if (global_.size != kNoSize)
      header_.size = global_.size;
    if (type == 'S' || type == 'M' || pax_.sparse || global_.sparse)
      return unsupported(fmt::format("'{}' is a {} member; unpack and write it again without",
                                     header_.name, type == 'M' ? "multi-volume" : "sparse"))
          .at(at);
    long_name_.clear();
    pax_ = {};

    // Links, devices and folders have no data, whatever their size says.
    const bool has_data = type < '1' || type > '6';
    const bool is_file =
        (type == '0' || type == '\0' || type == '7') && !header_.name.ends_with('/');
    if (is_file) members_.meet(header_.name);
    uint64_t next = at + kTarBlock;
    if (has_data) HEADRACE_TRY(skip_data(at, next));
    if (is_file)
      HEADRACE_TRY(members_.add(header_.name, at, value_at(at + kTarBlock)));
    else if (type != '5' && type != 'V' && !header_.name.ends_with('/'))
      members_.skip(header_.name);
    at = next;
    return {};
  }

  PartValue value_at(uint64_t begin) const {
    if (!is_packed()) return {.offset = begin, .stored = header_.size};
    return {.stored = shard_.info.bytes,
            .decoded = unpacked_,
            .begin = begin,
            .length = header_.size,
            .encoding = kPackedTar};
  }

  // Checked without adding: the size is from the file.
  Status skip_data(uint64_t at, uint64_t& next) {
    uint64_t room = size() - at - kTarBlock;
    if (is_packed() && header_.size > 0 && header_.size <= room) {
      Bytes last;
      HEADRACE_TRY(bytes_.bytes(at + kTarBlock + header_.size - 1, 1, last));
      if (last.empty()) room = bytes_.seen() - std::min(bytes_.seen(), at + kTarBlock);
    }
    if (header_.size > room) return cut_short(at, room);
    next += std::min(tar_padded(header_.size), room);
    return {};
  }

  Status cut_short(uint64_t at, uint64_t there) const {
    return corrupt(fmt::format("'{}' is cut short: {} bytes are wanted, {} are there", header_.name,
                               header_.size, there))
        .at(at);
  }

  // A long name or PAX records: about the next member, or (g) all that follow.
  Status extension(uint64_t& at, char type) {
    if (header_.size > kMaxNameBytes)
      return corrupt("a name or PAX header of more than 1 MiB").at(at);
    Bytes data;
    const uint64_t room = size() - at - kTarBlock;
    HEADRACE_TRY(bytes_.bytes(at + kTarBlock, std::min(header_.size, room), data));
    if (data.size() < header_.size) return cut_short(at, data.size());
    const std::string_view text = as_text(data);
    if (type == 'L') long_name_ = text.substr(0, text.find('\0'));
    if (type == 'x' || type == 'g')
      if (Status s = parse_pax(data, type == 'x' ? pax_ : global_); !s.ok()) return s.at(at);
    at += kTarBlock + std::min(tar_padded(header_.size), room);
    return {};
  }

  // A key that comes again later would be two halves of one sample, or two samples of one name.
  Status check_keys() {
    const auto twice = members_.find_twice();
    if (!twice) return {};
    HEADRACE_ASSIGN(const std::unique_ptr<FileBytes> again, open_file_bytes(shard_, compression_));
    Bytes block;
    HEADRACE_TRY(again->bytes(twice->second, kTarBlock, block));
    HEADRACE_TRY(parse_tar_header(block, header_));
    return placed(corrupt(fmt::format("the key of '{}' came before, at offset {}, with other "
                                      "samples between",
                                      header_.name, twice->first))
                      .at(twice->second))
        .in_file(shard_.info.path);
  }

  Status end_mark(uint64_t at) {
    if (size() - at < 2 * kTarBlock) return no_end(at);
    for (uint64_t rest = at; rest < size();) {
      Bytes block;
      const uint64_t n = std::min(kScanBytes, size() - rest);
      HEADRACE_TRY(bytes_.bytes(rest, n, block));
      if (rest == at && block.size() < 2 * kTarBlock) return no_end(at);
      if (block.empty()) return {};
      if (!is_zero(block)) {
        if (rest == at && !is_zero(block.subspan(kTarBlock, kTarBlock)))
          return corrupt("half an end mark: one block of zeros where two belong").at(at);
        return corrupt("data after the end mark: two tar files in one?").at(rest);
      }
      rest += block.size();
    }
    return {};
  }

  Status no_end(uint64_t at) const { return corrupt("the file ends without an end mark").at(at); }

  uint64_t size() const { return bytes_.size(); }

  const ShardInput& shard_;
  const Compression compression_;
  FileBytes& bytes_;
  const uint64_t unpacked_;
  PartBuilder part_;
  TarHeader header_;
  std::string long_name_;
  PaxRecords pax_, global_;
  MemberGrouper members_{part_};
};

// A zlib stream is none: no tar is written so, and a tar may begin like one.
Compression tar_compression(Bytes head) {
  const Compression compression = compression_of(head);
  return compression == Compression::kZlib ? Compression::kNone : compression;
}

// How many bytes a compressed tar has is known at its end; it is said beside every value.  Where
// the guess was wrong, a second walk has it right.
Result<PartPointer> index(const ShardInput& shard) {
  constexpr uint64_t kEnd = 64;  // holds the sizes that a file states
  const uint64_t n = std::min(kEnd, shard.info.bytes);
  Buffer first, last;
  if (n > 0) HEADRACE_TRY(shard.store.read_at(shard.info.path, 0, n, first));
  const Compression compression = tar_compression(first.bytes());
  uint64_t unpacked = 0;
  if (compression != Compression::kNone) {
    HEADRACE_TRY(shard.store.read_at(shard.info.path, shard.info.bytes - n, n, last));
    unpacked = stated_size(compression, first.bytes(), last.bytes());
  }
  for (bool again = false;; again = true) {
    HEADRACE_ASSIGN(const std::unique_ptr<FileBytes> bytes, open_file_bytes(shard, compression));
    TarIndexer indexer(shard, compression, *bytes, unpacked);
    Result<PartPointer> part = indexer.run();
    if (!part.ok() || compression == Compression::kNone || indexer.walked() == unpacked)
      return part;
    if (again) return corrupt("the file changed while it was read").in_file(shard.info.path);
    unpacked = indexer.walked();
  }
}

Status decode_unit(const Store&, const std::string& path, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  HEADRACE_TRY(check_unit_fits(unit.decoded_bytes, compression_of(stored), path));
  decoded.resize(unit.decoded_bytes);
  return unpack_whole(stored, decoded.span());
}

Result<std::unique_ptr<Writer>> create(ShardOutput out) {
  return make_tar_writer(std::move(out.file));
}

bool is_tar(Bytes head) {
  return head.size() >= kTarBlock && has_tar_checksum(head.first(kTarBlock));
}

// Compressed ones by their first bytes only where these are gzip: zstd and xz go by the name.
bool sniff(Bytes head) {
  std::array<std::byte, kTarBlock> unpacked;
  return is_tar(head) ||
         (tar_compression(head) == Compression::kGzip && is_tar(unpack_head(head, unpacked)));
}

}  // namespace

extern constinit const Format tar_format{
    .name = "tar",
    .doc =
        "WebDataset shards: members with equal key form a sample, the extension is the field; also "
        "in gzip, zstd or xz",
    .suffixes = kSuffixes,
    .unique_keys = true,
    .sniff = sniff,
    .index = index,
    .create = create,
    .can_hold = [](const Schema& schema) { return members_can_hold("tar", schema); },
    .decode_unit = decode_unit,
    .opens_if_compressed = true,
};

}  // namespace headrace
