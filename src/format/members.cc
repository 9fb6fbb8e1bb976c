// SPDX-License-Identifier: Apache-2.0
#include "format/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/records.h"

namespace headrace {
namespace {

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

}  // namespace

void MemberGrouper::meet(std::string_view name) {
  const NameParts parts = split_name(name);
  if (is_member(parts) && parts.key != key_) end_sample();
}

Status MemberGrouper::add(std::string_view name, uint64_t at, const PartValue& value) {
  const NameParts parts = split_name(name);
  if (!is_member(parts)) return skip(name), Status();
  if (members_.empty() || parts.key != key_) {
    end_sample();
    key_ = parts.key;
    starts_.push_back({Hasher().add(parts.key).finish(), at});
  }
  const uint32_t field = part_.field(lower_case(parts.extension));
  for (const Member& member : members_)
    if (member.field == field)
      return corrupt(fmt::format("sample '{}' has '{}' twice: the first is at offset {}", key_,
                                 parts.extension, member.at))
          .at(at);
  members_.push_back({field, at});
  part_.add_extent(field, value);
  return {};
}

void MemberGrouper::end_sample() {
  if (members_.empty()) return;
  part_.end_sample(key_);
  last_good_ = key_;
  usual_members_ = members_.size();
  members_.clear();
}

std::optional<MemberGrouper::Twice> MemberGrouper::find_twice() {
  const auto before = [](const Start& a, const Start& b) {
    if (a.key.high != b.key.high) return a.key.high < b.key.high;
    return a.key.low != b.key.low ? a.key.low < b.key.low : a.at < b.at;
  };
  std::sort(starts_.begin(), starts_.end(), before);
  const auto twice =
      std::adjacent_find(starts_.begin(), starts_.end(),
                         [](const Start& a, const Start& b) { return a.key == b.key; });
  if (twice == starts_.end()) return std::nullopt;
  return Twice{twice->at, (twice + 1)->at};
}

void MemberGrouper::note_skipped(std::string_view what) {
  if (skipped_ == 0) return;
  part_.head().notices.push_back(
      fmt::format("{} {}, the first '{}'", skipped_, what, first_skipped_));
}

Status MemberGrouper::blame(const Status& status, std::string_view path) const {
  const bool pending = !members_.empty() && members_.size() == usual_members_;
  return after_last_good(status, path, part_.samples() + (pending ? 1 : 0),
                         pending ? key_ : last_good_);
}

Status MemberNames::take(const Record& record) {
  HEADRACE_TRY(check_key(record.key));
  names_.clear();
  for (const RecordValue& value : record.values)
    if (Status s = take_field(record.key, value.field); !s.ok()) return s.with(record.key);
  return {};
}

Status MemberNames::check_key(std::string_view key) const {
  if (key.empty() || key.ends_with('/') || split_name(key).key.size() != key.size() || has_nul(key))
    return unsupported(fmt::format("a {} cannot hold the key '{}'", shard_, key));
  return {};
}

Status MemberNames::take_field(std::string_view key, std::string_view field) {
  if (field.empty() || field.find('/') != std::string_view::npos || has_nul(field))
    return unsupported(fmt::format("a {} cannot hold a field named '{}'", shard_, field));
  std::string name = fmt::format("{}.{}", key, lower_case(field));
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    return unsupported(fmt::format("a {} cannot hold several values of field '{}'", shard_, field));
  names_.push_back(std::move(name));
  return {};
}

}  // namespace headrace
