// SPDX-License-Identifier: Apache-2.0
//
// Buffer: owned bytes that start uninitialised, aligned to 64 (or as their arena says), and keep
// their memory when they shrink, so that a recycled one costs no page fault.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/arena.h"
#include "base/bytes.h"

namespace headrace {

// Before the data of every buffer there is so much room for its owner, and after them one byte:
// the Python face puts the head of an object there, so that a buffer becomes `bytes` uncopied.
inline constexpr size_t kMargin = kAlignment;

// One thread at a time.
class Buffer {
 public:
  Buffer() = default;
  // Null: the heap.
  explicit Buffer(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  explicit Buffer(size_t size) { resize(size); }
  ~Buffer() {
    if (data_ != nullptr) free_memory();
  }
  // What was moved from is empty and keeps its arena.
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        arena_(other.arena_) {}  // NOLINT(performance-move-constructor-init): both keep it
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    if (data_ != nullptr) free_memory();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    arena_ = other.arena_;
    return *this;
  }

  // Contents are lost when the capacity grows and kept when it does not.  Throws std::bad_alloc,
  // and is then as it was.  Of a page arena, what lies between size() and the next multiple of
  // kPageBytes may be written too: O_DIRECT reads whole pages.
  void resize(size_t size) {
    if (size > capacity_) grow(size);
    size_ = size;
  }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  // All that it takes of its arena: the margin and what alignment costs are in it.
  size_t held_bytes() const { return data_ == nullptr ? 0 : lead() + capacity_ + 1; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  MutableBytes span() { return {data_, size_}; }
  Bytes bytes() const { return {data_, size_}; }
  // kMargin bytes; null without capacity.
  std::byte* margin() { return data_ == nullptr ? nullptr : data_ - kMargin; }

  const std::shared_ptr<Arena>& arena() const { return arena_; }  // null: the heap
  // Where another process finds the data; nothing where the arena is not shared.
  std::optional<SharedName> shared_name() const {
    return arena_ && data_ != nullptr ? arena_->name_of(data_) : std::nullopt;
  }

 private:
  void grow(size_t size);
  void free_memory();
  // From the beginning of the memory to the data.
  size_t lead() const { return arena_ ? std::max(kMargin, arena_->alignment()) : kMargin; }

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  std::shared_ptr<Arena> arena_;
};

}  // namespace headrace
