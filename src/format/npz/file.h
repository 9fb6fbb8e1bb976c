// SPDX-License-Identifier: Apache-2.0
//
// One .npz file, as far as an index needs it: its members, and what arrays they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/npy.h"
#include "format/zip/zip.h"

namespace headrace {

// An array without axes.
struct NpzNumber {
  DType dtype = DType::kI64;
  bool is_float = false;
  int64_t integer = 0;
  double number = 0;
};

struct NpzMember {
  ZipMember zip = {};
  std::string name = {};                 // as NumPy names it: without .npy
  bool is_array = false;                 // else its bytes are the value, as np.load() gives them
  std::optional<NpyHeader> header = {};  // of an array, where it was looked at
  std::optional<NpzNumber> number = {};  // of an array without axes
};

// One thread at a time.  Does not outlive the shard it is given.
class NpzFile {
 public:
  explicit NpzFile(const ShardInput& file) : zip_(file) {}

  // All members, located.  Headers of stored arrays and of small deflated ones are read, so
  // that every number is known.
  Status open();
  std::vector<NpzMember>& members() { return members_; }
  // The header of a large deflated array too, for which all of it is inflated.
  Status inspect(NpzMember& member);
  // The data of an array that was looked at, little-endian in C order, its checksum verified.
  Status array(const NpzMember& member, Buffer& contents, Bytes& data);

 private:
  Status open_member(NpzMember& member);
  Status look_at_stored(NpzMember& member);
  Status take_number(NpzMember& member, Bytes contents);

  ZipFile zip_;
  std::vector<NpzMember> members_;
};

// Element `i` of little-endian data.  Nothing where it is a u64 beyond int64.
std::optional<NpzNumber> number_at(Bytes data, DType dtype, uint64_t i);

}  // namespace headrace
