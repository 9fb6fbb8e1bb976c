// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

namespace headrace {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them, which
// is where overlong forms, surrogates and values above U+10FFFF show.
struct Lead {
  size_t more;
  unsigned low;
  unsigned high;
};

constexpr Lead lead_of(unsigned b) {
  if (b >= 0xc2 && b <= 0xdf) return {1, 0x80, 0xbf};
  if (b == 0xe0) return {2, 0xa0, 0xbf};
  if (b == 0xed) return {2, 0x80, 0x9f};
  if (b >= 0xe1 && b <= 0xef) return {2, 0x80, 0xbf};
  if (b == 0xf0) return {3, 0x90, 0xbf};
  if (b >= 0xf1 && b <= 0xf3) return {3, 0x80, 0xbf};
  if (b == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

bool follows(Bytes bytes, size_t i, const Lead& lead) {
  if (lead.more == 0 || bytes.size() - i <= lead.more) return false;
  const auto first = static_cast<unsigned>(bytes[i + 1]);
  if (first < lead.low || first > lead.high) return false;
  for (size_t k = 2; k <= lead.more; ++k)
    if ((static_cast<unsigned>(bytes[i + k]) & 0xc0u) != 0x80u) return false;
  return true;
}

}  // namespace

size_t valid_utf8_prefix(Bytes bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    // Eight at a time while they are ASCII.
    while (bytes.size() - i >= 8 &&
           (load_le<uint64_t>(bytes.subspan(i)) & 0x8080808080808080u) == 0)
      i += 8;
    if (i == bytes.size()) break;
    const auto b = static_cast<unsigned>(bytes[i]);
    if (b < 0x80) {
      ++i;
      continue;
    }
    const Lead lead = lead_of(b);
    if (!follows(bytes, i, lead)) return i;
    i += 1 + lead.more;
  }
  return i;
}

void put_utf8(std::string& out, uint32_t letter) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) {
    put(0xc0 | letter >> 6);
  } else if (letter < 0x10000) {
    put(0xe0 | letter >> 12);
    put(0x80 | (letter >> 6 & 0x3f));
  } else {
    put(0xf0 | letter >> 18);
    put(0x80 | (letter >> 12 & 0x3f));
    put(0x80 | (letter >> 6 & 0x3f));
  }
  put(0x80 | (letter & 0x3f));
}

}  // namespace headrace
