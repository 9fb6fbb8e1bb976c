// SPDX-License-Identifier: Apache-2.0
//
// Arrays of formats that spell type and shape before the elements in a way of their own,
// handed on as the bytes of a .npy file (version 1), which describe themselves.
//
//   | what the format has | elements |   ──►   | "\x93NUMPY" 1 0 | u16 n | dict of n bytes |
//   elements |
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

// What stands before the elements.
struct ArrayHead {
  std::string descr = {};  // the type as NumPy writes it: "<f4"
  uint64_t item_bytes = 0;
  std::vector<uint64_t> shape = {};
  uint64_t begin = 0;  // of the elements, in the value
};

inline constexpr uint64_t kMostArrayHead = 1024;  // bytes of a value that tell type and shape
inline constexpr uint64_t kMostAxes = 64;         // NumPy has 64, torch as many

// The elements fill the rest of a value of so many bytes, or kCorrupt.
Status check_array(const ArrayHead& head, uint64_t value_bytes);

// How long the .npy is.  Precondition: check_array() was OK.
uint64_t npy_bytes(const ArrayHead& head, uint64_t value_bytes);
// Fills `out`, which has npy_bytes().
void make_npy(const ArrayHead& head, Bytes value, MutableBytes out);

// A picture as PIL holds it, which MDS and LitData both store so:
//   | u32 width | u32 height | u32 n | mode, n letters | pixels |
// It becomes an array [height, width] or [height, width, channels].  `head` may be cut off after
// kMostArrayHead bytes.
Status parse_raw_picture(Bytes head, ArrayHead& out);

// The pictures of a list, of which MDS and LitData both write
//   | u32 count | u32 bytes of each | the pictures |
// Gets (begin, length) of each in the value.  `head` is the start of the value, with the sizes;
// how long that is, picture_list_head() says by the first 4 bytes.
struct ListedValue {
  uint64_t begin = 0;
  uint64_t length = 0;
};
Status picture_list_head(Bytes count, uint64_t value_bytes, uint64_t& head_bytes);
Status parse_picture_list(Bytes head, uint64_t value_bytes, std::vector<ListedValue>& out);

}  // namespace headrace
