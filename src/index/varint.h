// SPDX-License-Identifier: Apache-2.0
//
// Packed numbers: seven bits a byte, low first, the high bit says "more".
// ByteReader takes them apart again and survives any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace headrace {

using ByteVector = std::vector<std::byte>;

inline void put_varint(ByteVector& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::byte>(v | 0x80));
  out.push_back(static_cast<std::byte>(v));
}

// Small negative numbers become small ones: 0, -1, 1, -2, … are 0, 1, 2, 3, …
inline uint64_t zigzag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
inline int64_t unzigzag(uint64_t v) {
  return static_cast<int64_t>((v >> 1) ^ (0 - (v & 1)));
}

inline void put_bytes(ByteVector& out, Bytes b) {
  out.insert(out.end(), b.begin(), b.end());
}
inline void put_text(ByteVector& out, std::string_view s) {
  put_varint(out, s.size());
  put_bytes(out, as_bytes(s));
}

template <typename T>
void put_le(ByteVector& out, T v) {
  put_bytes(out, std::as_bytes(std::span<const T, 1>(&v, 1)));
}

// One thread at a time.  Sticky: after the first bad read everything is 0 or empty and
// ok() is false, so that a parser checks once per loop and not per number.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint64_t varint() {
    if (at_ != end_ && (*at_ & std::byte{0x80}) == std::byte{0})
      return static_cast<uint64_t>(*at_++);
    return long_varint();
  }
  int64_t signed_varint() { return unzigzag(varint()); }
  Bytes take(uint64_t n) {
    if (n > left()) return fail(), Bytes();
    const Bytes out(at_, static_cast<size_t>(n));
    at_ += n;
    return out;
  }
  std::string_view text() { return as_text(take(varint())); }
  template <typename T>
  T le() {
    const Bytes b = take(sizeof(T));
    return b.empty() ? T{} : load_le<T>(b);
  }
  // A count of things that take at least one byte each: never more than what is left.
  uint64_t count() {
    const uint64_t n = varint();
    if (n > left()) fail();
    return ok_ ? n : 0;
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  uint64_t long_varint() {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto b = static_cast<uint64_t>(*at_++);
      v |= (b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    fail();
    return 0;
  }

  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

}  // namespace headrace
