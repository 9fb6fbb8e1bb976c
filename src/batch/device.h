// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a column lie, and from when on they may be read.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace headrace {

enum class DeviceKind : uint8_t { kCpu, kPinned, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

// A point in a device's queue after which a column may be read.  Thread-safe.
class ReadyEvent {
 public:
  virtual ~ReadyEvent() = default;
  virtual Status wait() const = 0;  // in the calling thread
  virtual void* handle() const {
    return nullptr;
  }  // the device's own event, for a stream to wait on
};

}  // namespace headrace
