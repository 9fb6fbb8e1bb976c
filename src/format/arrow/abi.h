// SPDX-License-Identifier: Apache-2.0
//
// Arrow's C data interface: three plain structs by which columns change hands within a process,
// without either side knowing the other's library.  Field order is the published ABI.
//
//   ArrowSchema: what a column is    ArrowArray: its buffers    ArrowArrayStream: array after array
//
// Whoever holds one calls its release() once; a null release says that it is empty.
#pragma once

#include <cstdint>
#include <utility>

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;  // i32 pairs, then for each: i32 length, key, i32 length, value
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;  // where values are numbers of a dictionary
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;  // -1: nobody counted
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);  // a released array: the end
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace headrace {

inline constexpr int64_t kArrowNullable = 2;  // of ArrowSchema::flags

// Owns one of the three.  One thread at a time.
template <typename T>
class ArrowOwned {
 public:
  ArrowOwned() = default;
  ~ArrowOwned() { reset(); }
  ArrowOwned(ArrowOwned&& other) noexcept : held_(std::exchange(other.held_, T{})) {}
  ArrowOwned& operator=(ArrowOwned&& other) noexcept {
    reset();
    held_ = std::exchange(other.held_, T{});
    return *this;
  }

  explicit operator bool() const { return held_.release != nullptr; }
  T* operator->() { return &held_; }
  const T* operator->() const { return &held_; }
  T& operator*() { return held_; }
  const T& operator*() const { return held_; }
  // Empty, to be filled by someone else.
  T* fill() {
    reset();
    return &held_;
  }

 private:
  void reset() {
    if (held_.release != nullptr) held_.release(&held_);
    held_ = T{};
  }
  T held_{};
};

}  // namespace headrace
