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

#include <fmt/format.h>

#include <algorithm>

#include "format/format.h"
#include "format/header_window.h"
#include "format/members.h"
#include "format/tar/header.h"
#include "format/tar/writer.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxNameBytes = uint64_t{1} << 20;  // of a long name or PAX records
constexpr uint64_t kScanBytes = uint64_t{256} << 10;   // behind the end mark
constexpr std::string_view kSuffixes[] = {".tar"};

// Walks the members once.  One thread at a time.
class TarIndexer {
 public:
  explicit TarIndexer(const ShardInput& shard)
      : shard_(shard),
        window_(shard, HeaderWindow::kInOrder),
        part_(PartHead{.format = "tar",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .align = kTarBlock,
                       .gap = kTarBlock}) {}

  Result<PartPointer> run() {
    if (Status s = walk(); !s.ok()) return members_.blame(s, shard_.info.path);
    members_.end_sample();
    HEADRACE_TRY(check_keys());
    members_.note_skipped(
        "members are no part of a sample (no file, or no name of the form key.extension)");
    return part_.finish();
  }

 private:
  Status walk() {
    if (size() == 0) return corrupt("the file is empty: not even an end mark").at(0);
    for (uint64_t at = 0;;) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      Bytes block;
      if (size() - at < kTarBlock) return no_end(at);
      HEADRACE_TRY(window_.bytes(at, kTarBlock, block));
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
      HEADRACE_TRY(
          members_.add(header_.name, at, {.offset = at + kTarBlock, .stored = header_.size}));
    else if (type != '5' && type != 'V' && !header_.name.ends_with('/'))
      members_.skip(header_.name);
    at = next;
    return {};
  }

  // Checked without adding: the size is from the file.
  Status skip_data(uint64_t at, uint64_t& next) const {
    const uint64_t room = size() - at - kTarBlock;
    if (header_.size > room)
      return corrupt(fmt::format("'{}' is cut short: {} bytes are wanted, {} are there",
                                 header_.name, header_.size, room))
          .at(at);
    next += std::min(tar_padded(header_.size), room);
    return {};
  }

  // A long name or PAX records: about the next member, or (g) all that follow.
  Status extension(uint64_t& at, char type) {
    uint64_t next = at + kTarBlock;
    HEADRACE_TRY(skip_data(at, next));
    if (header_.size > kMaxNameBytes)
      return corrupt("a name or PAX header of more than 1 MiB").at(at);
    Bytes data;
    HEADRACE_TRY(window_.bytes(at + kTarBlock, header_.size, data));
    const std::string_view text = as_text(data);
    if (type == 'L') long_name_ = text.substr(0, text.find('\0'));
    if (type == 'x' || type == 'g')
      if (Status s = parse_pax(data, type == 'x' ? pax_ : global_); !s.ok()) return s.at(at);
    at = next;
    return {};
  }

  // A key that comes again later would be two halves of one sample, or two samples of one name.
  Status check_keys() {
    const auto twice = members_.find_twice();
    if (!twice) return {};
    Bytes block;
    HEADRACE_TRY(window_.bytes(twice->second, kTarBlock, block));
    HEADRACE_TRY(parse_tar_header(block, header_));
    return corrupt(
               fmt::format("the key of '{}' came before, at offset {}, with other samples between",
                           header_.name, twice->first))
        .at(twice->second)
        .in_file(shard_.info.path);
  }

  Status end_mark(uint64_t at) {
    if (size() - at < 2 * kTarBlock) return no_end(at);
    for (uint64_t rest = at; rest < size();) {
      Bytes block;
      const uint64_t n = std::min(kScanBytes, size() - rest);
      HEADRACE_TRY(window_.bytes(rest, n, block));
      if (!is_zero(block)) {
        if (rest == at && !is_zero(block.subspan(kTarBlock, kTarBlock)))
          return corrupt("half an end mark: one block of zeros where two belong").at(at);
        return corrupt("data after the end mark: two tar files in one?").at(rest);
      }
      rest += n;
    }
    return {};
  }

  Status no_end(uint64_t at) const { return corrupt("the file ends without an end mark").at(at); }

  uint64_t size() const { return shard_.info.bytes; }

  const ShardInput& shard_;
  HeaderWindow window_;
  PartBuilder part_;
  TarHeader header_;
  std::string long_name_;
  PaxRecords pax_, global_;
  MemberGrouper members_{part_};
};

Result<PartPointer> index(const ShardInput& shard) {
  return TarIndexer(shard).run();
}

Result<std::unique_ptr<Writer>> create(ShardOutput out) {
  return make_tar_writer(std::move(out.file));
}

bool sniff(Bytes head) {
  return head.size() >= kTarBlock && has_tar_checksum(head.first(kTarBlock));
}

}  // namespace

extern constinit const Format tar_format{
    .name = "tar",
    .doc = "WebDataset shards: members with equal key form a sample, the extension is the field",
    .suffixes = kSuffixes,
    .unique_keys = true,
    .sniff = sniff,
    .index = index,
    .create = create,
    .can_hold = [](const Schema& schema) { return members_can_hold("tar", schema); },
};

}  // namespace headrace
