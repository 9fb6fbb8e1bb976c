// SPDX-License-Identifier: Apache-2.0
//
// The wire form of protocol buffers, as far as records need it: a message is a run of
// (tag, value).  Bounded: nothing is read outside the bytes given, nothing is allocated.
//
//   tag = varint(number << 3 | type)    type 0: varint   1: 8 bytes   2: varint n, n bytes   5: 4
//   bytes
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace headrace {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  Wire type = Wire::kVarint;
  uint64_t value = 0;  // of a varint
  Bytes bytes = {};    // of the other types, as they lie in the message
};

// Takes a varint off the front of `in`; false where there is none.
inline bool take_wire_varint(Bytes& in, uint64_t& out) {
  out = 0;
  for (size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto byte = static_cast<uint64_t>(in[i]);
    if (i == 9 && byte > 1) return false;  // more than 64 bits
    out |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      in = in.subspan(i + 1);
      return true;
    }
  }
  return false;
}

// One thread at a time.
class WireReader {
 public:
  explicit WireReader(Bytes message) : rest_(message) {}

  // False at the end, and at bytes that are no field: bad() tells which.
  bool next(WireField& out) {
    if (rest_.empty() || bad_) return false;
    bad_ = !take(out);
    return !bad_;
  }
  bool bad() const { return bad_; }

 private:
  bool take(WireField& out) {
    uint64_t tag = 0;
    if (!take_wire_varint(rest_, tag) || tag > 0xffffffffu || tag < 8) return false;
    out.number = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        out.type = Wire::kVarint;
        return take_wire_varint(rest_, out.value);
      case 1:
        out.type = Wire::kFixed64;
        return take_bytes(8, out.bytes);
      case 2: {
        out.type = Wire::kBytes;
        uint64_t length = 0;
        return take_wire_varint(rest_, length) && take_bytes(length, out.bytes);
      }
      case 5:
        out.type = Wire::kFixed32;
        return take_bytes(4, out.bytes);
      default:
        return false;  // groups: gone from the language since proto3
    }
  }

  bool take_bytes(uint64_t length, Bytes& out) {
    if (length > rest_.size()) return false;
    out = rest_.first(length);
    rest_ = rest_.subspan(length);
    return true;
  }

  Bytes rest_;
  bool bad_ = false;
};

inline void put_wire_varint(std::vector<std::byte>& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

inline void put_wire_bytes(std::vector<std::byte>& out, uint32_t number, Bytes bytes) {
  put_wire_varint(out, uint64_t{number} << 3 | static_cast<uint64_t>(Wire::kBytes));
  put_wire_varint(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace headrace
