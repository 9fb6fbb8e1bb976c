// SPDX-License-Identifier: Apache-2.0
#include "format/array_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kPreamble = 10;  // magic, version and length of the dict
constexpr uint64_t kAlign = 64;     // of the elements, as NumPy writes

std::string npy_dict(const ArrayHead& head) {
  std::string axes;
  for (const uint64_t extent : head.shape) axes += fmt::format("{}, ", extent);
  if (head.shape.size() > 1) axes.resize(axes.size() - 2);
  if (head.shape.size() == 1) axes.pop_back();  // (3,)
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", head.descr, axes);
  const uint64_t used = kPreamble + dict.size() + 1;
  dict.append((kAlign - used % kAlign) % kAlign, ' ');
  return dict += '\n';
}

struct Mode {
  std::string_view name;
  std::string_view descr;
  uint64_t item_bytes;
  uint64_t channels;  // 0: no axis of their own
};
// Modes whose raw bytes are one number a channel.  Of "1" they are bits, and "P" would need the
// palette, which is not stored.
constexpr Mode kModes[] = {
    {"L", "|u1", 1, 0},     {"RGB", "|u1", 1, 3}, {"RGBA", "|u1", 1, 4}, {"CMYK", "|u1", 1, 4},
    {"YCbCr", "|u1", 1, 3}, {"LAB", "|u1", 1, 3}, {"HSV", "|u1", 1, 3},  {"LA", "|u1", 1, 2},
    {"I", "<i4", 4, 0},     {"F", "<f4", 4, 0},   {"I;16", "<u2", 2, 0}, {"RGBX", "|u1", 1, 4},
};

}  // namespace

Status check_array(const ArrayHead& head, uint64_t value_bytes) {
  if (head.begin > value_bytes) return corrupt("an array ends within its type and shape");
  const uint64_t room = value_bytes - head.begin;
  uint64_t wanted = head.item_bytes;
  const bool empty = std::find(head.shape.begin(), head.shape.end(), 0u) != head.shape.end();
  if (empty) wanted = 0;
  for (const uint64_t extent : head.shape) {
    // Compared without multiplying: the extents are from the file.
    if (!empty && wanted > room / extent) wanted = ~uint64_t{0};
    if (empty || wanted == ~uint64_t{0}) break;
    wanted *= extent;
  }
  if (wanted == room) return {};
  std::string axes;
  for (const uint64_t extent : head.shape)
    axes += fmt::format("{}{}", axes.empty() ? "" : ",", extent);
  return corrupt(fmt::format("an array of {} by its shape [{}] has {} bytes of elements",
                             head.descr, axes, room));
}

uint64_t npy_bytes(const ArrayHead& head, uint64_t value_bytes) {
  return kPreamble + npy_dict(head).size() + value_bytes - head.begin;
}

void make_npy(const ArrayHead& head, Bytes value, MutableBytes out) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  const std::string dict = npy_dict(head);
  std::copy_n(as_bytes(kMagic).begin(), kMagic.size(), out.begin());
  store_le(out.subspan(kMagic.size()), static_cast<uint16_t>(dict.size()));
  std::copy_n(as_bytes(dict).begin(), dict.size(), out.begin() + kPreamble);
  const Bytes elements = value.subspan(head.begin);
  std::copy_n(elements.begin(), elements.size(), out.subspan(kPreamble + dict.size()).begin());
}

Status parse_raw_picture(Bytes head, ArrayHead& out) {
  constexpr uint64_t kInts = 12;
  if (head.size() < kInts) return corrupt("a raw picture of less than 12 bytes");
  const uint64_t width = load_le<uint32_t>(head);
  const uint64_t height = load_le<uint32_t>(head.subspan(4));
  const uint64_t letters = load_le<uint32_t>(head.subspan(8));
  if (letters > 16 || letters > head.size() - kInts)
    return corrupt(fmt::format("a raw picture whose mode has {} letters", letters));
  const std::string_view name = as_text(head.subspan(kInts, letters));
  const auto mode = std::find_if(std::begin(kModes), std::end(kModes),
                                 [name](const Mode& m) { return m.name == name; });
  if (mode == std::end(kModes))
    return unsupported(fmt::format(
        "a raw picture of PIL mode '{}', whose bytes are no array: store it as png", name));
  out = {.descr = std::string(mode->descr),
         .item_bytes = mode->item_bytes,
         .shape = {height, width},
         .begin = kInts + letters};
  if (mode->channels != 0) out.shape.push_back(mode->channels);
  return {};
}

Status picture_list_head(Bytes count, uint64_t value_bytes, uint64_t& head_bytes) {
  if (value_bytes < 4 || count.size() < 4) return corrupt("a list that ends before its count");
  const uint64_t n = load_le<uint32_t>(count);
  if (n > (value_bytes - 4) / 4)
    return corrupt(fmt::format("a list of {} values in {} bytes", n, value_bytes));
  head_bytes = 4 + 4 * n;
  return {};
}

Status parse_picture_list(Bytes head, uint64_t value_bytes, std::vector<ListedValue>& out) {
  uint64_t at = 0;
  HEADRACE_TRY(picture_list_head(head, value_bytes, at));
  const uint64_t n = (at - 4) / 4;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t length = load_le<uint32_t>(head.subspan(4 + 4 * i));
    if (length > value_bytes - at)
      return corrupt(fmt::format("value {} of a list has {} bytes where {} are left", i, length,
                                 value_bytes - at));
    out.push_back({at, length});
    at += length;
  }
  if (at != value_bytes)
    return corrupt(fmt::format("a list of {} bytes whose values end after {}", value_bytes, at));
  return {};
}

}  // namespace headrace
