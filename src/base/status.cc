// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "base/shown_url.h"

namespace headrace {

const Place& Status::place() const {
  static const Place nowhere;
  return ok() ? nowhere : state_->place;
}

Status Status::with(std::string_view context) const {
  if (ok()) return {};
  return {state_->code, fmt::format("{}: {}", context, state_->message), state_->place};
}

Status Status::at(uint64_t offset) const {
  if (ok() || state_->place.offset >= 0) return *this;
  Place place = state_->place;
  place.offset = static_cast<int64_t>(offset);
  return {state_->code, state_->message, std::move(place)};
}

Status Status::in_file(std::string_view file) const {
  if (ok() || !state_->place.file.empty()) return *this;
  Place place = state_->place;
  place.file = shown_urls(std::string(file));
  return {state_->code, state_->message, std::move(place)};
}

Status Status::of_sample(uint64_t sample, std::string_view key) const {
  if (ok() || state_->place.sample >= 0) return *this;
  Place place = state_->place;
  place.sample = static_cast<int64_t>(sample);
  place.key = key;
  return {state_->code, state_->message, std::move(place)};
}

std::string Status::text() const {
  if (ok()) return "ok";
  const Place& p = state_->place;
  std::string where = p.file;
  const auto add = [&where](std::string part) {
    if (!where.empty()) where += ", ";
    where += part;
  };
  if (p.offset >= 0) add(fmt::format("offset {}", p.offset));
  if (p.sample >= 0) add(fmt::format("sample {}", p.sample));
  if (!p.key.empty()) add(fmt::format("key '{}'", p.key));
  return shown_urls(where.empty() ? state_->message
                                  : fmt::format("{}: {}", where, state_->message));
}

Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}
Status not_found(std::string message) {
  return {Code::kNotFound, std::move(message)};
}
Status unavailable(std::string message) {
  return {Code::kUnavailable, std::move(message)};
}
Status corrupt(std::string message) {
  return {Code::kCorrupt, std::move(message)};
}
Status exhausted(std::string message) {
  return {Code::kExhausted, std::move(message)};
}
Status cancelled(std::string message) {
  return {Code::kCancelled, std::move(message)};
}
Status unsupported(std::string message) {
  return {Code::kUnsupported, std::move(message)};
}
Status internal(std::string message) {
  return {Code::kInternal, std::move(message)};
}

Status from_errno(int error, std::string_view doing) {
  std::string text = fmt::format("{}: {}", doing, std::generic_category().message(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return not_found(std::move(text));
    case EACCES:
    case EPERM:
    case EROFS:
      return {Code::kPermission, std::move(text)};
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return exhausted(std::move(text));
    default:
      return unavailable(std::move(text));
  }
}

}  // namespace headrace
