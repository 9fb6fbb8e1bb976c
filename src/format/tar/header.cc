// SPDX-License-Identifier: Apache-2.0
#include "format/tar/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace headrace {
namespace {

constexpr size_t kNameAt = 0, kNameBytes = 100;
constexpr size_t kModeAt = 100, kUidAt = 108, kGidAt = 116, kIdBytes = 8;
constexpr size_t kSizeAt = 124, kMtimeAt = 136, kSizeBytes = 12;
constexpr size_t kSumAt = 148, kSumBytes = 8;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;
constexpr size_t kPrefixAt = 345, kPrefixBytes = 155;

std::string_view text_at(Bytes block, size_t at, size_t length) {
  const std::string_view field = as_text(block.subspan(at, length));
  return field.substr(0, field.find('\0'));
}

// Spaces, octal digits, then only spaces and NULs: a flipped bit in any of them shows.
bool parse_octal(Bytes field, uint64_t& out) {
  const std::string_view text = as_text(field);
  size_t i = std::min(text.find_first_not_of(' '), text.size());
  out = 0;
  const size_t digits = i;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '7'; ++i)
    out = out * 8 + static_cast<uint64_t>(text[i] - '0');
  return i > digits &&
         text.find_first_not_of(std::string_view(" \0", 2), i) == std::string_view::npos;
}

// Big-endian after the marker bit; what does not fit 63 bits is no size.
bool parse_base256(Bytes field, uint64_t& out) {
  out = static_cast<uint64_t>(field[0] & std::byte{0x7f});
  for (const std::byte b : field.subspan(1)) {
    if (out >> 55 != 0) return false;
    out = out << 8 | static_cast<uint64_t>(b);
  }
  return true;
}

bool parse_size(Bytes field, uint64_t& out) {
  if ((field[0] & std::byte{0x80}) != std::byte{0}) return parse_base256(field, out);
  return parse_octal(field, out);
}

// Eight bytes at a time in four lanes of 16 bits, which 64 words of 2 x 255 do not fill:
// the sum is most of what reading a header costs.
uint64_t unsigned_sum(Bytes block) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ffu;
  uint64_t lanes = 0;
  for (size_t i = 0; i < kTarBlock; i += 8) {
    const auto word = load_le<uint64_t>(block.subspan(i, 8));
    lanes += (word & kEven) + ((word >> 8) & kEven);
  }
  uint64_t sum = 0;
  for (; lanes != 0; lanes >>= 16) sum += lanes & 0xffff;
  for (size_t i = kSumAt; i < kSumAt + kSumBytes; ++i) sum -= static_cast<uint64_t>(block[i]);
  return sum + kSumBytes * ' ';
}

// Some old writers summed signed bytes: less 256 for each byte above 127.
uint64_t signed_sum(Bytes block) {
  uint64_t high = 0;
  for (size_t i = 0; i < kTarBlock; ++i)
    if (i < kSumAt || i >= kSumAt + kSumBytes) high += static_cast<uint64_t>(block[i] >> 7);
  return unsigned_sum(block) - 256 * high;
}

void put_text(MutableBytes out, size_t at, std::string_view text) {
  std::copy_n(as_bytes(text).begin(), text.size(), out.begin() + static_cast<std::ptrdiff_t>(at));
}

void put_octal(MutableBytes out, size_t at, size_t width, uint64_t value) {
  put_text(out, at, fmt::format("{:0{}o}", value, width - 1));  // the NUL after it is there already
}

// Where a long name splits into prefix '/' name; npos when it does not.
size_t split_point(std::string_view name) {
  const size_t from = name.size() - std::min(name.size(), kNameBytes + 1);
  const size_t slash = name.find('/', std::max<size_t>(from, 1));
  return slash <= kPrefixBytes && slash + 1 < name.size() ? slash : std::string_view::npos;
}

}  // namespace

bool is_zero(Bytes block) {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool has_tar_checksum(Bytes block) {
  uint64_t stored = 0;
  if (!parse_octal(block.subspan(kSumAt, kSumBytes), stored)) return false;
  return stored == unsigned_sum(block) || stored == signed_sum(block);
}

Status parse_tar_header(Bytes block, TarHeader& out) {
  if (!has_tar_checksum(block)) return corrupt("damaged header: its checksum is wrong");
  out.type = static_cast<char>(block[kTypeAt]);
  // GNU tar's volume label may come without a size: it has no data.
  const Bytes size = block.subspan(kSizeAt, kSizeBytes);
  const bool is_label = out.type == 'V' && is_zero(size);
  out.size = 0;
  if (!is_label && !parse_size(size, out.size)) return corrupt("damaged header: no size");
  out.name.clear();
  // Only POSIX has a prefix; GNU's "ustar  \0" keeps times there.
  if (as_text(block.subspan(kMagicAt, 6)) == std::string_view("ustar\0", 6)) {
    const std::string_view prefix = text_at(block, kPrefixAt, kPrefixBytes);
    if (!prefix.empty()) out.name.append(prefix).append("/");
  }
  out.name.append(text_at(block, kNameAt, kNameBytes));
  return {};
}

Status parse_pax(Bytes data, PaxRecords& out) {
  std::string_view rest = as_text(data);
  while (!rest.empty() && rest[0] != '\0') {
    size_t length = 0;
    const auto [digits, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto used = static_cast<size_t>(digits - rest.data());
    if (error != std::errc() || length <= used + 1 || length > rest.size() || *digits != ' ' ||
        rest[length - 1] != '\n')
      return corrupt("a PAX record does not parse");
    const std::string_view record = rest.substr(used + 1, length - used - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return corrupt("a PAX record has no '='");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") out.path = value;
    if (key.starts_with("GNU.sparse.")) out.sparse = true;
    if (key == "size") {
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), out.size);
      if (bad != std::errc() || end != value.data() + value.size() || out.size >> 63 != 0)
        return corrupt("a PAX size is no number");
    }
    rest.remove_prefix(length);
  }
  return {};
}

bool make_tar_header(std::string_view name, uint64_t size, char type,
                     std::array<std::byte, kTarBlock>& out) {
  out.fill(std::byte{0});
  size_t split = std::string_view::npos;
  if (name.size() > kNameBytes) {
    split = split_point(name);
    if (split == std::string_view::npos) return false;
  }
  const MutableBytes block(out);
  put_text(block, kNameAt, split == std::string_view::npos ? name : name.substr(split + 1));
  if (split != std::string_view::npos) put_text(block, kPrefixAt, name.substr(0, split));
  put_octal(block, kModeAt, kIdBytes, 0644);
  put_octal(block, kUidAt, kIdBytes, 0);
  put_octal(block, kGidAt, kIdBytes, 0);
  put_octal(block, kSizeAt, kSizeBytes, size < kMaxOctalSize ? size : 0);
  put_octal(block, kMtimeAt, kSizeBytes, 0);
  block[kTypeAt] = static_cast<std::byte>(type);
  put_text(block, kMagicAt, std::string_view("ustar\00000", 8));
  put_text(block, kSumAt, fmt::format("{:06o}", unsigned_sum(block)) + std::string("\0 ", 2));
  return true;
}

std::string pax_record(std::string_view key, std::string_view value) {
  const size_t body = key.size() + value.size() + 3;  // ' ', '=', '\n'
  size_t length = body + 1;
  while (length != body + fmt::formatted_size("{}", length))
    length = body + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace headrace
