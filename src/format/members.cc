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

constexpr std::string_view kDot = "%2E";
constexpr std::string_view kEscapedDot = "%252E";  // of a key that holds "%2E" itself

std::string unescaped(std::string_view key) {
  std::string out;
  for (size_t i = 0; i < key.size();) {
    const std::string_view rest = key.substr(i);
    const bool dot = rest.starts_with(kDot);
    const bool literal = rest.starts_with(kEscapedDot);
    out += literal ? kDot : dot ? std::string_view(".") : rest.substr(0, 1);
    i += literal ? kEscapedDot.size() : dot ? kDot.size() : 1;
  }
  return out;
}

}  // namespace

std::string member_key(std::string_view key) {
  const size_t base = key.rfind('/') + 1;
  std::string out(key.substr(0, base));
  for (size_t i = base; i < key.size(); ++i) {
    const bool looks_escaped = key.substr(i).starts_with(kDot);
    out += key[i] == '.' ? kDot : looks_escaped ? kEscapedDot : key.substr(i, 1);
    if (looks_escaped) i += kDot.size() - 1;
  }
  return out;
}

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
  part_.end_sample(unescaped(key_));
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
  if (key.empty() || key.ends_with('/') || has_nul(key))
    return unsupported(fmt::format("a {} cannot hold the key '{}'", shard_, key));
  return {};
}

Status MemberNames::take_field(std::string_view key, std::string_view field) {
  if (field.empty() || field.find('/') != std::string_view::npos || has_nul(field))
    return unsupported(fmt::format("a {} cannot hold a field named '{}'", shard_, field));
  std::string name = fmt::format("{}.{}", member_key(key), field);
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    return unsupported(fmt::format("a {} cannot hold several values of field '{}'", shard_, field));
  names_.push_back(std::move(name));
  return {};
}

Status members_can_hold(std::string_view shard, const Schema& schema) {
  for (size_t f = 0; f < schema.size(); ++f) {
    const std::string& name = schema[f].name;
    if (name.empty() || name.find('/') != std::string::npos || has_nul(name))
      return unsupported(fmt::format("a {} cannot hold a field named '{}'", shard, name));
    if (schema[f].many)
      return unsupported(fmt::format("a {} cannot hold several values of field '{}'", shard, name));
    for (size_t other = 0; other < f; ++other)
      if (lower_case(schema[other].name) == lower_case(name))
        return unsupported(fmt::format(
            "a {} is read without regard to capitals, and there are fields '{}' and '{}'", shard,
            schema[other].name, name));
  }
  return {};
}

}  // namespace headrace
