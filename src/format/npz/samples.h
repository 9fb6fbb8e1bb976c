// SPDX-License-Identifier: Apache-2.0
//
// How the members of .npz files become samples.  A file is read in one of three ways:
//
//   samples   members `<key>/<field>` are fields of the samples they name, as pack writes them
//   rows      all arrays have the same length: one sample for each index of the first axis
//   whole     the file is one sample, its members are the fields
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/npz/file.h"
#include "index/part_builder.h"

namespace headrace {

// Openings.  Units of the first two are a deflated member with its local header.
inline constexpr uint32_t kNpzInflate = 1;         // becomes the member's bytes
inline constexpr uint32_t kNpzInflateConvert = 2;  // … its array little-endian in C order
inline constexpr uint32_t kNpzConvert = 3;         // the same of the bytes of a stored member

using NameSet = std::set<std::string, std::less<>>;

// Every name has a '/', and there is one.
bool are_samples(const std::vector<NpzMember>& members);
// OK where the members can be rows; else what stands against it.  Headers are known.
Status can_be_rows(const std::vector<NpzMember>& members);
// Numbers, or texts of one axis: what rows are read of.
bool has_readable_rows(const NpyHeader& header);

// Adds samples to a part.  One thread at a time.
class NpzSamples {
 public:
  // `arrays` are names of which not all values are numbers of one type; names that turn out to
  // be such are added, and the part is then worth nothing.
  NpzSamples(PartBuilder& part, NameSet& arrays) : part_(part), arrays_(arrays) {}

  Status add_whole(const std::vector<NpzMember>& members, uint32_t file, std::string_view key);
  Status add_samples(const std::vector<NpzMember>& members, uint32_t file);

 private:
  struct Known {
    bool is_array = false;
    bool is_text = false;              // without axes
    std::optional<DType> number = {};  // as long as all are numbers of this type
    uint64_t seen_in = ~uint64_t{0};   // the sample
  };
  Status add_member(std::string_view field, const NpzMember& member, uint32_t file);

  PartBuilder& part_;
  NameSet& arrays_;
  std::unordered_map<std::string, Known, TextHash, std::equal_to<>> known_;
};

// One sample for each index of the first axis.  Precondition: can_be_rows().  `prefix` is that
// of the keys.
Status add_npz_rows(NpzFile& npz, uint32_t file, std::string_view prefix, PartBuilder& part);

// The unit that is all of a member.
PartValue npz_unit(const ZipMember& zip, uint32_t file);

}  // namespace headrace
