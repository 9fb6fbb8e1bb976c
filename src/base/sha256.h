// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104): what signatures of requests are made of.  Short
// texts, so there is nothing to gain from a library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256(std::string_view text);
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);
std::string hex_of(const Sha256Digest& digest);
inline std::string_view text_of(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace headrace
