// SPDX-License-Identifier: Apache-2.0
#include "storage/cache/checksum.h"

#include <array>
#include <cstring>

#include "base/crc32c.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace headrace {
namespace {

using Sums = std::array<uint32_t, 4>;

// The first three have `quarter` bytes, a multiple of 8; the last has the rest.
struct Quarters {
  explicit Quarters(Bytes piece) : all(piece), quarter(piece.size() / 4 / 8 * 8) {}
  Bytes operator[](size_t i) const {
    return i < 3 ? all.subspan(i * quarter, quarter) : all.subspan(3 * quarter);
  }
  Bytes all;
  size_t quarter;
};

Sums portable_sums(const Quarters& q) {
  return {crc32c(q[0]), crc32c(q[1]), crc32c(q[2]), crc32c(q[3])};
}

#if defined(__x86_64__)
uint64_t word_at(const std::byte* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) Sums fast_sums(const Quarters& q) {
  uint64_t a = ~uint32_t{0};
  uint64_t b = a;
  uint64_t c = a;
  uint64_t d = a;
  const std::byte* p = q.all.data();
  for (size_t i = 0; i < q.quarter; i += 8) {
    a = _mm_crc32_u64(a, word_at(p + i));
    b = _mm_crc32_u64(b, word_at(p + q.quarter + i));
    c = _mm_crc32_u64(c, word_at(p + 2 * q.quarter + i));
    d = _mm_crc32_u64(d, word_at(p + 3 * q.quarter + i));
  }
  const auto end = [](uint64_t sum) { return ~static_cast<uint32_t>(sum); };
  return {end(a), end(b), end(c), crc32c(q.all.subspan(4 * q.quarter), end(d))};
}
#endif

Sums sums_of(const Quarters& q) {
#if defined(__x86_64__)
  static const bool is_fast = __builtin_cpu_supports("sse4.2") != 0;
  if (is_fast) return fast_sums(q);
#endif
  return portable_sums(q);
}

}  // namespace

uint32_t piece_checksum(Bytes piece) {
  const Sums sums = sums_of(Quarters(piece));
  std::array<std::byte, 16> joined{};
  for (size_t i = 0; i < sums.size(); ++i) store_le(MutableBytes(joined).subspan(4 * i), sums[i]);
  return crc32c(joined);
}

}  // namespace headrace
