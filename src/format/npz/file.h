// SPDX-License-Identifier: Apache-2.0
//
// One .npz file, as far as an index needs it: its members, and what arrays they are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  std::optional<std::string> text = {};  // likewise, of one that holds a text
};

// One thread at a time.  Does not outlive the shard it is given.
class NpzFile {
 public:
  explicit NpzFile(const ShardInput& file) : zip_(file) {}

  // All members, located.  Headers of stored arrays and of small deflated ones are read, so
  // that every number is known.
  Status open();
  std::vector<NpzMember>& members() { return members_; }
  // Members that cannot be read (object arrays, structured types), and why: no longer among them.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }
  // The headers of large deflated arrays too, for which all of each is inflated.
  Status inspect_all();
  // Takes out the members of which `why` says something.
  void leave_out(const std::function<std::string(const NpzMember&)>& why);
  // The data of an array that was looked at, little-endian in C order, its checksum verified.
  Status array(const NpzMember& member, Buffer& contents, Bytes& data);

 private:
  Status inspect(NpzMember& member);
  Status open_member(NpzMember& member);
  Status each(Status (NpzFile::*step)(NpzMember&));
  Status look_at_stored(NpzMember& member);
  Status take_number(NpzMember& member, Bytes contents);

  ZipFile zip_;
  std::vector<NpzMember> members_;
  std::vector<std::pair<std::string, std::string>> left_out_;
};

// Element `i` of little-endian data.  Nothing where it is a u64 beyond int64.
std::optional<NpzNumber> number_at(Bytes data, DType dtype, uint64_t i);

}  // namespace headrace
