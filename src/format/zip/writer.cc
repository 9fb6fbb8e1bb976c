// SPDX-License-Identifier: Apache-2.0
#include "format/zip/writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/inflate.h"
#include "format/zip/zip.h"

namespace headrace {
namespace {

constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kUtf8 = 0x800;
constexpr uint16_t kFirstDay = 0x21;  // 1980-01-01: every file of ours has the same time
constexpr uint16_t kPlainVersion = 20;
constexpr uint16_t kWideVersion = 45;
constexpr uint16_t kMadeOnUnix = 3 << 8;
constexpr uint32_t kReadable = 0100644u << 16;

// Python takes other names for code page 437; where the flag says UTF-8, it insists on it.
bool is_utf8_beyond_ascii(std::string_view text) {
  bool beyond = false;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : 3;
    if ((c >= 0x80 && c < 0xc2) || c >= 0xf5 || more >= text.size() - i) return false;
    for (size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    const auto second = more > 0 ? static_cast<unsigned char>(text[i + 1]) : 0x80;
    // Overlong forms, surrogates, and what lies beyond Unicode.
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
        (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
      return false;
    beyond |= more > 0;
    i += 1 + more;
  }
  return beyond;
}

uint32_t narrow(uint64_t v) {
  return v >= kIn64 ? kIn64 : static_cast<uint32_t>(v);
}

struct Member {
  std::string_view name;
  uint16_t flags = 0;
  uint32_t crc = 0;
  uint64_t size = 0;
  uint64_t header = 0;
  Kind kind = Kind::kBytes;
};

// Ours first: it is what a look at the first bytes of a file finds.
ByteVector extra_of(const Member& member, bool central) {
  ByteVector out;
  put_le(out, kKindExtra);
  put_le(out, uint16_t{1});
  put_le(out, static_cast<uint8_t>(member.kind));
  ByteVector wide;
  if (member.size >= kIn64) put_le(wide, member.size), put_le(wide, member.size);
  if (central && member.header >= kIn64) put_le(wide, member.header);
  if (wide.empty()) return out;
  put_le(out, kZip64Extra);
  put_le(out, static_cast<uint16_t>(wide.size()));
  put_bytes(out, wide);
  return out;
}

// What local header and directory have in common, from the version on to the name's length.
void put_common(ByteVector& out, const Member& member, bool is_wide) {
  put_le(out, is_wide ? kWideVersion : kPlainVersion);
  put_le(out, member.flags);
  put_le(out, uint16_t{0});  // stored
  put_le(out, uint16_t{0});
  put_le(out, kFirstDay);
  put_le(out, member.crc);
  put_le(out, narrow(member.size));
  put_le(out, narrow(member.size));
  put_le(out, static_cast<uint16_t>(member.name.size()));
}

}  // namespace

Status ZipWriter::append(Bytes data) {
  at_ += data.size();
  return sink_->append(data);
}

Status ZipWriter::add(std::string_view name, Kind kind, std::span<const Bytes> parts) {
  if (name.size() > 0xffff)
    return unsupported(fmt::format("a name of {} bytes; a zip archive holds 65535", name.size()));
  if (name.find('\0') != std::string_view::npos)
    return unsupported("a NUL in a name, where readers of zip archives cut it");
  Member member{.name = name,
                .flags = is_utf8_beyond_ascii(name) ? kUtf8 : uint16_t{0},
                .header = at_,
                .kind = kind};
  for (const Bytes part : parts) {
    member.crc = crc32(part, member.crc);
    member.size += part.size();
  }
  const ByteVector extra = extra_of(member, false);
  ByteVector header;
  put_le(header, kZipLocal);
  put_common(header, member, member.size >= kIn64);
  put_le(header, static_cast<uint16_t>(extra.size()));
  put_bytes(header, as_bytes(name));
  put_bytes(header, extra);
  HEADRACE_TRY(append(header));
  for (const Bytes part : parts)
    if (!part.empty()) HEADRACE_TRY(append(part));

  const bool is_wide = member.size >= kIn64 || member.header >= kIn64;
  const ByteVector again = extra_of(member, true);
  put_le(directory_, kZipCentral);
  put_le(directory_, static_cast<uint16_t>(kMadeOnUnix | kPlainVersion));
  put_common(directory_, member, is_wide);
  put_le(directory_, static_cast<uint16_t>(again.size()));
  put_le(directory_, uint16_t{0});  // comment
  put_le(directory_, uint16_t{0});  // disk
  put_le(directory_, uint16_t{0});
  put_le(directory_, kReadable);
  put_le(directory_, narrow(member.header));
  put_bytes(directory_, as_bytes(name));
  put_bytes(directory_, again);
  ++entries_;
  return {};
}

Status ZipWriter::finish() {
  const uint64_t begin = at_;
  HEADRACE_TRY(append(directory_));
  ByteVector end;
  if (entries_ >= 0xffff || begin >= kIn64 || directory_.size() >= kIn64) {
    put_le(end, kZip64End);
    put_le(end, uint64_t{kZip64EndBytes - 12});
    put_le(end, static_cast<uint16_t>(kMadeOnUnix | kWideVersion));
    put_le(end, kWideVersion);
    put_le(end, uint32_t{0});
    put_le(end, uint32_t{0});
    put_le(end, entries_);
    put_le(end, entries_);
    put_le(end, uint64_t{directory_.size()});
    put_le(end, begin);
    put_le(end, kZip64Locator);
    put_le(end, uint32_t{0});
    put_le(end, at_);
    put_le(end, uint32_t{1});
  }
  const auto entries = static_cast<uint16_t>(std::min<uint64_t>(entries_, 0xffff));
  put_le(end, kZipEnd);
  put_le(end, uint16_t{0});
  put_le(end, uint16_t{0});
  put_le(end, entries);
  put_le(end, entries);
  put_le(end, narrow(directory_.size()));
  put_le(end, narrow(begin));
  put_le(end, uint16_t{0});
  HEADRACE_TRY(append(end));
  return sink_->close();
}

}  // namespace headrace
