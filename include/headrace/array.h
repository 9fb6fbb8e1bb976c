// SPDX-License-Identifier: Apache-2.0
//
// Array: memory that the engine filled, with a type and a shape.  Copies share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hr {

struct Array {
  std::string dtype;           // "u8", "i64", "f16", "bf16", "f32", …
  std::vector<int64_t> shape;  // row-major
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<void> owner;  // keeps the memory

  // The elements; T must be what dtype says.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

}  // namespace hr
