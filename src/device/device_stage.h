// SPDX-License-Identifier: Apache-2.0
//
// DeviceStage: takes packed batches to a GPU, and does there what was left for it.
//
//   columns of bytes and draws ──► JPEG engines ──► kernels ──┐
//   columns of pixels          ──► copy         ──► kernels ──┼──► columns on the device, and the
//   other columns              ──► copy                     ──┘    event after which they are there
//
// A few threads hand work to the device, each with a stream of its own, and do not wait for it: the
// batch is delivered with its event, and the consumer's stream waits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/stage.h"
#include "codec/deferred.h"
#include "device/gpu.h"

namespace headrace {

struct DeviceStageOptions {
  int workers = 2;  // threads that hand over, each with decoders of its own
  uint64_t scratch_bytes = uint64_t{512} << 20;  // of each: device/device_plan.h
  // Of each column: what is left to do; nothing: a copy.
  std::vector<std::optional<DeferredSpec>> columns;
};

Result<std::unique_ptr<BatchStage>> make_device_stage(std::shared_ptr<Gpu> gpu,
                                                      DeviceStageOptions options);

// Which samplings the engines of this device decode to the CPU's very pixels, a bit each: finds out
// with a picture of each.  0 where there are no engines; `why` then says so.
unsigned samplings_of(const std::shared_ptr<Gpu>& gpu, std::string& why);

}  // namespace headrace
