// SPDX-License-Identifier: Apache-2.0
//
// Members: named values, `key.field`, of which consecutive ones with equal key form a sample, by
// the conventions of WebDataset.  What tar and LMDB share, reading and writing.
//
// Written, a dot in the last part of a key is "%2E": "cat.0" with field "jpg" is "cat%2E0.jpg".
// Names of fields keep their capitals; read, they lose them, unless the pack says what they were.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "format/format.h"
#include "index/names.h"
#include "index/part_builder.h"

namespace headrace {

// Whether the name has a key and a field.
inline bool is_member(const NameParts& name) {
  return !name.key.empty() && !name.key.ends_with('/') && !name.extension.empty();
}

// A key as it is written: it is read up to its first dot, so dots of its last part become "%2E".
std::string member_key(std::string_view key);

// Makes samples of members in the order of the shard.  One thread at a time.
class MemberGrouper {
 public:
  explicit MemberGrouper(PartBuilder& part) : part_(part) {}

  // A name of another sample ends the one before, whatever becomes of the member.
  void meet(std::string_view name);
  // `at` is where a user would look for the member.  A name without key or field is skipped.
  Status add(std::string_view name, uint64_t at, const PartValue& value);
  void skip(std::string_view name) {
    if (skipped_++ == 0) first_skipped_ = name;
  }
  void end_sample();

  // A key that comes again later would be two halves of one sample, or two samples of one name:
  // where both begin.  Once, at the end.
  struct Twice {
    uint64_t first, second;
  };
  std::optional<Twice> find_twice();
  // Tells the user of members that were skipped.
  void note_skipped(std::string_view what);
  // A kCorrupt status with how far the shard was good: a sample is when it ended, or has as many
  // members as the one before it.
  Status blame(const Status& status, std::string_view path) const;

 private:
  struct Member {
    uint32_t field;
    uint64_t at;
  };
  struct Start {
    Hash128 key;
    uint64_t at;
  };
  PartBuilder& part_;
  std::string key_, last_good_;
  std::vector<Member> members_;  // of the sample at hand
  size_t usual_members_ = 0;
  std::vector<Start> starts_;  // of all samples: 24 bytes each while indexing
  uint64_t skipped_ = 0;
  std::string first_skipped_;
};

// Before the first record: whether fields of these names can be members of a `shard` ("tar").
Status members_can_hold(std::string_view shard, const Schema& schema);

// The names that the values of a record have as members of a `shard` ("tar"); what no reader would
// take apart again is refused.  One thread at a time.
class MemberNames {
 public:
  explicit MemberNames(std::string_view shard) : shard_(shard) {}
  // names()[i] is that of record.values[i].
  Status take(const Record& record);
  const std::vector<std::string>& names() const { return names_; }

 private:
  Status check_key(std::string_view key) const;
  Status take_field(std::string_view key, std::string_view field);

  const std::string_view shard_;
  std::vector<std::string> names_;
};

}  // namespace headrace
