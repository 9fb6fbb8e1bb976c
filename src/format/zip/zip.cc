// SPDX-License-Identifier: Apache-2.0
//
//   local header, data   local header, data …   central directory   [zip64 end, locator]   end
//
// PKWARE's APPNOTE.TXT 6.3 is the reference.  Nothing may lie between the directory and the
// end record, and local headers must repeat what the directory says: a flipped bit in a
// length, an offset or a name shows.

#include "format/zip/zip.h"

#include <fmt/format.h>

#include "base/inflate.h"
#include "index/varint.h"

namespace headrace {
namespace {

constexpr uint64_t kSmallFile = uint64_t{64} << 10;  // is read at once
constexpr uint64_t kFirstTail = 4096;
constexpr uint64_t kMaxComment = 0xffff;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kHasDescriptor = 8;
constexpr uint64_t kMaxDescriptor = 24;  // signature, checksum, two sizes of 64 bits
constexpr uint32_t kIn64 = 0xffffffff;

std::string_view method_name(uint16_t method) {
  switch (method) {
    case 1:
      return "shrunk";
    case 6:
      return "imploded";
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "LZMA";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    default:
      return "unknown";
  }
}

// What lies in front of a member's bytes, and in much the same form in the directory.
struct Entry {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t stored = 0;
  uint64_t size = 0;
  uint16_t kind = kNoKind;
};

// The 64-bit values stand in the extra field, in order, for those that are all ones.
Status apply_extra(Bytes extra, Entry& entry, uint64_t* offset) {
  ByteReader in(extra);
  while (in.left() >= 4) {
    const auto id = in.le<uint16_t>();
    const Bytes field = in.take(in.le<uint16_t>());
    if (!in.ok()) return corrupt("an extra field of a zip member is cut short");
    if (id == kKindExtra && field.size() == 1) entry.kind = static_cast<uint16_t>(field[0]);
    if (id != kZip64Extra) continue;
    ByteReader wide(field);
    if (entry.size == kIn64) entry.size = wide.le<uint64_t>();
    if (entry.stored == kIn64) entry.stored = wide.le<uint64_t>();
    if (offset != nullptr && *offset == kIn64) *offset = wide.le<uint64_t>();
    if (!wide.ok()) return corrupt("the zip64 field of a member is cut short");
  }
  // Old versions of some writers pad with zeros.
  return {};
}

// Of a local header: its fields and where the bytes begin behind it.
Status parse_local(Bytes header, Entry& out, std::string_view& name, uint64_t& begin) {
  ByteReader in(header);
  const auto magic = in.le<uint32_t>();
  in.take(2);
  out.flags = in.le<uint16_t>();
  out.method = in.le<uint16_t>();
  in.take(4);
  out.crc = in.le<uint32_t>();
  out.stored = in.le<uint32_t>();
  out.size = in.le<uint32_t>();
  const auto name_bytes = in.le<uint16_t>();
  const auto extra_bytes = in.le<uint16_t>();
  name = as_text(in.take(name_bytes));
  const Bytes extra = in.take(extra_bytes);
  if (!in.ok() || magic != kZipLocal) return corrupt("no zip member begins here");
  begin = kZipLocalBytes + name_bytes + extra_bytes;
  return apply_extra(extra, out, nullptr);
}

Status check_member(const ZipMember& member) {
  if ((member.flags & kEncrypted) != 0)
    return unsupported(fmt::format("zip member '{}' is encrypted: write it without", member.name));
  if (member.method != 0 && member.method != 8)
    return unsupported(
        fmt::format("zip member '{}' is compressed by method {} ({}): only stored and deflated "
                    "members are read; unpack the file (unzip, 7z x) and open the folder",
                    member.name, member.method, method_name(member.method)));
  if (member.method == 0 && member.stored != member.size)
    return corrupt(fmt::format("zip member '{}' is stored in {} bytes and has {}", member.name,
                               member.stored, member.size));
  if (member.size / kMaxInflation > member.stored)
    return corrupt(fmt::format("zip member '{}': {} deflated bytes cannot become {}", member.name,
                               member.stored, member.size));
  return {};
}

}  // namespace

Status ZipFile::read_tail(uint64_t length) {
  tail_at_ = file_.info.bytes - length;
  return file_.store.read_at(file_.info.path, tail_at_, length, tail_);
}

Status ZipFile::bytes(uint64_t offset, uint64_t length, Bytes& out) {
  if (offset < tail_at_ || tail_.size() == 0) return window_.bytes(offset, length, out);
  out = tail_.bytes().subspan(offset - tail_at_, length);
  return {};
}

// The end record is the last that fits: behind it is its comment and nothing else.
Status ZipFile::find_end(uint64_t& end) {
  const uint64_t size = file_.info.bytes;
  if (size < kZipEndBytes)
    return corrupt(fmt::format("no zip archive: {} bytes are too few for its end", size)).at(0);
  for (const uint64_t want :
       {size <= kSmallFile ? size : kFirstTail, kMaxComment + kZipEndBytes + kFirstTail}) {
    const uint64_t length = std::min(want, size);
    if (length <= tail_.size()) break;
    HEADRACE_TRY(read_tail(length));
    const Bytes tail = tail_.bytes();
    for (uint64_t behind = 0; behind <= std::min(kMaxComment, length - kZipEndBytes); ++behind) {
      const uint64_t at = length - kZipEndBytes - behind;
      if (load_le<uint32_t>(tail.subspan(at)) != kZipEnd ||
          load_le<uint16_t>(tail.subspan(at + 20)) != behind)
        continue;
      end = tail_at_ + at;
      return {};
    }
  }
  return corrupt("no zip archive, or one that was cut short: it has no end record").at(size);
}

Status ZipFile::find_directory64(uint64_t end, Directory& out, uint64_t& directory_end) {
  Bytes locator;
  HEADRACE_TRY(bytes(end - kZip64LocatorBytes, kZip64LocatorBytes, locator));
  if (load_le<uint32_t>(locator) != kZip64Locator) return {};
  const auto at = load_le<uint64_t>(locator.subspan(8));
  if (end < kZip64LocatorBytes + kZip64EndBytes || at != end - kZip64LocatorBytes - kZip64EndBytes)
    return corrupt("the zip64 end record is not where it should be").at(end - kZip64LocatorBytes);
  Bytes record;
  HEADRACE_TRY(bytes(at, kZip64EndBytes, record));
  ByteReader in(record);
  const auto magic = in.le<uint32_t>();
  const auto length = in.le<uint64_t>();
  in.take(4);
  const auto disk = in.le<uint32_t>();
  const auto first_disk = in.le<uint32_t>();
  const auto entries_here = in.le<uint64_t>();
  out.entries = in.le<uint64_t>();
  out.bytes = in.le<uint64_t>();
  out.begin = in.le<uint64_t>();
  if (magic != kZip64End || length != kZip64EndBytes - 12 || disk != 0 || first_disk != 0 ||
      entries_here != out.entries)
    return corrupt("the zip64 end record does not parse").at(at);
  directory_end = at;
  return {};
}

Status ZipFile::find_directory(Directory& out) {
  uint64_t end = 0;
  HEADRACE_TRY(find_end(end));
  Bytes record;
  HEADRACE_TRY(bytes(end, kZipEndBytes, record));
  const auto disk = load_le<uint16_t>(record.subspan(4));
  const auto first_disk = load_le<uint16_t>(record.subspan(6));
  const auto entries_here = load_le<uint16_t>(record.subspan(8));
  const Directory narrow{.begin = load_le<uint32_t>(record.subspan(16)),
                         .bytes = load_le<uint32_t>(record.subspan(12)),
                         .entries = load_le<uint16_t>(record.subspan(10))};
  if (disk != 0 || first_disk != 0 || entries_here != narrow.entries)
    return corrupt("a zip archive in several volumes, or a damaged end record").at(end);
  out = narrow;
  uint64_t directory_end = end;
  if (end >= kZip64LocatorBytes) HEADRACE_TRY(find_directory64(end, out, directory_end));
  const bool agree = (narrow.begin == kIn64 || narrow.begin == out.begin) &&
                     (narrow.bytes == kIn64 || narrow.bytes == out.bytes) &&
                     (narrow.entries == 0xffff || narrow.entries == out.entries);
  if (!agree) return corrupt("the two end records of the zip archive do not agree").at(end);
  if (out.begin > directory_end || out.bytes != directory_end - out.begin)
    return corrupt(fmt::format("the zip directory of {} bytes at {} does not end at {}", out.bytes,
                               out.begin, directory_end))
        .at(end);
  // Compared without adding: each entry has at least its head.
  if (out.entries > out.bytes / kZipCentralBytes)
    return corrupt(fmt::format("{} entries do not fit into a zip directory of {} bytes",
                               out.entries, out.bytes))
        .at(end);
  return {};
}

Status ZipFile::central_entry(Bytes& rest, ZipMember& out) const {
  ByteReader in(rest);
  const auto magic = in.le<uint32_t>();
  in.take(4);
  Entry entry;
  entry.flags = in.le<uint16_t>();
  entry.method = in.le<uint16_t>();
  in.take(4);
  entry.crc = in.le<uint32_t>();
  entry.stored = in.le<uint32_t>();
  entry.size = in.le<uint32_t>();
  const auto name_bytes = in.le<uint16_t>();
  const auto extra_bytes = in.le<uint16_t>();
  const auto comment_bytes = in.le<uint16_t>();
  const auto disk = in.le<uint16_t>();
  in.take(6);
  uint64_t header = in.le<uint32_t>();
  const Bytes name = in.take(name_bytes);
  const Bytes extra = in.take(extra_bytes);
  in.take(comment_bytes);
  if (!in.ok() || magic != kZipCentral || disk != 0)
    return corrupt("an entry of the zip directory does not parse");
  HEADRACE_TRY(apply_extra(extra, entry, &header));
  out = {.name = std::string(as_text(name)),
         .flags = entry.flags,
         .method = entry.method,
         .kind = entry.kind,
         .crc = entry.crc,
         .stored = entry.stored,
         .size = entry.size,
         .header = header};
  rest = rest.subspan(rest.size() - in.left());
  return check_member(out);
}

Result<std::vector<ZipMember>> ZipFile::members() {
  Directory directory;
  HEADRACE_TRY(find_directory(directory));
  directory_at_ = directory.begin;
  Buffer read;
  Bytes rest;
  if (directory.begin >= tail_at_) {
    rest = tail_.bytes().subspan(directory.begin - tail_at_, directory.bytes);
  } else {
    HEADRACE_TRY(file_.store.read_at(file_.info.path, directory.begin, directory.bytes, read));
    rest = read.bytes();
  }
  std::vector<ZipMember> out(directory.entries);
  for (ZipMember& member : out) {
    const uint64_t at = directory.begin + directory.bytes - rest.size();
    if (Status s = central_entry(rest, member); !s.ok()) return s.at(at);
  }
  if (!rest.empty())
    return corrupt(fmt::format("{} bytes too many in the zip directory", rest.size()))
        .at(directory.begin + directory.bytes - rest.size());
  return out;
}

Status ZipFile::locate(ZipMember& member) {
  const uint64_t room = member.header < directory_at_ ? directory_at_ - member.header : 0;
  if (room < kZipLocalBytes)
    return corrupt(fmt::format("zip member '{}' is said to begin at {}, where none can",
                               member.name, member.header))
        .at(directory_at_);
  Bytes header;
  HEADRACE_TRY(bytes(member.header, kZipLocalBytes, header));
  const uint64_t whole = kZipLocalBytes + load_le<uint16_t>(header.subspan(26)) +
                         load_le<uint16_t>(header.subspan(28));
  if (whole > room || member.stored > room - whole)
    return corrupt(fmt::format("zip member '{}' runs into the directory", member.name))
        .at(member.header);
  HEADRACE_TRY(bytes(member.header, whole, header));
  Entry local;
  std::string_view name;
  uint64_t begin = 0;
  if (Status s = parse_local(header, local, name, begin); !s.ok()) return s.at(member.header);
  // With a descriptor behind the data, the header was written before its numbers were known.
  const bool numbers_agree =
      (local.flags & kHasDescriptor) != 0 ||
      (local.crc == member.crc && local.stored == member.stored && local.size == member.size);
  if (name != member.name || local.flags != member.flags || local.method != member.method ||
      local.kind != member.kind || !numbers_agree)
    return corrupt(fmt::format("zip member '{}' says otherwise in its header than in the directory",
                               member.name))
        .at(member.header);
  member.data = member.header + begin;
  if ((member.flags & kHasDescriptor) != 0)
    member.descriptor = std::min(kMaxDescriptor, room - whole - member.stored);
  return {};
}

Status ZipFile::stored_bytes(const ZipMember& member, uint64_t begin, uint64_t length, Bytes& out) {
  if (begin > member.stored || length > member.stored - begin)
    return internal("bytes outside a zip member");
  return bytes(member.data + begin, length, out);
}

Status ZipFile::contents(const ZipMember& member, Buffer& out) {
  Bytes stored;
  HEADRACE_TRY(stored_bytes(member, 0, member.stored, stored));
  Status status;
  if (member.is_deflated()) {
    status = inflate_raw(stored, member.size, out);
  } else {
    out.resize(stored.size());
    std::copy(stored.begin(), stored.end(), out.data());
  }
  if (status.ok() && crc32(out.bytes()) != member.crc)
    status = corrupt("the checksum of its bytes is wrong");
  return status.ok() ? status
                     : status.with(fmt::format("zip member '{}'", member.name)).at(member.data);
}

Status open_zip_member(Bytes unit, uint64_t size, Buffer& out) {
  Entry entry;
  std::string_view name;
  uint64_t begin = 0;
  HEADRACE_TRY(parse_local(unit, entry, name, begin));
  uint64_t used = 0;
  Status status = inflate_raw(unit.subspan(begin), size, out, &used);
  if (!status.ok()) return status.with(fmt::format("zip member '{}'", name)).at(begin);
  if ((entry.flags & kHasDescriptor) != 0) {
    ByteReader behind(unit.subspan(begin + used));
    entry.crc = behind.le<uint32_t>();
    if (entry.crc == kZipDescriptor) entry.crc = behind.le<uint32_t>();
    if (!behind.ok()) return corrupt(fmt::format("zip member '{}' has no end", name)).at(begin);
  }
  if (crc32(out.bytes()) != entry.crc)
    return corrupt(fmt::format("zip member '{}': the checksum of its bytes is wrong", name))
        .at(begin);
  return {};
}

}  // namespace headrace
