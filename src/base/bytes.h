// SPDX-License-Identifier: Apache-2.0
//
// Bytes: a borrowed run of memory.  Little-endian loads and stores that never
// assume alignment.  Callers check the length first: a load reads sizeof(T).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace headrace {

static_assert(std::endian::native == std::endian::little, "port me: byte-swap here");

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

template <typename T>
T load_le(Bytes at) {
  T v;
  std::memcpy(&v, at.data(), sizeof v);
  return v;
}

template <typename T>
void store_le(MutableBytes at, T v) {
  std::memcpy(at.data(), &v, sizeof v);
}

inline Bytes as_bytes(std::string_view s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

inline std::string_view as_text(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace headrace
