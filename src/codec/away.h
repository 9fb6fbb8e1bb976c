// SPDX-License-Identifier: Apache-2.0
//
// Away: a part of the sample's context (sample_context.h) by which a decoder tells that its thread
// leaves the processor to another process, and has it again.
#pragma once

#include <cstdint>

namespace headrace {

// Thread-safe.
class AwayFromCpu {
 public:
  virtual ~AwayFromCpu() = default;
  virtual void leave() = 0;
  // The other process worked for so long meanwhile; the rest was waiting for it.
  virtual void come_back(uint64_t busy_ns) = 0;
};

struct Away {
  AwayFromCpu* listener = nullptr;  // null: nobody wants to know
  void begin_sample() {}
};

}  // namespace headrace
