// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/rng.h"

namespace headrace {

void Hasher::word(uint64_t w) {
  a_ = mix64(a_ ^ w) + kGolden64;
  b_ = mix64(b_ + w * 0xd6e8feb86659fd93u) ^ a_;
}

Hasher& Hasher::add(uint64_t v) {
  word(v);
  return *this;
}

Hasher& Hasher::add(std::string_view s) {
  return add(as_bytes(s));
}

Hasher& Hasher::add(Bytes b) {
  word(b.size());
  while (b.size() >= 8) {
    word(load_le<uint64_t>(b));
    b = b.subspan(8);
  }
  if (!b.empty()) {
    std::array<std::byte, 8> tail{};
    std::copy(b.begin(), b.end(), tail.begin());
    word(load_le<uint64_t>(tail));
  }
  return *this;
}

Hash128 Hasher::finish() const {
  return {mix64(a_ + b_), mix64(b_ ^ (a_ >> 1))};
}

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

bool Hash128::parse(std::string_view hex, Hash128& out) {
  if (hex.size() != 32) return false;
  const auto half = [](std::string_view s, uint64_t& v) {
    const auto r = std::from_chars(s.data(), s.data() + s.size(), v, 16);
    return r.ec == std::errc() && r.ptr == s.data() + s.size();
  };
  return half(hex.substr(0, 16), out.high) && half(hex.substr(16), out.low);
}

}  // namespace headrace
