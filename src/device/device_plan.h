// SPDX-License-Identifier: Apache-2.0
//
// How a budget of device memory is shared out: batches ahead, and what each thread that hands work
// over takes for pictures on their way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace headrace {

// What one batch takes on the device.
struct DeviceNeeds {
  uint64_t batch_bytes = 0;  // as it is delivered
  uint64_t each_worker = 0;  // of a thread, whatever the budget is: pixels before they are cast
  bool decodes = false;      // pictures are decoded there
  size_t batches = kUsualBatches;  // so many ahead are of use; more than the usual of small ones
  static constexpr size_t kUsualBatches = 5;
};

struct DevicePlan {
  // Threads that hand over: while one is in a call of the engines, the other prepares the next.
  int workers = 2;
  // What the pictures of a batch may take on the way, of each of them; larger batches go in parts.
  uint64_t scratch_bytes = 0;
  // Usually one with the consumer, one on its way, one in the engines, one that is read, one more.
  size_t batches_ahead = DeviceNeeds::kUsualBatches;
  uint64_t bytes = 0;  // all of it together
};

// A quarter of what is free, at most 8 GiB: the model needs the rest.
uint64_t usual_device_budget(uint64_t free_bytes);

// The most that fits: first there are no more batches than usual, then the pictures on their way go
// in smaller parts, then there are fewer workers, then fewer batches, at least two.  kExhausted:
// not even that fits.
Result<DevicePlan> plan_device_memory(uint64_t budget, const DeviceNeeds& needs);

}  // namespace headrace
