// SPDX-License-Identifier: Apache-2.0
#include "transform/program/pixels.h"

#include <cstring>

#include "base/buffer.h"

namespace headrace {

Pixels copy_for_reading(const Pixels& pixels) {
  static thread_local Buffer copy;
  copy.resize(pixels.bytes());
  std::memcpy(copy.data(), pixels.data, pixels.bytes());
  Pixels out = pixels;
  out.data = reinterpret_cast<uint8_t*>(copy.data());
  return out;
}

}  // namespace headrace
