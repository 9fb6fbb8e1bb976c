// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: how every function that can fail reports it.
//
// An OK Status is one null pointer; only failures allocate.  A failure carries
// a code (what the caller can do about it), a text, and where it happened:
// file, byte offset, sample, key.  Each layer adds what only it knows, on the
// failing path; the innermost word on a place wins, contexts are prefixed:
//
//   return corrupt("checksum of the header is wrong").at(offset);
//   ... one layer up ...  return status.in_file(shard.name);
//   ... at the top ...    status.text() == "train-0042.tar, offset 5120: checksum …"
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace headrace {

// One code per thing the caller can do about it; add one only with a new "do".
enum class Code : unsigned char {
  kOk,
  kInvalidArgument,  // fix the call
  kNotFound,         // fix the path
  kPermission,       // fix the credentials or the mode bits
  kUnavailable,      // try again: the only retryable code
  kCorrupt,          // fix the data
  kExhausted,        // give it more memory, disk or handles
  kCancelled,        // it was asked to stop
  kUnsupported,      // this build or this format cannot do it
  kInternal,         // our bug
};

// Where a failure happened.  Unknown parts stay empty or -1.
struct Place {
  std::string file;
  int64_t offset = -1;
  int64_t sample = -1;
  std::string key;
};

// Immutable, hence thread-safe.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : Status(code, std::move(message), Place{}) {}

  bool ok() const { return state_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : state_->code; }
  std::string_view message() const { return ok() ? "" : std::string_view(state_->message); }
  const Place& place() const;

  // Prefixes "context: ".
  Status with(std::string_view context) const;
  // Each sets its part of the place unless an inner layer already did.
  Status at(uint64_t offset) const;
  Status in_file(std::string_view file) const;
  Status of_sample(uint64_t sample, std::string_view key = {}) const;

  // Place and message in one line, as a user reads it.
  std::string text() const;

 private:
  struct State {
    Code code;
    std::string message;
    Place place;
  };
  Status(Code code, std::string message, Place place)
      : state_(std::make_shared<const State>(State{code, std::move(message), std::move(place)})) {
    assert(code != Code::kOk);
  }

  std::shared_ptr<const State> state_;  // shared: one failure, many waiters
};

Status invalid(std::string message);
Status not_found(std::string message);
Status unavailable(std::string message);
Status corrupt(std::string message);
Status exhausted(std::string message);
Status cancelled(std::string message);
Status unsupported(std::string message);
Status internal(std::string message);
// What errno says, with the code that fits it: `doing` is "open", "read", …
Status from_errno(int error, std::string_view doing);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : v_(std::in_place_index<1>, std::move(status)) {
    assert(!std::get<1>(v_).ok());
  }

  bool ok() const { return v_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(v_); }

  // Precondition: ok().
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T value() && { return std::get<0>(std::move(v_)); }

 private:
  std::variant<T, Status> v_;
};

}  // namespace headrace

// The only two control-flow macros in the code base.
#define HEADRACE_TRY(expr)                                                  \
  do {                                                                      \
    if (::headrace::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define HEADRACE_ASSIGN(lhs, expr) HEADRACE_ASSIGN_IMPL(HEADRACE_CAT(result_, __LINE__), lhs, expr)
#define HEADRACE_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) return tmp.status();        \
  lhs = std::move(tmp).value()
#define HEADRACE_CAT(a, b) HEADRACE_CAT_IMPL(a, b)
#define HEADRACE_CAT_IMPL(a, b) a##b
