// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file (NumPy's NEP 1), versions 1 to 3:
//
//   0              6       8        8 + 2 or 8 + 4           a multiple of 16 or 64
//   +--------------+-------+--------+------------------------+- - - - - - -+
//   | 93 "NUMPY"   | major | length | a dict of Python, text  | the elements|
//   |              | minor | LE     | padded with spaces, \n  |             |
//   +--------------+-------+--------+------------------------+- - - - - - -+
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// The parser is bounded: it looks at no byte beyond what it is given and allocates nothing
// but the axes it finds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr size_t kNpyPreamble = 12;           // bytes that tell how long the header is
inline constexpr uint64_t kNpyMostHeader = 1 << 20;  // no header of numbers is longer
inline constexpr size_t kNpyMostAxes = 32;           // as many as NumPy 1 allows

struct NpyHeader {
  DType dtype = DType::kU8;  // of NumPy's bool: u8
  bool big_endian = false;
  bool fortran_order = false;  // the first axis is the fastest
  std::vector<int64_t> shape;
  uint64_t data_begin = 0;  // where the elements begin
  uint64_t data_bytes = 0;  // what they take
};

bool is_npy(Bytes head);
// How long preamble and header are together, by the first kNpyPreamble bytes of the file.
Result<uint64_t> npy_header_bytes(Bytes head);
// `head` holds at least the whole header.  Damaged ones are kCorrupt with the offset; elements
// that are no numbers (objects, structures, texts, dates, complex) are kUnsupported by name.
Result<NpyHeader> parse_npy_header(Bytes head);

}  // namespace headrace
