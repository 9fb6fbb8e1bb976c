// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>

namespace headrace {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82f63b78u : 0u);
    t[0][i] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(Bytes data, uint32_t seed) {
  uint32_t c = ~seed;
  while (data.size() >= 8) {
    const uint64_t w = load_le<uint64_t>(data) ^ c;
    c = 0;
    for (size_t k = 0; k < 8; ++k) c ^= kTables[7 - k][(w >> (8 * k)) & 0xff];
    data = data.subspan(8);
  }
  for (const std::byte b : data) c = (c >> 8) ^ kTables[0][(c ^ static_cast<uint32_t>(b)) & 0xff];
  return ~c;
}

}  // namespace headrace
