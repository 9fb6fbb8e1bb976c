// SPDX-License-Identifier: Apache-2.0
//
// Buffer: owned bytes that start uninitialised, aligned to 64, and keep their
// memory when they shrink, so that a recycled one costs no page fault.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"

namespace headrace {

inline constexpr size_t kAlignment = 64;  // a cache line, and what JAX wants for sharing memory
// Before the data of every buffer there is so much room for its owner, and after them one byte:
// the Python face puts the head of an object there, so that a buffer becomes `bytes` uncopied.
inline constexpr size_t kMargin = kAlignment;

// One thread at a time.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) { resize(size); }
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  // Contents are lost when the capacity grows and kept when it does not.
  void resize(size_t size);

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::byte* data() { return data_ ? data_.get() + kMargin : nullptr; }
  const std::byte* data() const { return data_ ? data_.get() + kMargin : nullptr; }
  MutableBytes span() { return {data(), size_}; }
  Bytes bytes() const { return {data(), size_}; }
  std::byte* margin() { return data_.get(); }  // kMargin bytes; null without capacity

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace headrace
