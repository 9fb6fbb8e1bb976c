// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file, and of a member of an .npz: what array lies behind it.
//
//   0           6     8         10 (version 1) or 12 (2 and 3)
//   +-----------+-----+---------+------------------------------------------+- - - -+
//   | \x93NUMPY | 1 0 | u16 n   | {'descr': '<f4', 'fortran_order': False, | data  |
//   |           |     | or u32  |  'shape': (3, 4), }  spaces  \n          |       |
//   +-----------+-----+---------+------------------------------------------+- - - -+
//
// A header is parsed, never evaluated.  For formats that index arrays, and for codecs that read
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr uint64_t kNpyStart = 12;  // bytes that tell how long the header is

// A type as NumPy writes it: "<f4", "|u1", ">i8", "<U5", "|O".
struct NpyType {
  std::string descr = {};  // as it is written
  char kind = 0;           // b i u f c S U V M m O; '[' of a structured one
  bool big_endian = false;
  uint64_t item_bytes = 0;

  // Numbers as headrace knows them; a bool is u8.  Byte order is not looked at.
  std::optional<DType> dtype() const;
  bool is_text() const { return kind == 'S' || kind == 'U'; }
};

struct NpyHeader {
  NpyType type = {};
  bool fortran_order = false;
  std::vector<uint64_t> shape = {};
  uint64_t data = 0;   // where the array begins
  uint64_t items = 1;  // of all of it

  uint64_t data_bytes() const { return items * type.item_bytes; }
  // Of one index of the first axis.  Precondition: it has one, that is not empty.
  uint64_t row_bytes() const { return data_bytes() / shape[0]; }
};

bool is_npy(Bytes head);
Result<NpyType> parse_npy_type(std::string_view descr);
// The number of items of a shape; nothing where items of that size do not fit 2^63 bytes.
std::optional<uint64_t> count_items(const std::vector<uint64_t>& shape, uint64_t item_bytes);

// By the first kNpyStart bytes, or all where there are fewer: how many bytes the header takes.
// kCorrupt where no .npy begins.
Result<uint64_t> npy_header_bytes(Bytes start);
// `head` holds the header at least.  `total` is the length of header and data, which must be
// right.  Object arrays and structured types are refused by name.
Result<NpyHeader> parse_npy(Bytes head, uint64_t total);

// Version 1, little-endian, C order; as long as a multiple of 64, as NumPy does it.
std::string make_npy_header(DType dtype, const std::vector<uint64_t>& shape);
// "<f4"; "" for bf16, which NumPy has no name for.
std::string npy_descr(DType dtype);

// One item of type S as it is or of U as UTF-8, without the zeros that NumPy pads with.
Result<std::string> npy_text(Bytes item, char kind);

// Makes the data little-endian in C order, in place or through a copy.
Status normalise_npy(const NpyHeader& header, MutableBytes data);

}  // namespace headrace
