// SPDX-License-Identifier: Apache-2.0
//
// Hasher: 128 bits over typed pieces, for fingerprints and plan ids.  It tells
// data sets apart; it is no defence against someone who wants a collision.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace headrace {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  // 32 lower-case digits
  static bool parse(std::string_view hex, Hash128& out);
};

// One thread at a time.  add("ab"), add("c") differs from add("a"), add("bc").
class Hasher {
 public:
  Hasher& add(uint64_t v);
  Hasher& add(std::string_view s);
  Hasher& add(Bytes b);
  Hash128 finish() const;

 private:
  void word(uint64_t w);
  uint64_t a_ = 0x6a09e667f3bcc908u;
  uint64_t b_ = 0xbb67ae8584caa73bu;
};

}  // namespace headrace
